# SPDX-License-Identifier: Apache-2.0
# Below the start offset a fetch is error 1 and tells where to go on; readers near the end never see it.
# https://github.com/platformatic/kafka/issues/304 https://github.com/apache/kafka/pull/204
# https://github.com/apache/kafka/pull/15631 https://github.com/redpanda-data/redpanda/pull/31064
# timeout: 90
klogd_start --override log.retention.check.interval.ms=200
topic rt 1 retention.bytes=300000 segment.bytes=100000
# a batch larger than a segment is refused
seq 1 200000 | produce -t rt -p 0 -X batch.size=20000
wait_for 20 "retention took the head" eval '[ "$(start_offset rt)" -gt 5 ]'
kept() { cat "$D"/rt-0/*.log | wc -c; }
# A segment goes when what stays is retention.bytes at least: below that and one segment more nothing goes any more.
wait_for 30 "all but what retention.bytes allows is gone" eval '[ "$(kept)" -lt 400000 ]'
between "bytes kept" 300000 400000 "$(kept)"
"$PY" - <<'X' || fail "fetch below the start"
from kwire import Conn, array, string, i8, i32, i64
c = Conn()
start = c.list_offset("rt", 0, -2)[2]
assert c.fetch("rt", 0, 5)[0] == 1
r = c.ask(1, 5, i32(-1) + i32(0) + i32(1) + i32(1000) + i8(0) + array([string("rt") + array([i32(0) + i64(5) + i64(-1) + i32(1000)])]))
r.i32(), r.i32(), r.string(), r.i32(), r.i32()
assert r.i16() == 1
hw, lso, log_start = r.i64(), r.i64(), r.i64()
assert log_start == start, (log_start, start)
assert c.records("rt", 0, start)[0][0] == start
X
eq "first record by kcat" "$(start_offset rt)" "$($KC -t rt -p 0 -o beginning -c1 -f '%o\n')"
"$PY" - <<'X' || fail "a reader that keeps up"
from kwire import Conn, batch
c = Conn()
b = batch([b"line %d of a batch" % i for i in range(500)])
at = c.list_offset("rt", 0, -1)[2]
for i in range(1500):
    assert c.produce("rt", 0, b) == (0, at)
    err, hw, lso, got = c.fetch("rt", 0, at)
    assert err == 0 and hw == at + 500 and len(got) == len(b), (i, err)
    at += 500
X
wait_for 20 "retention went on meanwhile" eval '[ "$(start_offset rt)" -gt 300000 ]'
