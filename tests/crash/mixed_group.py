# SPDX-License-Identifier: Apache-2.0
"""mixed_group.py SECONDS SEED DIRECTORY KIND...

One group with members of several kinds at once, which come, leave and are killed under a steady producer. KIND is kcat, kafka,
confluent (python), js (kafkajs) or fs: a shell's `while read` loop on one of two mounts, of which one is killed now and then with
all that read there. In the end: every acknowledged record was processed, no generation gave a partition to two members, no
position ever went back, and after each event the group settled in time."""
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

GROUP, TOPIC, PARTITIONS, MEMBERS_MAX = "mixed", "mixed", 6, 8
SESSION_S = 6
FACTOR = int(os.environ.get("TEST_TIMEOUT_FACTOR", "1"))
# A killed member is missed after its session; then, and after all else, the others come again within one more.
SETTLE_MAX_S = {"start": SESSION_S * FACTOR + 3, "leave": SESSION_S * FACTOR, "kill": 2 * SESSION_S * FACTOR}
HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(HERE, "..", "lib")

seconds, seed, where, kinds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
rnd = random.Random(seed)
admin = GroupConn()
stop = threading.Event()
acked = {p: set() for p in range(PARTITIONS)}        # offsets


def produce():
    """Records say where they are, for members that print nothing but their values."""
    c, n = Conn(), 0
    while not stop.is_set():
        p, at = n % PARTITIONS, n // PARTITIONS * 5
        code, base = c.produce(TOPIC, p, batch([b"%d %d" % (p, at + i) for i in range(5)]))
        assert (code, base) == (0, at), "produce: %d, offset %d" % (code, base)
        acked[p].update(range(base, base + 5))
        n += 1
        stop.wait(0.02)


class Mount:
    def __init__(self, i):
        self.name, self.at = "mount-%d" % i, os.path.join(where, "mount-%d" % i)
        os.mkdir(self.at)
        self.start()

    def start(self):
        with open(self.at + ".log", "ab") as log:
            self.p = subprocess.Popen(["klogfs", "-f", "127.0.0.1:9092", self.at, "-o", "session=%d" % SESSION_S], stderr=log)
        while not os.path.ismount(self.at):
            assert self.p.poll() is None, "klogfs did not start"
            time.sleep(0.02)

    def kill(self):
        self.p.kill()
        self.p.wait()
        subprocess.run(["umount", "-l", self.at], check=True)

    def stop(self):
        self.p.terminate()
        assert self.p.wait(20 * FACTOR) == 0, "klogfs did not end well"


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
            "fs": ["bash", "-c", 'while read -r l; do echo "$l"; done <"$1"', "_"],
        }.get(kind, [sys.executable, os.path.join(LIB, "group_member.py"), kind, GROUP, TOPIC])
        self.mount = None
        if kind == "fs":
            self.mount = mounts[Member.n // len(kinds) % len(mounts)]
            command.append("%s/%s/as/%s/follow/all" % (self.mount.at, TOPIC, GROUP))
        with open(os.path.join(where, self.name + ".out"), "wb") as out, open(os.path.join(where, self.name + ".log"), "wb") as log:
            self.p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                                      env=dict(os.environ, CLIENT_ID=self.name))

    def end(self, sig):
        self.p.send_signal(sig)
        try:
            self.p.wait(20 * FACTOR)
        except subprocess.TimeoutExpired:
            print("%s did not end by signal %d" % (self.name, sig), flush=True)
            self.p.kill()
            self.p.wait()


def settled(members):
    code, state, _, _, known, _ = admin.describe(GROUP)
    assert code == 0, error(code)
    owned = sorted(p for m in known for t, p in assigned(m[5]))
    who = sorted("klogfs" if m.mount else m.name for m in members)
    return state == "Stable" and sorted(m[2] for m in known) == who and owned == list(range(PARTITIONS))


def settle(what, members, slowest):
    t0, verb = time.time(), what.split()[0]
    while not settled(members):
        for m in members:
            assert m.p.poll() is None, "%s ended by itself" % m.name
        if time.time() - t0 > SETTLE_MAX_S[verb]:
            code, state, _, _, known, _ = admin.describe(GROUP)
            raise AssertionError("after %s the group did not settle in %d s: %s, members %s, alive %s" % (
                what, SETTLE_MAX_S[verb], state, [m[2] + "/" + m[0][-12:] for m in known], [m.name for m in members]))
        time.sleep(0.05)
    slowest[verb] = max(time.time() - t0, slowest.get(verb, 0))
    if len({m.kind for m in members}) == len(kinds):
        slowest["with all kinds"] = slowest.get("with all kinds", 0) + 1


def kill_mount(members):
    mount = rnd.choice(mounts)
    mount.kill()
    for m in [m for m in members if m.mount == mount]:
        m.p.wait(10 * FACTOR)
        members.remove(m)
    mount.start()
    return "kill of %s" % mount.name


def event(members):
    missing = [k for k in kinds if k not in [m.kind for m in members]]
    if len(members) < 2 or (missing and rnd.random() < 0.7) or (len(members) < MEMBERS_MAX and rnd.random() < 0.3):
        m = Member(missing[0] if missing else rnd.choice(kinds))
        members.append(m)
        return "start of " + m.name
    if mounts and rnd.random() < 0.15:
        return kill_mount(members)
    m = members.pop(rnd.randrange(len(members)))
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
                        p, offset = line.split()[:2]
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
    for k in kinds:
        members.append(Member(k))
    settle("kill of nobody", members, slowest)   # as slow as that: they all start at once
    until = time.time() + seconds
    try:
        while time.time() < until:
            what = [event(members)]
            while rnd.random() < 0.3:            # more at the same time
                what.append(event(members))
            settle(max(what, key=lambda w: SETTLE_MAX_S[w.split()[0]]), members, slowest)
            events += len(what)
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
        for m in mounts:
            m.stop()
    lines = check_processed()
    generations = check_history()
    print("%d events, %d of them with all kinds, %d generations, %d records, processed %d times; slowest to settle: %s" % (
        events, slowest.pop("with all kinds", 0), generations, sum(map(len, acked.values())), lines,
        ", ".join("%s %.1f s" % kv for kv in sorted(slowest.items()))))


mounts = [Mount(i) for i in range(2)] if "fs" in kinds else []
try:
    main()
except AssertionError as e:
    print("seed %d: %s" % (seed, e))
    sys.exit(1)
