# SPDX-License-Identifier: Apache-2.0
"""large_groups.py PID: a group of 1,000 members, then 5,000 groups, against klogd with that process id. Prints what they cost; fails
when joins do not settle or cost too much."""
import os
import sys
import time

from kgroup import COMMIT, GroupConn, array, assignment, error, i32, i64, string, subscription

PID = int(sys.argv[1])
FACTOR = int(os.environ.get("TEST_TIMEOUT_FACTOR", "1"))     # under sanitizers all costs more, memory too
MEMBERS, GROUPS, CONNS, PARTITIONS = 1000, 5000, 50, 10
WANTS = (("range", subscription(["t"])), ("roundrobin", subscription(["t"])))


def rss_kb():
    with open("/proc/%d/status" % PID) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def cpu_s():
    with open("/proc/%d/stat" % PID) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


class Cost:
    def __init__(self, what, cpu_max_s):
        self.what, self.cpu_max_s = what, cpu_max_s

    def __enter__(self):
        self.t, self.c, self.m = time.time(), cpu_s(), rss_kb()
        return self

    def __exit__(self, failed, *_):
        self.kb = rss_kb() - self.m
        t, c = time.time() - self.t, cpu_s() - self.c
        print("%-32s %6.2f s %6.2f s of klogd's CPU %7d kB" % (self.what, t, c, self.kb), flush=True)
        assert failed or c <= self.cpu_max_s * FACTOR, "took more than %g s of CPU" % self.cpu_max_s


def check(code):
    assert code == 0, error(code)


def send_joins(members, ids):
    for m, i in zip(members, ids):
        m.send_join("big", member_id=i, protocols=WANTS, version=4, session_ms=60000, client="c")


def join_all(members, ids):
    send_joins(members, ids)
    return [m.got_join(4) for m in members]


def sync_all(members, ids, joined):
    leader = next(k for k, j in enumerate(joined) if j.members)
    assert len(joined[leader].members) == MEMBERS
    plan = [(i, assignment({"t": [k % PARTITIONS]})) for k, i in enumerate(ids)]
    for k, m in enumerate(members):
        m.send_sync("big", joined[k].generation, ids[k], plan if k == leader else ())
    for m in members:
        code, mine = m.got_sync()
        check(code)
        assert mine
    return leader


def one_large_group():
    members = [GroupConn(timeout=100) for _ in range(MEMBERS)]
    for m in members:
        assert m.coordinator("big") == 0                # so that the connections are there, and counted before
    with Cost("1,000 members join", 2) as cost:
        ids = [j.member_id for j in join_all(members, [""] * MEMBERS)]
        joined = join_all(members, ids)
        for j in joined:
            check(j.code)
        leader = sync_all(members, ids, joined)
    print("bytes a member: %d" % (cost.kb * 1024 // MEMBERS))
    assert cost.kb * 1024 < 12000 * MEMBERS * FACTOR
    with Cost("3,000 heartbeats", 2):
        for _ in range(3):
            for m, i in zip(members, ids):
                check(m.heartbeat("big", joined[0].generation, i))
    with Cost("1,000 members rebalance", 2):
        members.insert(0, members.pop(leader))          # the leader's join starts it
        ids.insert(0, ids.pop(leader))
        send_joins(members[:1], ids[:1])
        while members[1].heartbeat("big", joined[0].generation, ids[1]) == 0:
            pass                                        # a join that comes before it finds nothing to do and is answered at once
        send_joins(members[1:], ids[1:])
        joined = [m.got_join(4) for m in members]
        for j in joined:
            check(j.code)
        sync_all(members, ids, joined)
    for m in members:
        m.close()


def many_groups():
    conns = [GroupConn(timeout=100) for _ in range(CONNS)]
    with Cost("5,000 groups of one member", 10) as cost:
        for first in range(0, GROUPS, CONNS):
            names = ["group-%d" % (first + k) for k in range(CONNS)]
            for c, g in zip(conns, names):
                c.send_join(g, protocols=WANTS[:1], version=3, session_ms=600000, client="c")
            joined = [c.got_join(3) for c in conns]
            for c, g, j in zip(conns, names, joined):
                check(j.code)
                c.send_sync(g, j.generation, j.member_id, [(j.member_id, assignment({"t": list(range(PARTITIONS))}))])
            for c in conns:
                check(c.got_sync()[0])
    print("bytes a group: %d" % (cost.kb * 1024 // GROUPS))
    assert cost.kb * 1024 < 6000 * GROUPS * FACTOR
    with Cost("5,000 groups of 10 positions", 10) as cost:
        for first in range(0, GROUPS, CONNS):
            for k, c in enumerate(conns):
                c.send(COMMIT, 7, string("positions-%d" % (first + k)) + i32(-1) + string("") + string(None) + array(
                    [string("t") + array([i32(p) + i64(5) + i32(-1) + string("") for p in range(PARTITIONS)])]))
            for c in conns:
                c.answer()
    print("bytes a group with 10 positions: %d" % (cost.kb * 1024 // GROUPS))
    assert cost.kb * 1024 < 8000 * GROUPS * FACTOR
    code, groups = conns[0].groups()
    check(code)
    assert len(groups) >= 2 * GROUPS, len(groups)


if sys.argv[2] == "large":
    one_large_group()
else:
    many_groups()
