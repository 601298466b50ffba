# SPDX-License-Identifier: Apache-2.0
# Records of __consumer_offsets that another program wrote (Kafka lets who calls himself __admin_client): the broker starts, says what it did not take,
# and its groups work.
klogd_start --override offsets.topic.num.partitions=1 --override group.initial.rebalance.delay.ms=0
topic t 1
"$PY" - <<'X' || fail "writing them"
from kgroup import *
from kwire import batch
import time
c = GroupConn()
c.until_loaded()
assert c.commit("mine", {"t": [(0, 5)]}) == {("t", 0): 0}
NOW = int(time.time() * 1000)
def member(mid, inst=None, session=1000): return string(mid) + string(inst) + string("c") + string("/h") + i32(1000) + i32(session) + data(b"m") + data(b"a")
def group(generation, protocol, leader, members, count=None, since=NOW):
    return i16(3) + string("consumer") + i32(generation) + string(protocol) + string(leader) + i64(since) + (i32(count) if count is not None else i32(len(members))) + b"".join(members)
def key(name): return i16(2) + string(name)
def offset_key(name, topic, partition, version=1): return i16(version) + string(name) + string(topic) + i32(partition)
def offset(at, version=3, note=""): return i16(version) + i64(at) + (i32(-1) if version >= 3 else b"") + string(note) + i64(NOW)
records = [
    (key("two-with-one-name"), group(1, "range", "m1", [member("m1", "s"), member("m2", "s")])),
    (key("two-with-one-id"), group(1, "range", "m1", [member("m1"), member("m1")])),
    (key("no-leader"), group(1, "range", None, [member("m1")])),
    (key("strange-leader"), group(1, "range", "who", [member("m1")])),
    (key("no-protocol"), group(1, None, "m1", [member("m1"), member("m2")])),
    (key("no-id"), group(1, "range", "", [member(""), member("m1")])),
    (key("below-zero"), group(-5, "range", "m1", [member("m1")], since=-2**63)),
    (key("at-the-end"), group(2**31 - 1, "range", "m1", [member("m1")], since=2**63 - 1)),
    (key("sessions"), group(1, "range", "m1", [member("m1", session=-2**31), member("m2", session=0)])),
    (key("many"), group(1, "range", "m1", [], count=2**31 - 1)),
    (key("fewer"), group(1, "range", "m1", [], count=-2)),
    (key("later"), i16(9) + b"whatever comes"),
    (key("na\0me"), group(1, "range", "m1", [member("m1")])),
    (key(""), group(1, "range", "m1", [member("m1")])),
    (i16(3) + b"a new kind", b"?"), (i16(17), None), (b"\1", b""), (b"", None), (i16(-3) + b"x", b"y"),
    (key("gone"), group(1, "range", "m1", [member("m1")])), (key("gone"), None), (key("never"), None),
    (offset_key("theirs", "t", 0), offset(7, note="n" * 32767)), (offset_key("theirs", "t", 3, 0), offset(8, 1) + i64(NOW + 10**9)), (offset_key("theirs", "t", 1), offset(9, 0)),
    (offset_key("theirs", "t", -1), offset(1)), (offset_key("theirs", "t\0", 0), offset(1)), (offset_key("theirs", "t", 2), offset(1)[:-3]),
    (offset_key("mi\0ne", "t", 0), offset(1)), (offset_key("theirs", "t", 4), None), (offset_key("negative", "t", 0), offset(-2**63)),
]
body = string(None) + i16(-1) + i32(5000) + array([string("__consumer_offsets") + array([i32(0) + data(batch(records))])])
r = c.reply(c.send(0, 7, body, client="__admin_client"))
r.i32(), r.string(), r.i32(), r.i32()
assert r.i16() == 0
X
klogd_kill
klogd_restart
"$PY" - <<'X' || fail "after the start"
from kgroup import *
import time
c = GroupConn()
c.until_loaded("mine")
assert c.positions("mine")[1][("t", 0)][0] == 5
assert {k: v[0] for k, v in c.positions("theirs")[1].items()} == {("t", 0): 7, ("t", 1): 9, ("t", 3): 8}, c.positions("theirs")
names = set(c.groups()[1])
assert not {"gone", "never", "many", "fewer", "later", "na", "na\0me"} & names, names
for name in "two-with-one-name", "two-with-one-id", "no-leader", "strange-leader", "no-protocol", "no-id", "below-zero", "at-the-end", "sessions":
    assert name in names, name
    j = None
    # those who are said to be members do not come: their sessions end, and the group is anybody's
    while j is None or j.code != 0:
        assert j is None or j.code in (79, 23, 27, 25), (name, j.code)
        j = c.join(name, member_id=j.member_id if j is not None and j.code == 79 else "", rebalance_ms=2000)
    assert c.sync(name, j.generation, j.member_id, [(j.member_id, b"mine")]) == (0, b"mine"), name
    assert c.commit(name, {"t": [(0, 3)]}, j.generation, j.member_id) == {("t", 0): 0}, name
X
eq "lines about them" 1 "$(grep -c 'records were not, or not wholly, taken' "$KLOGD_LOG")"
klogd_stop
klogd_restart
"$PY" - <<'X' || fail "after another start"
from kgroup import *
c = GroupConn()
c.until_loaded("mine")
assert c.positions("two-with-one-name")[1][("t", 0)][0] == 3
X
klogd_stop
