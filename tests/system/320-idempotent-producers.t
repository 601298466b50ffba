# SPDX-License-Identifier: Apache-2.0
# A known producer that leaves a gap is error 45, a repeated batch gets its first offset again and is stored once, also after kill
# -9; an unknown producer may start anywhere.
# https://github.com/redpanda-data/redpanda/issues/22670 https://github.com/apache/kafka/pull/5448
# https://github.com/apache/kafka/pull/5518 https://github.com/confluentinc/confluent-kafka-python/issues/1128
klogd_start
topic ip
cat >steps.py <<'X'
import sys
from kwire import Conn, batch
def one(seq, n=1, pid=None, epoch=0):
    return batch([b"s%d" % (seq + i) for i in range(n)], pid=PID if pid is None else pid, epoch=epoch, seq=seq, ts=1000000)
c = Conn()
if sys.argv[1] == "first":
    err, PID, epoch = c.init_producer_id()
    assert (err, epoch) == (0, 0)
    assert c.init_producer_id()[1] != PID, "the same producer id twice"
    open("pid", "w").write(str(PID))
    assert c.produce("ip", 0, one(0, 3)) == (0, 0)
    assert c.produce("ip", 0, one(3)) == (0, 3)
    assert c.produce("ip", 0, one(3)) == (0, 3), "a repeat gets its first offset"
    assert c.produce("ip", 0, one(0, 3)) == (0, 0)
    assert c.produce("ip", 0, one(5))[0] == 45, "a gap"
    for s in range(4, 9):
        assert c.produce("ip", 0, one(s)) == (0, s)
    for s in range(4, 9):
        assert c.produce("ip", 0, one(s)) == (0, s), "each of the last five"
    assert c.produce("ip", 0, one(3))[0] in (45, 46), "older than the window"
    assert c.list_offset("ip", 0, -1)[2] == 9
else:
    PID = int(open("pid").read())
    n = int(sys.argv[2])
    for s in range(n - 5, n):
        assert c.produce("ip", 0, one(s)) == (0, s), ("the window after the restart", s)
    assert c.produce("ip", 0, one(n + 1))[0] == 45
    assert c.produce("ip", 0, one(n)) == (0, n)
    assert c.list_offset("ip", 0, -1)[2] == n + 1
X
"$PY" steps.py first || fail "before"
klogd_kill
klogd_restart
"$PY" steps.py again 9 || fail "after kill -9"
klogd_stop
klogd_restart
"$PY" steps.py again 10 || fail "after a clean stop"
klogd_kill
ls "$D"/ip-0/*.producers >/dev/null || fail "there are no snapshots"
rm "$D"/ip-0/*.producers
klogd_restart
"$PY" steps.py again 11 || fail "after kill -9 without snapshots"
"$PY" - <<'X' || fail "epochs and strangers"
from kwire import Conn, batch
c = Conn()
PID = int(open("pid").read())
def one(seq, pid, epoch): return batch([b"e"], pid=pid, epoch=epoch, seq=seq)
assert c.produce("ip", 0, one(7, PID, 1))[0] == 45, "a new epoch starts at 0"
assert c.produce("ip", 0, one(0, PID, 1))[0] == 0
assert c.produce("ip", 0, one(12, PID, 0))[0] == 47, "an old epoch"
assert c.produce("ip", 0, one(77, 424242, 0))[0] == 0, "unknown to the broker"
assert c.produce("ip", 0, one(-1, PID, 1))[0] == 87
X
eq "records" 14 "$(end_offset ip)"
(seq 7; cat <(:); seq 8 14) | $K -P -t ip -p 0 -X enable.idempotence=true -X linger.ms=0 || fail "an idempotent kcat"
eq "records" 28 "$(end_offset ip)"
