# SPDX-License-Identifier: Apache-2.0
# What groups keep and what is answered about them has limits: a group that is named thousands of times, members with large metadata, ids that nobody
# uses. Who asks for too much is told so; the broker's memory stays bounded, and the groups work.
klogd_start --override group.initial.rebalance.delay.ms=0 --override group.min.session.timeout.ms=1000
topic t 100
"$PY" - "$KLOGD_PID" <<'X' || fail "answers"
import os, sys, time
from kmsg import MsgConn
from kgroup import *
LIMIT = 92 << 20
def peak_kb(): return int([l for l in open("/proc/%s/status" % sys.argv[1]) if l.startswith("VmHWM")][0].split()[1])
def G(): return GroupConn(timeout=120)
def whole(d):
    """The next answer, which may be large; its size."""
    def take(n):
        b = bytearray(n)
        view = memoryview(b)
        while len(view) > 0:
            got = d.s.recv_into(view)
            assert got > 0, "closed"
            view = view[got:]
        return bytes(b)
    size = int.from_bytes(take(4), "big")
    d.frame = lambda: take(size)
    return size
c = G()
c.until_loaded()
MB = os.urandom(1) * 900000
j = c.join("g", instance="a", session_ms=300000, protocols=(("range", MB),))
assert c.sync("g", j.generation, j.member_id, [(j.member_id, b"x" * 1000)], instance="a") == (0, b"x" * 1000)

# DescribeGroups: as often as it is named, until the answer is full; then an error each, of Kafka's
def describe(n, names=("g",)):
    d = MsgConn(timeout=120)
    d.send_msg("DescribeGroups", 6, groups=list(names) * n)
    return whole(d), d.got_msg("DescribeGroups", 6)["groups"]
size, groups = describe(3)
assert [(x["error"], len(x["members"][0]["metadata"])) for x in groups] == [(0, 900000)] * 3
size, groups = describe(20000)
assert 50 << 20 < size < LIMIT, size
codes = [x["error"] for x in groups]
assert len(codes) == 20000 and codes[0] == 0 and codes[-1] == 42 and codes.count(0) > 50, codes.count(0)
assert groups[-1]["message"] == "the answer would be too large: ask for fewer at once"
size, groups = describe(1000, ("g", "nobody"))
assert len(groups) == 2000 and groups[1]["error"] == 69

# OffsetFetch: 100 positions with notes of 4 kB, 8,000 times
note = "n" * 4000
assert set(c.commit("go", {"t": [(p, 1, note) for p in range(100)]}).values()) == {0}
def fetch(n):
    d = MsgConn(timeout=120)
    d.send_msg("OffsetFetch", 8, groups=[dict(group="go", topics=None)] * n)
    return whole(d), d.got_msg("OffsetFetch", 8)["groups"]
size, groups = fetch(2)
assert [len(g["topics"][0]["partitions"]) for g in groups] == [100, 100] and groups[1]["topics"][0]["partitions"][99]["metadata"] == note
size, groups = fetch(8000)
assert 50 << 20 < size < LIMIT, size
assert len(groups) == 8000 and groups[0]["error"] == 0 and (groups[-1]["error"], groups[-1]["topics"]) == (42, [])
d = MsgConn(timeout=60)
p = d.ask_msg("OffsetFetch", 5, group="go", topics=[dict(name="t", partitions=list(range(100)) * 1000)])["topics"]
assert p == []
assert len(d.ask_msg("OffsetFetch", 5, group="go", topics=[dict(name="t", partitions=[5] * 2000)])["topics"][0]["partitions"]) == 2000

# A group takes so much and no more; what it had goes on.
big, n = b"m" * (4 << 20), 0
conns = []
while True:
    conns.append(G())
    conns[-1].send_join("big", version=3, session_ms=20000, rebalance_ms=600000, protocols=(("range", big),))
    if n == 0: # alone in the group: its answer comes, and the others wait for it to come again
        first = conns[-1].got_join(3)
    if n > 0 and not conns[-1].waits(1):
        refused = conns[-1].got_join(3)
        break
    n += 1
assert refused.code == 81 and n == 5, (refused.code, n)
assert c.describe("big")[1] in ("PreparingRebalance", "CompletingRebalance")

# Ids that are asked for and not used are counted, too.
codes = set()
d = MsgConn(timeout=60)
for i in range(2000):
    d.send_msg("JoinGroup", 4, client="c" * 32000, group="ids", session=60000, rebalance=60000, kind="consumer", protocols=[dict(name="range", metadata=b"m")])
    codes.add(d.got_msg("JoinGroup", 4)["error"])
    if 81 in codes: break
assert codes == {79, 81} and 300 < i < 800, (codes, i)

# An assignment that is too large is refused; the group goes on.
a = G()
j = a.join("assigning", version=3, session_ms=60000)
assert a.sync("assigning", j.generation, j.member_id, [(j.member_id, b"x" * (25 << 20))]) == (81, b"")
assert a.sync("assigning", j.generation, j.member_id, [(j.member_id, b"x" * 10)]) == (0, b"x" * 10)

# Three members whose metadata does not fit into one record: the leader is told, and when they have gone others use the group.
r, meta, got = [G() for _ in range(3)], [os.urandom(600000) for _ in range(3)], []
def join(i, member_id=""): r[i].send_join("record", version=3, member_id=member_id, session_ms=60000, rebalance_ms=60000, protocols=(("range", meta[i]),))
for i in range(3):
    join(i)
    while i > 0 and c.describe("record")[1] != "PreparingRebalance": pass
    for k in range(i): join(k, got[k].member_id)
    got = [r[k].got_join(3) for k in range(i + 1)]
assert [g.code for g in got] == [0, 0, 0] and len({g.generation for g in got}) == 1
lead = [i for i in range(3) if got[i].leader == got[i].member_id][0]
code, _ = r[lead].sync("record", got[lead].generation, got[lead].member_id, [(g.member_id, os.urandom(500000)) for g in got])
assert code == -1, code
for g in got: c.leave("record", (g.member_id, None))
s = G().join("record", version=3)
assert s.code == 0 and s.leader == s.member_id

# OffsetDelete and others that name one thing very often
code, parts = G().delete_positions("go", {"t": [5] * 200000})
assert code == 0 and parts == {("t", 5): 0}
assert len(c.positions("go")[1]) == 99
assert len(MsgConn(timeout=60).ask_msg("FindCoordinator", 4, keys=["g"] * 50000)["coordinators"]) == 50000
assert peak_kb() < 900 * 1024, peak_kb()
assert c.describe("g")[1] == "Stable"
X
has "line" "group record: its 3 members do not fit into one record" "$(cat "$KLOGD_LOG")"
klogd_stop
