# SPDX-License-Identifier: Apache-2.0
# An answer is never larger than clients take, whatever a small request names: what does not fit gets an error, or the connection
# ends; others are served meanwhile, and the broker's memory stays bounded.
klogd_start
topic t 1
"$PY" - "$KLOGD_PID" <<'X' || fail "answers"
import sys
from kwire import *
LIMIT = 90 << 20
def peak_kb(): return int([l for l in open("/proc/%s/status" % sys.argv[1]) if l.startswith("VmHWM")][0].split()[1])
c, other = Conn(timeout=120), Conn(timeout=120)

# DescribeConfigs v3 with documentation: 10,000 times the broker, 30 kB each time
c.send(32, 3, i32(10000) + (i8(4) + string("1") + i32(-1)) * 10000 + i8(1) + i8(1))
f = c.frame()
assert 1 << 20 < len(f) <= LIMIT, len(f)
r = Reader(f)
r.i32(), r.i32()
n = r.i32()
assert n == 10000
results = []
def config():
    r.string(), r.string(), r.i8(), r.i8(), r.i8()
    r.array(lambda: (r.string(), r.string(), r.i8()))
    r.i8(), r.string()
for _ in range(n):
    err, text, kind, name = r.i16(), r.string(), r.i8(), r.string()
    results.append((err, text, len(r.array(config) or [])))
assert r.rest() == 0
assert results[0][0] == 0 and results[0][2] > 50, results[0]
assert results[-1] == (42, "the answer would be too large: ask for fewer at once", 0), results[-1]

# Metadata: what is named many times is answered once, as Kafka does
for topics in 200000, 3:
    c.send(3, 1, i32(topics) + string("t") * topics)
    f = c.frame()
    assert f.count(b"\0\x01t") == 1, (topics, f)
assert other.metadata(["t"])["t"] == (0, 1)
assert peak_kb() < 600 * 1024, peak_kb()
X
gone "$KLOGD_PID" && fail "klogd ended"
echo ok | grow t
eq "stored" ok "$(consume t)"
