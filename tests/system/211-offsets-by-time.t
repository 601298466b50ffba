# SPDX-License-Identifier: Apache-2.0
# The offset of a time is that of the first record not older; past the last it is -1 without an error.
# https://github.com/edenhill/kcat/issues/117 https://github.com/edenhill/kcat/issues/399
# https://github.com/confluentinc/librdkafka/issues/1957
klogd_start
topic t1
topic tt 1 retention.ms=-1 segment.bytes=20000
"$PY" - <<'X' || fail "offsets"
import time
from kwire import *
c = Conn()
base = 1700000000000
for t in 1000000, 2000000, 3000000:
    assert c.produce("t1", 0, batch([b"%d" % t], ts=base + t))[0] == 0
for t, want in (0, 0), (base, 0), (base + 1000000, 0), (base + 1000001, 1), (base + 2000000, 1), (base + 2000001, 2), (base + 3000000, 2):
    assert c.list_offset("t1", 0, t)[::2] == (0, want), (t, c.list_offset("t1", 0, t))
assert c.list_offset("t1", 0, base + 3000001) == (0, -1, -1)
assert c.list_offset("t1", 0, 1800000000000) == (0, -1, -1)
assert c.list_offset("t1", 0, -1)[::2] == (0, 3)
assert c.list_offset("t1", 0, -2)[::2] == (0, 0)
assert c.list_offset("t1", 1, -1)[0] == 3

# Version 0, which Burrow and kafka-node ask with: a list.
def list_0(partition, t, n=1):
    r = c.ask(2, 0, i32(-1) + array([string("t1") + array([i32(partition) + i64(t) + i32(n)])]))
    assert r.i32() == 1 and r.string() == "t1" and r.i32() == 1 and r.i32() == partition
    got = r.i16(), r.array(r.i64)
    assert r.rest() == 0
    return got
assert list_0(0, -1) == (0, [3])
assert list_0(0, -1, 5) == (0, [3])
assert list_0(0, -2) == (0, [0])
assert list_0(0, base + 1000001) == (0, [1])
assert list_0(0, base + 3000001) == (0, [])
assert list_0(0, -1, 0) == (0, [])
assert list_0(1, -1) == (3, [])

# Out of order and further apart than 2^32 ms: the smallest offset with a time >= the target.
now = int(time.time() * 1000)
for t in now - 200000000, now - 9000000000, now - 100000, now - 8000000000:
    assert c.produce("tt", 0, batch([b"x"], ts=t))[0] == 0
for t, want in (now - 8999999999, 0), (now - 200000000, 0), (now - 199999999, 2), (now - 150000, 2), (now - 99999, -1):
    assert c.list_offset("tt", 0, t)[::2] == (0, want), (t - now, want, c.list_offset("tt", 0, t))

# Over many segments, one record a second.
for i in range(4, 400):
    assert c.produce("tt", 0, batch([b"y" * 1000], ts=now - 90000 + i * 100)) == (0, i)
for i in 4, 5, 50, 123, 399:
    assert c.list_offset("tt", 0, now - 90000 + i * 100)[::2] == (0, i), i
    assert c.list_offset("tt", 0, now - 90000 + i * 100 - 50)[::2] == (0, i), i
X
eq "kcat by time" "2000000 3000000" "$($KC -t t1 -p 0 -o s@1700002000000 -e | tr '\n' ' ' | sed 's/ $//')"
klogd_kill
klogd_restart
eq "time index after kill -9" "(0, 123)" "$("$PY" -c "
from kwire import Conn
c = Conn()
t = c.records('tt', 0, 123)[0][1]
print(c.list_offset('tt', 0, t)[::2])")"
