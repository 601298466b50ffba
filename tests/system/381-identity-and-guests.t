# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A data directory keeps its identity: files that say whose data it is are never made anew over data. What other people put
# there stays as it is, and a start neither fails because of it nor takes it for a partition.
requires kcat
refused() { # WHAT PATTERN: klogd does not start, and says why
    : >"$KLOGD_LOG"
    klogd_spawn
    wait_for 15 "klogd ends: $1" gone "$KLOGD_PID"
    wait "$KLOGD_PID"
    eq "$1: exit status" 2 $?
    KLOGD_PID=
    has "$1" "$2" "$(cat "$KLOGD_LOG")"
}
listing() { (cd "$D" && find . ! -name .lock ! -path ./reserve -type f -exec md5sum {} + | sort -k2); }
id_of() { sed -n 's/^topic_id: //p' "$D/$1/partition.metadata"; }
L=$(printf 'n%.0s' $(seq 249)) # the longest name
klogd_start
topic aa
topic bb 2
topic "$L"
seq 100 | grow aa
seq 10 | grow "$L"
seq 1 7 | grow bb
klogd_stop
cp -a "$D" good

# ---- meta.properties ----
for how in empty cut garbage newer missing; do
    rm -rf "$D" && cp -a good "$D"
    case $how in
    empty) : >"$D/meta.properties" ;;
    cut) head -c 30 good/meta.properties >"$D/meta.properties" ;;
    garbage) head -c 90 /dev/urandom | tr '\n' x >"$D/meta.properties" ;;
    newer) sed 's/version=0/version=1/' good/meta.properties >"$D/meta.properties" ;;
    missing) rm "$D/meta.properties" ;;
    esac
    listing >before
    refused "meta.properties $how" "meta.properties.*put back a copy"
    listing >after
    same "nothing changed, meta.properties $how" before after
    cp good/meta.properties "$D/"
    klogd_start
    consume aa | cmp - <(seq 100) || fail "records after meta.properties $how"
    eq "clean: nothing was scanned" "" "$(grep -E ' (WARN|ERROR) ' "$KLOGD_LOG" | grep -v meta.properties)"
    klogd_stop
done
# another number, which the registers do not know
rm -rf "$D" && cp -a good "$D"
sed -i 's/broker.id=1/broker.id=3/' "$D/meta.properties"
refused "another broker.id" "registers belong to broker 1, meta.properties says 3"

# ---- partition.metadata: a changed one is told, and no other records are served under the name ----
rm -rf "$D" && cp -a good "$D"
id=$(id_of aa-0) at=1
while [ "${id:at:1}" = "${id:at+1:1}" ]; do at=$((at + 1)); done # two characters that differ change places
sed -i "s/^topic_id: .*/topic_id: ${id:0:at}${id:at+1:1}${id:at:1}${id:at+2}/" "$D/aa-0/partition.metadata"
klogd_start
has "it is told" "WARN .*/aa-0/partition.metadata is damaged" "$(cat "$KLOGD_LOG")"
consume aa | cmp - <(seq 100) || fail "records behind a damaged partition.metadata"
eq "it is put right" "$(sed -n 2p good/aa-0/partition.metadata)" "$(sed -n 2p "$D/aa-0/partition.metadata")"
klogd_stop
rm -rf "$D" && cp -a good "$D"
cp good/bb-0/partition.metadata "$D/aa-0/partition.metadata" # whole, but another topic's
: >"$KLOGD_LOG"
klogd_start
has "whose it is" "ERROR .*/aa-0 belongs to another topic.*$(id_of bb-0).*untouched" "$(cat "$KLOGD_LOG")"
fails 'error 56' end_offset aa
consume bb | cmp - <(seq 7) || fail "other partitions are served"
klogd_kill
cmp good/aa-0/00000000000000000000.log "$D/aa-0/00000000000000000000.log" || fail "the log was touched"
cp good/aa-0/partition.metadata "$D/aa-0/"
klogd_start
consume aa | cmp - <(seq 100) || fail "records after it was put right"
klogd_stop

# ---- a partition that is gone, or is there twice ----
rm -rf "$D" && cp -a good "$D" && rm -r "$D/aa-0"
: >"$KLOGD_LOG"
klogd_start
has "the loss is told" "ERROR +aa-0: its directory is in none of the log directories: what records it had are lost" "$(cat "$KLOGD_LOG")"
klogd_stop

rm -rf "$D" && cp -a good "$D"

# ---- guests ----
mkdir -m 0700 "$D/lost+found"
mkdir -p "$D/.snapshot" "$D/.Trash-0" "$D/old-delete" "$D/logs-delete/sub" "$D/aa-5" "$D/aa-00" "$D/backup-2024" "$D/bb-0.0123456789abcdef-delete"
touch "$D/.DS_Store" "$D/nohup.out"
echo precious >"$D/old-delete/notes.txt"
echo x >"$D/logs-delete/sub/f"
echo data >"$D/backup-2024/f"
cp -a good/bb-1 "$D/bb-2024" # looks like a partition, of no topic
ln -s /tmp "$D/link-0"
touch "$D/cleaner-horizon-checkpoint.tmp"
for round in 1 2 3; do
    klogd_start
    consume aa | cmp - <(seq 100) || fail "records, guests, round $round"
    consume "$L" | cmp - <(seq 10) || fail "records of the long name, round $round"
    klogd_stop
    for f in old-delete/notes.txt logs-delete/sub/f backup-2024/f aa-5 aa-00 .snapshot link-0 lost+found nohup.out; do
        [ -e "$D/$f" ] || fail "$f is gone"
    done
    eq "set aside, round $round" $round "$(find "$D" -maxdepth 1 -name 'bb-2024.*-stray' | wc -l)"
    [ ! -e "$D/bb-2024" ] || fail "bb-2024 stays"
    [ ! -e "$D/bb-0.0123456789abcdef-delete" ] && [ ! -e "$D/cleaner-horizon-checkpoint.tmp" ] || fail "leftovers stay"
    cp -a good/bb-1 "$D/bb-2024"
done
# A guest with the name of a partition that comes later is no obstacle.
klogd_start
klog topic alter aa -p 6 >/dev/null || fail "grow aa"
seq 3 | kcat -b $B -q -P -t aa -p 5 || fail "write to aa-5"
klogd_stop
