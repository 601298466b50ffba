# SPDX-License-Identifier: Apache-2.0
# A record larger than what the consumer asked for comes whole, first and alone.
# https://github.com/Parsely/pykafka/issues/102 https://github.com/SOHU-Co/kafka-node/issues/96
# https://github.com/confluentinc/librdkafka/issues/482
klogd_start
topic t1 2
head -c 900000 /dev/urandom | base64 -w0 | head -c 900000 >big
produce -t t1 -p 0 big
echo next | grow
eq "bytes" 900006 "$(consume t1 -X fetch.message.max.bytes=1024 -X fetch.max.bytes=2048 -X receive.message.max.bytes=100000000 -X message.max.bytes=2000 | wc -c)"
"$PY" - <<'X' || fail "limits"
from kwire import Conn, batch, batches, i8, i32, i64, string, array
c = Conn()
for i in range(20):
    assert c.produce("t1", 1, batch([bytes(1000)]))[0] == 0
err, hw, lso, b = c.fetch("t1", 0, 0, max_bytes=10, partition_max=10)
assert err == 0 and len(batches(b)) == 1 and len(b) > 900000
err, hw, lso, b = c.fetch("t1", 1, 0, partition_max=5000)
assert err == 0 and hw == 20 and 1000 < len(b) <= 5000
# One reply for two partitions: only the first may break the limit.
r = c.ask(1, 4, i32(-1) + i32(0) + i32(1) + i32(100) + i8(0) + array([string("t1") + array([i32(p) + i64(0) + i32(100) for p in (0, 1)])]))
r.i32(), r.i32(), r.string()
sizes = r.array(lambda: (r.i32(), r.i16(), r.i64(), r.i64(), r.array(lambda: (r.i64(), r.i64())), len(r.data())))
assert sizes[0][5] > 900000 and sizes[1][5] <= 100, sizes
X
