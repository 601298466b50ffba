# SPDX-License-Identifier: Apache-2.0
# Timestamps in the far future are error 32 under the default bound; LogAppendTime is the broker's.
# https://github.com/apache/kafka/pull/19137 https://github.com/apache/kafka/pull/4473
# https://github.com/redpanda-data/redpanda/issues/4035
klogd_start
topic fut
topic lat 1 message.timestamp.type=LogAppendTime
"$PY" - <<'X' || fail "timestamps"
import time
from kwire import Conn, batch
c = Conn()
now = int(time.time() * 1000)
assert c.produce("fut", 0, batch([b"x"], ts=now * 1000))[0] == 32
assert c.produce("fut", 0, batch([b"x"], ts=now + 3700000))[0] == 32
assert c.produce("fut", 0, batch([b"x"], ts=now + 3500000)) == (0, 0)
assert c.produce("fut", 0, batch([b"x"], ts=-1)) == (0, 1)
assert c.produce("fut", 0, batch([b"x"], ts=1)) == (0, 2)
assert c.produce("lat", 0, batch([b"x"], ts=5)) == (0, 0)
err, hw, lso, b = c.fetch("lat", 0, 0)
from kwire import batches
b, = batches(b)
assert b.attributes & 8 and b.crc_good() and abs(b.max_ts - now) < 60000, (b.attributes, b.max_ts)
assert c.produce("fut", 0, batch([b"x"], attributes=8))[0] == 32
X
