# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The registers say what topics there are. Lost, cut off, older than each other or in another directory: the start is refused
# with the reason, and nothing is touched; nothing that was acknowledged is missing after a start that was not refused.
requires kcat
refused() { # WHAT PATTERN [klogd options]
    : >"$KLOGD_LOG"
    local what=$1 pattern=$2
    shift 2
    klogd_spawn "$@"
    wait_for 15 "klogd ends: $what" gone "$KLOGD_PID"
    wait "$KLOGD_PID"
    eq "$what: exit status" 2 $?
    KLOGD_PID=
    has "$what" "$pattern" "$(cat "$KLOGD_LOG")"
}
listing() { (cd "$1" && find . ! -name .lock ! -name reserve -type f -exec md5sum {} + | sort -k2); }
back() { rm -rf "$D" && cp -a "$1" "$D"; }
untouched() { listing "$D" >after && listing "$1" >before && cmp before after || fail "$2: something was touched"; }
klogd_start
topic a
seq 10 | grow a
klogd_stop
cp -a "$D" one
klogd_start
topic b
seq 20 | grow b
klogd_stop
cp -a "$D" two

# ---- the end of the journal after a clean stop: zeros, cut, or an older copy ----
last=$("$PY" -c "
b = open('$D/registers.journal', 'rb').read()
print(b.rfind(b'KRGF', 0, b.find(b'/brokers/topics/b')))")
size=$(stat -c %s "$D/registers.journal")
"$PY" -c "
f = open('$D/registers.journal', 'r+b')
f.seek($last)
f.write(bytes($size - $last))"
cp -a "$D" zeros
refused "zeros" "registers.journal is damaged at byte $last: it was closed in a clean stop"
untouched zeros zeros
refused "zeros, again" "registers.journal is damaged at byte $last: it was closed in a clean stop"
back two
truncate -s "$last" "$D/registers.journal"
refused "cut" "ends at change [0-9]+, but the last clean stop was at change [0-9]+"
back two
cp one/registers.journal "$D/"
refused "an older copy" "ends at change [0-9]+, but the last clean stop was at change [0-9]+"
back two
klogd_start
consume b | cmp - <(seq 20) || fail "records of b"
klogd_kill
# After a kill the last change may be torn: it is cut off, and the bytes are kept.
n=$(($(stat -c %s "$D/registers.journal") - 3))
truncate -s $n "$D/registers.journal"
: >"$KLOGD_LOG"
klogd_start
has "torn" "WARN .*registers.journal: .* no whole change.* kept in registers.journal.[0-9]*.cut" "$(cat "$KLOGD_LOG")"
consume b | cmp - <(seq 20) || fail "records of b after a torn change"
klogd_stop

# ---- an older copy after a kill: topic b is not in it, and its records are kept ----
back two
rm "$D/clean-shutdown"
cp one/registers.journal "$D/"
: >"$KLOGD_LOG"
klogd_start
has "b is set aside" "WARN .*/b-0 belongs to no topic of this cluster: kept as b-0\..*-stray" "$(cat "$KLOGD_LOG")"
cmp two/b-0/00000000000000000000.log "$D"/b-0.*-stray/00000000000000000000.log || fail "records of b"
klogd_stop
# The log of a has newer leader epochs than that copy: it goes on, in one newer still.
back one
for i in 1 2 3; do klogd_start && echo "more $i" | grow a && klogd_stop; done
rm "$D/clean-shutdown"
cp one/registers.journal "$D/"
: >"$KLOGD_LOG"
klogd_start
has "epochs" "ERROR .*a-0: its log has leader epoch 3, its register only 1: the registers are an older copy; it goes on in epoch 4" "$(cat "$KLOGD_LOG")"
echo last | grow a
(seq 10; echo "more 1"; echo "more 2"; echo "more 3"; echo last) | cmp - <(consume a) || fail "records of a: $(consume a | tail -n3)"
klogd_stop

# ---- lost, or in another directory ----
back two
rm "$D/registers.journal"
cp -a "$D" lost
refused "lost" "/registers.journal is missing, but there is data"
untouched lost lost
mkdir other
back two
refused "not named first" "registers.journal is in $D, but the registers belong in $PWD/other, which log.dirs names first" \
    --override log.dirs="$PWD/other,$D"
untouched two "not named first"
[ ! -e other/registers.journal ] || fail "new registers beside the old ones"
rm -r other
klogd_start
consume a | cmp - <(seq 10) || fail "records of a at the end"
consume b | cmp - <(seq 20) || fail "records of b at the end"
