# SPDX-License-Identifier: Apache-2.0
# A Produce request that names thousands of partitions is worked off in pieces: another connection of the reactor is answered in
# between, and what its own client sent behind it takes effect behind it. A commit of more positions than Kafka's batch has room for
# is refused as Kafka refuses it.
# timeout: 120
klogd_start --override num.network.threads=1 --override offsets.topic.num.partitions=1
"$PY" - <<'X' || fail "requests"
import select
from kgroup import *
from kwire import *
N = 30000
c, other = Conn(timeout=60), Conn(timeout=60)
assert c.create_topic("t")[0] == 0
b = batch([b"v"])
many = string(None) + i16(1) + i32(30000) + array([string("t") + array([i32(0) + data(b)] * N)])
first = c.send(0, 7, many)
second = c.send(0, 7, Conn.produce_body("t", 0, batch([b"last"]), acks=1))
served = 0
while not select.select([c.s], [], [], 0)[0]:
    other.api_versions()
    served += 1
assert served >= 5, served
r = c.reply(first)
codes = [x for _, xs in r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i16(), r.i64(), r.i64(), r.i64())))) for x in xs]
assert [x[:3] for x in codes] == [(0, 0, i) for i in range(N)], codes[:3]
r = c.reply(second)
assert c.produced(r) == (0, N), "order"
end = c.list_offset("t", 0, -1)
assert end[2] == N + 1, end
# without an answer, and its client gone at once
gone = Conn()
gone.send(0, 7, string(None) + i16(0) + i32(30000) + array([string("t") + array([i32(0) + data(b)] * N)]))
gone.close()
while c.list_offset("t", 0, -1)[2] != 2 * N + 1: pass

g = GroupConn(timeout=60)
while g.coordinator("g") != 0: pass
while g.commit("g", {"t": [(0, 5)]}) != {("t", 0): 0}: pass
def commit(topics):
    g.send(COMMIT, 7, string("g") + i32(-1) + string("") + string(None) + array(
        [string(t) + array([i32(p) + i64(9) + i32(-1) + string("") for p in ps]) for t, ps in topics]))
    r = g.answer()
    r.i32()
    return [(t, {x[1] for x in ps}, len(ps)) for t, ps in r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i16()))))]
assert commit([("t", [0] * 20000)]) == [("t", {28}, 20000)]
assert commit([("none", [])] * 20000 + [("t", [0])])[-1] == ("t", {28}, 1)
assert g.positions("g")[1][("t", 0)][0] == 5
assert commit([("t", [0] * 19999)]) == [("t", {0}, 19999)]
assert g.positions("g")[1][("t", 0)][0] == 9
X
klogd_stop
