# SPDX-License-Identifier: Apache-2.0
# Requests that are well formed but odd get what Apache Kafka answers.
klogd_start
topic t 1
topic latest 1 cleanup.policy=compact
topic both 1 cleanup.policy=compact,delete
"$PY" - <<'X' || fail "odd requests"
from kwire import *
c = Conn()
for i in range(3):
    assert c.produce("t", 0, batch([b"v%d" % i], ts=1000 + i)) == (0, i)

# Fetch sessions: epoch 0 opens one, -1 closes it, and both read; any other goes on with a session that is not there.
def fetch(session, epoch):
    part = i32(0) + i32(-1) + i64(0) + i64(-1) + i32(1 << 20)
    r = c.ask(1, 11, i32(-1) + i32(0) + i32(1) + i32(1 << 20) + i8(0) + i32(session) + i32(epoch)
              + array([string("t") + array([part])]) + array([]) + string(""))
    r.i32()
    return r.i16(), r.i32(), len(r.array(lambda: r.string() and r.take(r.rest())) or [])
for session, epoch in (0, 0), (0, -1), (77, 0), (77, -1):
    assert fetch(session, epoch) == (0, 0, 1), (session, epoch, fetch(session, epoch))
for session, epoch in (0, 1), (77, 1), (77, 5), (0, -2), (77, 2**31 - 1):
    assert fetch(session, epoch) == (70, 0, 0), (session, epoch, fetch(session, epoch))

# ListOffsets: names of ends that its version does not know, and a leader epoch that never was
def list_offsets(version, timestamp, epoch=-1):
    r = c.ask(2, version, i32(-1) + i8(0) + array([string("t") + array([i32(0) + i32(epoch) + i64(timestamp)])]))
    r.i32(), r.i32(), r.string(), r.i32(), r.i32()
    return r.i16(), r.i64(), r.i64()
assert list_offsets(4, -1) == (0, -1, 3)
for timestamp in -3, -4, -5, -6, -2**63:
    assert list_offsets(4, timestamp) == (35, -1, -1), timestamp
assert list_offsets(4, -1, 1) == (75, -1, -1)
assert list_offsets(4, -1, -7) == (74, -1, -1)
assert list_offsets(4, 1001) == (0, 1001, 1)
assert list_offsets(4, 2**63 - 1) == (0, -1, -1)

# Produce: a time-out that is shorter than the disk's time does not call stored what is stored "timed out".
for timeout in 0, -1, 1:
    n = list_offsets(4, -1)[2]
    assert c.produce("t", 0, batch([b"at once"]), timeout_ms=timeout) == (0, n), timeout

# InitProducerId: whoever brings an id along gets another.
def init(pid, epoch):
    r = c.ask(22, 3, b"\0" + i32(60000) + i64(pid) + i16(epoch) + b"\0", flexible=True)
    r.uvarint(), r.i32()
    return r.i16(), r.i64(), r.i16()
one = init(-1, -1)
two = init(one[1], 3)
assert one[0] == two[0] == 0 and one[2] == two[2] == 0 and one[1] != two[1], (one, two)
assert init(5, -1)[0] == 42

# DeleteRecords: not where only the latest value of each key is kept
def delete_records(topic, offset):
    r = c.ask(21, 0, array([string(topic) + array([i32(0) + i64(offset)])]) + i32(10000))
    r.i32(), r.i32(), r.string(), r.i32(), r.i32()
    return r.i64(), r.i16()
assert delete_records("latest", 0) == (-1, 44)
assert delete_records("both", 0) == (0, 0)
assert delete_records("t", 1) == (1, 0)

# DeleteTopics: a topic that is named twice stays.
def delete_topics(*names):
    r = c.ask(20, 1, array([string(n) for n in names]) + i32(10000))
    r.i32()
    return r.array(lambda: (r.string(), r.i16()))
assert delete_topics("both", "nosuch", "both") == [("both", 42), ("nosuch", 3), ("both", 42)]
assert "both" in c.metadata()
assert delete_topics("both") == [("both", 0)]

# DescribeConfigs: no keys are all keys; no broker is what was set for all of them.
def describe(kind, name, keys):
    r = c.ask(32, 1, array([i8(kind) + string(name) + array(keys)]) + i8(0))
    r.i32(), r.i32()
    err, _, _, _ = r.i16(), r.string(), r.i8(), r.string()
    return err, r.i32()
assert describe(2, "t", []) == describe(2, "t", None) and describe(2, "t", [])[1] > 10
assert describe(2, "t", [string("retention.ms"), string("nosuch")]) == (0, 1)
assert describe(4, "", None) == (0, 0)
assert describe(4, "99", None) == (42, 0)
X
