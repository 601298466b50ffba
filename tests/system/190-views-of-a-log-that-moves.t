# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The rules of heads, lost tails, compaction, damage and topics made anew hold in views as in the plain file: who has a view open
# goes on with what is left, a size never shrinks, other bytes never appear; who opens it sees what is there now. And follow/
# waits in every form.
requires kcat jq
klogd_start --override log.cleaner.backoff.ms=50 --override flush.policy=async
topic t1
topic cut 1
topic gone 1
topic hurt 1 segment.bytes=2048
topic old 1 segment.bytes=1048576
mount_start
V=$M/t1
one() { for i in $(seq "$2" "$3"); do echo "$1$i"; done | produce -t "$4" -p 0 -X linger.ms=0 -X batch.num.messages=1; }

# ---- follow/ ----
one a 1 3 t1
cat "$V/json/follow/p0" >followed.json & J=$!
cat "$V/follow/tsv/p0" >followed.tsv & X=$!
cat "$V/follow/2/p0" >followed.2 & R=$!
cat "$V/follow/1:5/json/p0" >followed.end & E=$!
wait_lines followed.json 3
wait_lines followed.tsv 3
wait_lines followed.2 1
one a 4 6 t1
wait_lines followed.json 6
wait_lines followed.tsv 6
wait_lines followed.2 4
wait $E || fail "a range that ends"
eq "json" "a1 a2 a3 a4 a5 a6" "$(jq -r .value followed.json | tr '\n' ' ' | sed 's/ $//')"
eq "tsv" "a1 a6" "$(sed -n '1p;6p' followed.tsv | cut -f2 | tr '\n' ' ' | sed 's/ $//')"
eq "a range" "a3 a4 a5 a6" "$(tr '\n' ' ' <followed.2 | sed 's/ $//')"
eq "a range that ends" "a2 a3 a4 a5" "$(jq -r .value followed.end | tr '\n' ' ' | sed 's/ $//')"
"$PY" - "$V/json/follow/p0" <<'X' || fail "poll and O_NONBLOCK"
import errno, os, select, subprocess, sys
f = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
while True:
    try:
        os.read(f, 65536)
    except OSError as e:
        assert e.errno == errno.EAGAIN, e
        break
p = select.poll()
p.register(f, select.POLLIN)
assert p.poll(100) == [], "readable at the end"
subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", "t1", "-p", "0"], input=b"woken\n", check=True)
assert p.poll(5000) == [(f, select.POLLIN)], "not woken"
assert b"woken" in os.read(f, 65536)
X
kill $J $X $R
wait $J $X $R

# ---- the head goes: DeleteRecords under readers in the middle ----
one line 1000 1999 cut
cat >held.py <<'X'
import errno, os, sys, time
path, at = sys.argv[1], int(sys.argv[2])
want = open("before", "rb").read()
fd, idle = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)
size = os.fstat(fd).st_size
assert size == len(want)
got = os.read(fd, at)
assert got == want[:at]
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
assert os.fstat(fd).st_size >= size, "the size shrank"
rest = b""
while b := os.read(fd, 65536):
    rest += b
after = open("after", "rb").read() # what was fetched before may be there still
assert want.endswith(rest) and (rest.endswith(after) or after.endswith(rest)), (len(rest), len(after))
assert os.pread(fd, 1000, size - 1000) == want[-1000:]
X
for form in json/p0 tsv/p0 100/p0; do
    mount_stop
    mount_start
    before=$(start_offset cut)
    cat "$M/cut/$form" >before
    rm -f ready go
    "$PY" held.py "$M/cut/$form" 4096 >held.out 2>&1 & H=$!
    wait_for 10 "files are held" test -e ready -o ! -d /proc/$H
    "$PY" "$TESTLIB/delete_records.py" cut $((before + 300)) || fail "DeleteRecords"
    cat "$M/cut/$form" >after
    eq "$form: what is there now" "$((1000 - before - 300))" "$(wc -l <after)"
    eq "$form: size now" "$(stat -c %s after)" "$(stat -c %s "$M/cut/$form")"
    touch go
    wait $H || fail "$form: $(cat held.out)"
done

# ---- a topic made anew ----
one v 1 5 gone
exec 4<"$M/gone/json/p0"
head -c 10 <&4 >read
status 0 klog topic delete gone
wait_for 10 "it is gone" test ! -e "$M/gone"
topic gone 1
one w 1 2 gone
eq "the new one" "w1 w2" "$(jq -r .value <"$M/gone/json/p0" | tr '\n' ' ' | sed 's/ $//')"
has_not "nothing of the new one in the old file" '"w' "$(cat <&4 2>&1)"
fails "Stale" stat -L /proc/self/fd/4
exec 4<&-

# ---- damage: what stands before it, then EIO ----
"$PY" - <<'X' || fail "produce"
from kwire import Conn, batch
c = Conn()
for j in range(9):
    for k in range(5):
        assert c.produce("hurt", 0, batch([b"%d%d%03d" % (j, k, i) for i in range(10)]))[0] == 0
X
cat "$M/hurt/json/p0" >whole.json
mount_stop
klogd_stop
"$PY" - "$D"/hurt-0/*.log <<'X'
import sys
path = sorted(sys.argv[1:])[1]
b = bytearray(open(path, "rb").read())
b[75] ^= 1 # in the first batch of the second segment
open(path, "wb").write(b)
X
klogd_restart
mount_start
fails "Input/output error" cat "$M/hurt/json/p0"
cat "$M/hurt/json/p0" >got 2>/dev/null
n=$(wc -l <got)
head -n "$n" whole.json | cmp - got || fail "what stands before damage"
between "lines before it" 10 440 "$n"
eq "the size of it" "$(stat -c %s got)" "$(stat -c %s "$M/hurt/json/p0")"
eq "a range behind it" 10 "$(wc -l <"$M/hurt/-10/p0")"
eq "in json, too" 10 "$(wc -l <"$M/hurt/json/-10/p0")"

# ---- compaction under readers: what they get goes on with the same bytes, or behind the end of a line ----
seq 1 20000 | awk '{ printf "k%d:%0200d\n", $1 % 500, $1 }' | produce -K: -t old -p 0
for form in json tsv @2000-01-01:2099-01-01; do
    cat "$M/old/$form/p0" >"old.$form"
    eq "before, $form" 20000 "$(wc -l <"old.$form")"
done
mount_stop # what was printed is in nobody's memory
mount_start
cat >reader.py <<'X'
import os, sys, time
path, size, want, sized, ready = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "rb").read(), sys.argv[4] == "1", sys.argv[5]
f = os.open(path, os.O_RDONLY)
if sized:
    assert os.fstat(f).st_size == len(want)
out = os.read(f, size)
assert out and out == want[:len(out)]
begun = len(out)
open(ready, "w").close()
while not os.path.exists("go2"):
    time.sleep(0.02)
while b := os.read(f, 131072):
    out += b
assert not sized or os.fstat(f).st_size >= len(want), "the size shrank"
lines, all_lines = out.split(b"\n"), want.split(b"\n")
assert lines.pop() == b"" and all_lines.pop() == b""
place = {l: i for i, l in enumerate(all_lines)}
n = [place[l] for l in lines] # each is a line of before
assert n == sorted(set(n)), "twice or out of order"
assert n[-500:] == list(range(19500, 20000)), n[-3:]
whole = want[:begun].count(b"\n") + 1 # what was begun is read to its end
assert n[:whole] == list(range(whole))
for at in range(0, len(want), 99991): # other positions: what was there, or EIO
    try:
        b = os.pread(f, 1000, at)
    except OSError as e:
        assert e.errno == 5
    else:
        assert b == want[at:at + len(b)] or b == out[at:at + len(b)], at
X
readers=
i=0
for form in json tsv @2000-01-01:2099-01-01; do
    for how in "131072 0" "100 1" "131072 1" "1500000 1"; do
        i=$((i + 1))
        "$PY" reader.py "$M/old/$form/p0" ${how% *} "old.$form" ${how#* } "ready.$i" >"reader.$i" 2>&1 & readers="$readers $!"
        wait_for 20 "a reader in the middle" test -e "ready.$i" -o ! -d "/proc/$!"
    done
done
status 0 klog config set topic old cleanup.policy=compact segment.ms=1 min.cleanable.dirty.ratio=0
cleaned() { grep -q "old-0: cleaned up to offset 20000:" "$KLOGD_LOG"; }
wait_for 30 "the log is clean" cleaned
eq "who opens it now" 500 "$(wc -l <"$M/old/json/p0")"
eq "and its size" "$(wc -c <"$M/old/json/p0")" "$(cat "$M/old/json/p0" | wc -c)"
touch go2
i=0
for r in $readers; do
    i=$((i + 1))
    wait "$r" || fail "reader $i: $(cat "reader.$i")"
done

# ---- a lost tail ----
topic lost 1
one old 100 119 lost
cat "$M/lost/json/follow/p0" >followed & F=$!
wait_lines followed 20
exec 4<"$M/lost/json/p0"
cat <&4 >read.old
eq "lines" 20 "$(wc -l <read.old)"
klogd_kill
log=$(ls "$D"/lost-0/*.log)
truncate -s $(($(stat -c %s "$log") * 9 / 20)) "$log"
rm -f "$D"/lost-0/partition.flushed # it tells of a disk that kept what it said
klogd_restart 4<&-
one NEW 200 214 lost
consume lost >want
jq -r .value <"$M/lost/json/p0" | cmp - want || fail "what is there now"
wait_lines followed 35
eq "who follows goes on at the new end" "NEW200 NEW214" "$(jq -r .value followed | sed -n '21p;35p' | tr '\n' ' ' | sed 's/ $//')"
eq "who was at the end, too" "NEW200 NEW214" "$(jq -r .value <&4 | sed -n '1p;15p' | tr '\n' ' ' | sed 's/ $//')"
exec 4<&-
kill $F
wait $F
eq "told once" 1 "$(grep -c "lost/p0: the log has lost its tail: records 9 to 19" "$KLOGFS_LOG")"
