# SPDX-License-Identifier: Apache-2.0
# Compaction while files are open: who is in the middle reads on with what is left behind it, each record once and whole, and the size does
# not shrink; who follows is not disturbed; a file opened afterwards is as long as what can be read from it.
requires kcat
klogd_start --override log.cleaner.backoff.ms=50
topic t1 segment.bytes=1048576 # not yet compacted
mount_start
# Record N has key N modulo 1000 and a value of 200 digits.
records() { seq "$1" "$2" | awk '{ printf "k%d:%0200d\n", $1 % 1000, $1 }' | produce -K: -t t1 -p 0; }
cat >reader.py <<'X'
import os, sys, time
f = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(f).st_size
out = os.read(f, 131072)
with open(sys.argv[2] + ".ready.new", "w") as ready:
    print(out.count(b"\n"), file=ready)
os.rename(sys.argv[2] + ".ready.new", sys.argv[2] + ".ready")
while not os.path.exists("go"):
    time.sleep(0.02)
want = sys.argv[3].encode()
while not out.endswith(want + b"\n"):
    b = os.read(f, 131072)
    if not b:
        break
    out += b
assert "follow" in sys.argv[1] or os.fstat(f).st_size >= size, "the size shrank"
open(sys.argv[2], "wb").write(out)
X
records 1 40000
last=$(printf %0200d 40000)
segments() { ls "$D"/t1-0/*.log | wc -l; }
between "segments before cleaning" 7 20 "$(segments)"
"$PY" reader.py $P plain "$last" & R1=$!
"$PY" reader.py $M/t1/follow/p0 followed "$last" & R2=$!
"$PY" reader.py $M/t1/as/g/p0 group "$last" & R3=$!
wait_for 20 "three readers in the middle" test -e plain.ready -a -e followed.ready -a -e group.ready
tail -f -n 1 $P >tailed & TAIL=$!
status 0 klog config set topic t1 cleanup.policy=compact segment.ms=1 min.cleanable.dirty.ratio=0
cleaned() { grep -q "t1-0: cleaned up to offset 40000: 1000 of 40000 records" "$KLOGD_LOG"; }
wait_for 30 "the log is clean" cleaned
touch go
for r in $R1 $R2 $R3; do wait $r || fail "a reader"; done
for f in plain followed group; do
    eq "$f: lines that are not whole" 0 "$(awk 'length($0) != 200' $f | wc -l)"
    sort -c -u $f || fail "$f: records twice or out of order"
    between "$f: records" $(($(cat $f.ready) + 1000)) 35000 "$(wc -l <$f)"
    seq -f %0200.0f 39001 40000 >left
    tail -n 1000 $f | cmp - left || fail "$f: not all that is left was read"
done
printf "new:%0200d\n" 40001 | produce -K: -t t1 -p 0
wait_lines tailed 2
kill $TAIL
wait $TAIL
eq "what tail -f printed" "$(seq -f %0200.0f 40000 40001)" "$(cat tailed)"

# A group goes over what is gone: where its position is, and where none of its lines is left.
eq "what the group reads next" "$(printf %0200d 40001)" "$(tail -n 1 $M/t1/as/g/p0)"
eq "its position" 40001 "$(cat $M/t1/.groups/g/p0)"
echo 500 >$M/t1/.groups/g/p0
eq "records from where all is gone" 1001 "$(wc -l <$M/t1/as/g/p0)"
eq "its position" 40001 "$(cat $M/t1/.groups/g/p0)"

# Opened from closed: the positions are dense again.
closed() { [ "$(stat -c %s $P)" = $((1001 * 201)) ]; }
wait_for 10 "the base moves" closed
seq -f %0200.0f 39001 40001 >left
same "what cat reads" left <(cat $P)
eq "tail -c" "$(printf %0200d 40001)" "$(tail -c 201 $P)"
eq "dd in the middle" "$(printf %0200d 39501)" "$(dd if=$P bs=201 skip=500 count=1 status=none)"
