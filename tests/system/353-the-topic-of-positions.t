# SPDX-License-Identifier: Apache-2.0
# __consumer_offsets cannot be deleted or grown, nor be set so that positions expire; made by hand it is as the broker makes it itself.
requires_fuse
klogd_start --override offsets.topic.num.partitions=3
mount_start
mkdir "$M/__consumer_offsets" || fail "mkdir"
"$PY" - <<'X' || fail "by hand"
from kwire import *
c = Conn()
assert c.metadata(["__consumer_offsets"])["__consumer_offsets"][1] == 3
X
has "settings" 'cleanup.policy +compact +topic' "$(klog config get topic __consumer_offsets)"
fails "Operation not permitted" rmdir "$M/__consumer_offsets"
fails "cannot be deleted; delete groups instead" klog topic delete __consumer_offsets
mount_stop
klogd_stop
rm -rf "$D"
klogd_start --override offsets.topic.num.partitions=3
"$PY" - "$KLOGD_PID" <<'X' || fail "requests"
from kgroup import *
c = GroupConn()
O = "__consumer_offsets"
def create(n, configs=(), assignment=()):
    r = c.ask(19, 5 - 1, array([string(O) + i32(n) + i16(-1 if assignment else 1) + array([i32(p) + array([i32(b) for b in bs]) for p, bs in assignment])
                                + array([string(k) + string(v) for k, v in configs])]) + i32(10000) + i8(0))
    r.i32()
    return r.array(lambda: (r.string(), r.i16(), r.string()))[0][1]
def config(name):
    r = c.ask(32, 1, array([i8(2) + string(O) + array([string(name)])]) + i8(0))
    r.i32()
    return r.array(lambda: (r.i16(), r.string(), r.i8(), r.string(), r.array(lambda: (r.string(), r.string(), r.i8(), r.i8(), r.i8(), r.array(lambda: (r.string(), r.string(), r.i8()))))))[0][4][0][1]
def delete():
    r = c.ask(20, 3, array([string(O)]) + i32(5000))
    r.i32()
    return r.array(lambda: (r.string(), r.i16()))[0][1]
def grow(n, dry=0):
    r = c.ask(37, 1, array([string(O) + i32(n) + i32(-1)]) + i32(5000) + i8(dry))
    r.i32()
    return r.array(lambda: (r.string(), r.i16(), r.string()))[0][1]
def alter(op, value, key="cleanup.policy"):
    r = c.ask(44, 0, array([i8(2) + string(O) + array([string(key) + i8(op) + string(value)])]) + i8(0))
    r.i32()
    return r.array(lambda: (r.i16(), r.string(), r.i8(), r.string()))[0][0]
def replace(*configs):
    r = c.ask(33, 1, array([i8(2) + string(O) + array([string(k) + string(v) for k, v in configs])]) + i8(0))
    r.i32()
    return r.array(lambda: (r.i16(), r.string(), r.i8(), r.string()))[0][0]
one = create(1, (("no.such.key", "1"),))
assert one == 40, one
assert create(-1, (("cleanup.policy", "delete"), ("retention.ms", "1000")), ((0, (1,)),)) == 0
assert c.metadata([O])[O][1] == 3
assert config("cleanup.policy") == "compact" and config("retention.ms") == "1000"
assert create(3) == 36
c.create_topic("t", 1)
c.until_loaded()
while c.commit("g", {"t": [(0, 5)]}) != {("t", 0): 0}: pass
assert delete() == 17 and grow(4) == 17 and grow(4, 1) == 17 and grow(2) == 17
assert alter(0, "delete") == alter(0, "compact,delete") == alter(2, "delete") == alter(1, None) == alter(3, "compact") == 40
assert replace(("retention.ms", "5")) == replace() == replace(("cleanup.policy", "delete")) == 40
assert alter(0, "compact") == 0 and alter(0, "20000000", "max.message.bytes") == 0 and replace(("cleanup.policy", "compact")) == 0
r = c.ask(21, 1, array([string(O) + array([i32(0) + i64(-1)])]) + i32(5000))
r.i32(), r.i32(), r.string(), r.i32(), r.i32(), r.i64()
assert r.i16() == 17
assert c.positions("g")[1][("t", 0)][0] == 5
# A group that loses its last position is an empty one, and can be deleted.
assert c.delete_positions("g", {"t": [0]}) == (0, {("t", 0): 0})
assert c.describe("g")[1] == "Empty" and "g" in c.groups()[1] and c.positions("g") == (0, {})
assert c.delete_positions("g", {"t": [0]}) == (0, {("t", 0): 0})
assert c.delete_groups("g") == {"g": 0} and c.describe("g")[1] == "Dead" and c.delete_groups("g") == {"g": 69}
# ... also when it lost it with its topic
c.create_topic("t2", 1)
assert c.commit("h", {"t2": [(0, 5)]}) == {("t2", 0): 0}
c.delete_topic("t2")
while c.positions("h")[1]: pass
assert c.describe("h")[1] == "Empty" and c.delete_groups("h") == {"h": 0} and "h" not in c.groups()[1]
X
klogd_stop
