# SPDX-License-Identifier: Apache-2.0
# Compaction leaves segments without a record: the mount reads over any number of them in front, in the middle and at the end, before and after
# DeleteRecords, and so do clients that take an answer without records for a record too large for them.
requires kcat
klogd_start --override log.cleaner.backoff.ms=50 --override log.retention.check.interval.ms=100
mount_start
topic t1 cleanup.policy=compact segment.bytes=1024 min.cleanable.dirty.ratio=1
# put FIRST LAST KEYS: records with numbers, one a batch, some seven a segment
put() { seq "$1" "$2" | awk -v k="$3" '{ printf "%s%d:%0120d\n", k, $1 % 8, $1 }' | $K -P -K: -t t1 -p 0 -X batch.num.messages=1; }
put 1 8 front
put 1 160 a  # all but the last eight go
put 1 8 middle
put 161 320 a # so do these
put 1 8 last
put 321 480 b
seq 0 7 | awk '{ printf "b%d:\n", $1 }' | $K -P -K: -Z -t t1 -p 0 -X batch.num.messages=1 # so are these; what deletes them stays a day
put 1 16 active
status 0 klog config set topic t1 min.cleanable.dirty.ratio=0
emptied() { find "$D/t1-0" -name '*.log' -size -62c -size +60c | wc -l; }
# The second pass would come when the marks of deletion may go, and would join what the first has emptied: not today.
clean() { grep -qE 't1-0: cleaned up to offset' "$KLOGD_LOG" && [ "$(emptied)" -ge 12 ]; }
wait_for 20 "segments without a record" clean
# What a group reads is by offsets, and was right already; kcat would say of a dozen empty answers that a message is too large.
everything() { consume t1 -X fetch.wait.max.ms=10 >want; }
all_ways() {
    local size
    status 0 everything
    size=$(stat -c %s want)
    settled() { [ "$(stat -c %s $P)" = "$size" ]; }
    wait_for 10 "the size that kcat shows" settled
    same "cat" want <(cat $P)
    eq "wc -c" "$size" "$(wc -c <$P)"
    eq "tail -n 3" "$(tail -n 3 want)" "$(tail -n 3 $P)"
    same "follow" want <(head -c "$size" $M/t1/follow/p0)
    same "a group" want <(cat "$M/t1/as/$1/p0")
    for at in 0 500 1000 1500 2000; do
        same "dd at $at" <(tail -c +$((at + 1)) want | head -c 700) <(dd if=$P iflag=skip_bytes,count_bytes skip=$at count=700 status=none)
    done
}
all_ways g1
# DeleteRecords into the middle of what is empty
status 0 klog config set topic t1 cleanup.policy=compact,delete
cat >delete.py <<'X'
import sys
from kwire import Conn, array, i32, i64, string
c = Conn()
r = c.ask(21, 1, array([string("t1") + array([i32(0) + i64(int(sys.argv[1]))])]) + i32(10000))
r.i32()
print(r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i64(), r.i16())))))
X
for before in 5 60 170 500; do
    eq "DeleteRecords" "[('t1', [(0, $before, 0)])]" "$("$PY" delete.py $before)"
    all_ways g$before
done
