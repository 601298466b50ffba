# SPDX-License-Identifier: Apache-2.0
# The deletion of a topic ends before the tombstones of its positions are written (here they cannot be): after a restart the
# positions are not those of the topic made anew, and those of other topics are still there.
klogd_start --override offsets.topic.num.partitions=1
cat >steps.py <<'END'
import sys
from kgroup import *
c = GroupConn(timeout=30)
def commit(topics):
    c.until_loaded()
    while True:
        got = c.commit("g", topics)
        if set(got.values()) & {14, 15, 16}: continue
        return got
def min_isr(n):
    r = c.ask(44, 0, array([i8(2) + string("__consumer_offsets") + array([string("min.insync.replicas") + i8(0) + string(n)])]) + i8(0))
    r.i32()
    assert r.array(lambda: (r.i16(), r.string(), r.i8(), r.string()))[0][0] == 0
def positions(*how):
    while True:
        code, got = c.positions("g", *how)
        if code == 0: return {k: v[0] for k, v in got.items()}
        assert code == 14, code
if sys.argv[1] == "1":
    assert c.create_topic("t")[0] == c.create_topic("kept")[0] == 0
    assert set(commit({"t": [(0, 5)], "kept": [(0, 7)]}).values()) == {0}
    min_isr("2")
    assert c.delete_topic("t") == 0
    assert c.commit("g", {"kept": [(0, 8)]}) == {("kept", 0): 15}   # nothing is written to the positions' log now
elif sys.argv[1] == "2":
    assert positions() == {("kept", 0): 7}, positions()
    assert positions({"t": [0], "kept": [0]}) == {("t", 0): -1, ("kept", 0): 7}
    assert c.create_topic("t")[0] == 0
    assert positions({"t": [0], "kept": [0]}) == {("t", 0): -1, ("kept", 0): 7}
    assert positions() == {("kept", 0): 7}
    min_isr("1")
    assert commit({"t": [(0, 1)]}) == {("t", 0): 0}
else:
    assert positions() == {("kept", 0): 7, ("t", 0): 1}, positions()
END
"$PY" steps.py 1 || fail "deletion"
for step in 2 3; do
    kill -9 "$KLOGD_PID"; wait "$KLOGD_PID" 2>/dev/null
    klogd_start --override offsets.topic.num.partitions=1
    "$PY" steps.py $step || fail "step $step"
done
klogd_stop
status 0 "$BUILDDIR/src/klog" verify "$D"
