# SPDX-License-Identifier: Apache-2.0
"""mixed_group.py SECONDS SEED DIRECTORY KIND...

One group with members of several client libraries, which come, leave and are killed under a steady producer. KIND is kcat, kafka,
confluent (python) or js (kafkajs). In the end: every acknowledged record was processed, no generation gave a partition to two
members, no position ever went back, and after each event the group settled in time."""
import os
import random
import signal
import subprocess
import sys
import threading
import time

import group as group_tool
from kgroup import GroupConn, assigned, error
from kwire import Conn, batch

GROUP, TOPIC, PARTITIONS, MEMBERS_MAX = "mixed", "mixed", 6, 6
SESSION_S = 6
FACTOR = int(os.environ.get("TEST_TIMEOUT_FACTOR", "1"))
SETTLE_MAX_S = 2 * SESSION_S * FACTOR + 3    # a killed member is missed after its session, then all have to come again
HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(HERE, "..", "lib")

seconds, seed, where, kinds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
rnd = random.Random(seed)
admin = GroupConn()
stop = threading.Event()
acked = {p: set() for p in range(PARTITIONS)}        # offsets


def produce():
    c, n = Conn(), 0
    while not stop.is_set():
        p = n % PARTITIONS
        code, base = c.produce(TOPIC, p, batch([b"%d-%d" % (n, i) for i in range(5)]))
        assert code == 0, "produce: %d" % code
        acked[p].update(range(base, base + 5))
        n += 1
        stop.wait(0.02)


class Member:
    n = 0

    def __init__(self, kind):
        Member.n += 1
        self.kind, self.name = kind, "%s-%d" % (kind, Member.n)
        command = {
            "kcat": ["kcat", "-b", "127.0.0.1:9092", "-G", GROUP, "-u", "-f", "%p %o %s\n", "-X", "session.timeout.ms=6000",
                     "-X", "heartbeat.interval.ms=1000", "-X", "auto.commit.interval.ms=300", "-X", "auto.offset.reset=earliest",
                     "-X", "partition.assignment.strategy=range", "-X", "client.id=" + self.name, TOPIC],
            "js": ["node", os.path.join(LIB, "group_member.cjs"), GROUP, TOPIC],
        }.get(kind, [sys.executable, os.path.join(LIB, "group_member.py"), kind, GROUP, TOPIC])
        with open(os.path.join(where, self.name + ".out"), "wb") as out, open(os.path.join(where, self.name + ".log"), "wb") as log:
            self.p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log)

    def end(self, sig):
        self.p.send_signal(sig)
        try:
            self.p.wait(20 * FACTOR)
        except subprocess.TimeoutExpired:
            print("%s did not end by signal %d" % (self.name, sig), flush=True)
            self.p.kill()
            self.p.wait()


def settled(n):
    code, state, _, _, members, _ = admin.describe(GROUP)
    assert code == 0, error(code)
    owned = sorted(p for m in members for t, p in assigned(m[5]))
    return state == "Stable" and len(members) == n and owned == list(range(PARTITIONS))


def settle(what, members, slowest):
    t0 = time.time()
    while not settled(len(members)):
        for m in members:
            assert m.p.poll() is None, "%s ended by itself" % m.name
        if time.time() - t0 > SETTLE_MAX_S:
            code, state, _, _, known, _ = admin.describe(GROUP)
            raise AssertionError("after %s the group did not settle in %d s: %s, members %s, alive %s" % (
                what, SETTLE_MAX_S, state, [m[2] + "/" + m[0][-12:] for m in known], [m.name for m in members]))
        time.sleep(0.05)
    took = time.time() - t0
    slowest[what.split()[0]] = max(took, slowest.get(what.split()[0], 0))


def event(members):
    n = len(members)
    if n < 2 or (n < MEMBERS_MAX and rnd.random() < 0.45):
        m = Member(kinds[Member.n % len(kinds)])
        members.append(m)
        return "start of " + m.name
    m = members.pop(rnd.randrange(n))
    if m.kind == "kcat" or rnd.random() < 0.5:   # kcat drops, and commits, what it holds when it is told to end
        m.end(signal.SIGKILL)
        return "kill of " + m.name
    m.end(signal.SIGTERM)
    return "leave of " + m.name


def all_committed():
    ends = admin.positions(GROUP, {TOPIC: list(range(PARTITIONS))})[1]
    return all(ends[TOPIC, p][0] > max(acked[p]) for p in range(PARTITIONS))


def check_processed():
    seen = {p: set() for p in range(PARTITIONS)}
    lines = 0
    for name in os.listdir(where):
        if name.endswith(".out"):
            with open(os.path.join(where, name), errors="replace") as f:
                for line in f:
                    if line.endswith("\n"):
                        p, offset, _ = line.split(" ", 2)
                        seen[int(p)].add(int(offset))
                        lines += 1
    for p in range(PARTITIONS):
        missing = sorted(acked[p] - seen[p])
        assert not missing, "partition %d: %d records were processed by nobody, first at %d" % (p, len(missing), missing[0])
    return lines


def check_history():
    at, generations = {}, 0
    for h in group_tool.history(admin, GROUP):
        if h[0] == "position":
            assert h[3] >= at.get(h[2], 0), "the position of partition %d went back from %d to %d" % (h[2], at[h[2]], h[3])
            at[h[2]] = h[3]
        elif h[1] is not None:
            owned = [p for _, a in h[2] for _, p in assigned(a)]
            assert len(owned) == len(set(owned)), "generation %d gave a partition to two: %s" % (h[1], owned)
            assert not h[2] or sorted(owned) == list(range(PARTITIONS)), "generation %d forgot one: %s" % (h[1], owned)
            generations = max(generations, h[1])
    return generations


def main():
    writer = threading.Thread(target=produce, daemon=True)
    writer.start()
    members, slowest, events = [], {}, 0
    until = time.time() + seconds
    try:
        while time.time() < until or len(members) < 2:
            settle(event(members), members, slowest)
            events += 1
            assert writer.is_alive(), "the producer ended"
            stop.wait(rnd.uniform(0.2, 3))
        stop.set()
        writer.join()
        deadline = time.time() + 60 * FACTOR
        while not all_committed():
            assert time.time() < deadline, "positions did not reach the ends: %s" % admin.positions(GROUP)[1]
            time.sleep(0.1)
    finally:
        for m in members:
            m.end(signal.SIGTERM)
    lines = check_processed()
    generations = check_history()
    print("%d events, %d generations, %d records, processed %d times; slowest to settle: %s" % (
        events, generations, sum(map(len, acked.values())), lines,
        ", ".join("%s %.1f s" % kv for kv in sorted(slowest.items()))))


try:
    main()
except AssertionError as e:
    print("seed %d: %s" % (seed, e))
    sys.exit(1)
