#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""failover.py DIR kill ROUNDS        kill -9 of the leader of a partition under acks=all: to the next acknowledgement
failover.py DIR stop ROUNDS        SIGTERM of it: the longest time between two acknowledgements, and what a client is told
failover.py DIR many PARTITIONS    kill -9 of one broker: until all partitions are led again, Metadata of each broker and acks=all

DIR is a cluster of `klog cluster start` that runs; klog is on PATH. Times are milliseconds of the monotonic clock, those after a kill less
the session time-out, which nobody can be faster than. Prints figures; judges nothing."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from kwire import Conn, array, batch, data, i16, i32, string  # noqa: E402

DIR = sys.argv[1]
RETRIABLE = {5, 6, 19, 20, 72, 74, 75, 76}


def settings(n):
    with open("%s/broker-%d/klogd.properties" % (DIR, n)) as f:
        return dict(line.strip().split("=", 1) for line in f if "=" in line and line[0] != "#")


IDS = sorted(int(re.search(r"broker-(\d+)$", d).group(1)) for d in glob.glob(DIR + "/broker-*"))
ADDRESS = {n: settings(n)["listeners"].split("://")[1] for n in IDS}
SESSION_MS = int(settings(IDS[0])["zookeeper.session.timeout.ms"])
BROKERS = ",".join(ADDRESS.values())


def klog(*words):
    subprocess.run(["klog", *words], check=True, stdout=subprocess.DEVNULL)


def make_topic(name, partitions):
    """It may be there from the last time."""
    subprocess.run(["klog", "topic", "create", name, "-b", BROKERS, "-p", str(partitions), "--replication-factor", str(min(3, len(IDS))),
                    "--timeout", "120"], stderr=subprocess.DEVNULL)


def pid_of(broker):
    rows = subprocess.run(["klog", "cluster", "status", "--dir", DIR, "--json"], stdout=subprocess.PIPE, text=True).stdout
    return next(r["pid"] for r in map(json.loads, rows.splitlines()) if r.get("broker") == broker)


def now_ms():
    return time.monotonic() * 1000


def leaders(conn, topic):
    """[leader of each partition], -1 none"""
    r = conn.ask(3, 1, array([string(topic)]))
    r.array(lambda: (r.i32(), r.string(), r.i32(), r.string()))
    r.i32()
    found = {}

    def part():
        err, n, leader = r.i16(), r.i32(), r.i32()
        r.array(r.i32), r.array(r.i32)
        found[n] = leader
    r.array(lambda: (r.i16(), r.string(), r.i8(), r.array(part)))
    return [found[n] for n in sorted(found)]


def in_sync(topic):
    out = subprocess.run(["klog", "topic", "describe", topic, "-b", BROKERS, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True).stdout
    rows = re.findall(r'"isr":\s*\[([^\]]*)\]', out)
    return bool(rows) and all(len(row.split(",")) == len(IDS) for row in rows)


def until(what, test, seconds=120):
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            raise SystemExit("waited in vain for: " + what)
        time.sleep(0.1)


class Writer(threading.Thread):
    """One record after the other with acks=all to whoever leads; when each was acknowledged, and what it was told else."""

    def __init__(self, topic):
        super().__init__(daemon=True)
        self.topic, self.acked, self.told, self.leader, self.ended = topic, [], [], -1, False
        self.record = batch([b"x"])
        self.conns, self.by = {}, []

    def first_by_another(self, broker):
        return next((t for t, by in zip(self.acked, self.by) if by != broker), None)

    def begin_anew(self):
        self.acked, self.by = [], []

    def conn(self, n):
        if n not in self.conns:
            self.conns[n] = Conn(ADDRESS[n], timeout=2 * SESSION_MS / 1000)
        return self.conns[n]

    def drop(self, n):
        c = self.conns.pop(n, None)
        if c:
            c.close()

    def look(self):
        for n in IDS:
            try:
                self.leader = leaders(self.conn(n), self.topic)[0]
                if self.leader >= 0:
                    return
            except (OSError, EOFError, KeyError, IndexError):
                self.drop(n)

    def run(self):
        while not self.ended:
            if self.leader < 0:
                self.look()
            if self.leader < 0:
                time.sleep(0.005)
                continue
            try:
                err, _ = self.conn(self.leader).produce(self.topic, 0, self.record)
            except (OSError, EOFError):
                self.drop(self.leader)
                err = -2
            if err == 0:
                self.acked.append(now_ms())
                self.by.append(self.leader)
            else:
                self.told.append(err)
                self.leader = -1
                time.sleep(0.005)


def figures(what, values):
    v = sorted(values)
    print("%s: n=%d median=%.0f p90=%.0f p99=%.0f max=%.0f ms" % (
        what, len(v), v[len(v) // 2], v[int(len(v) * 0.9)], v[min(len(v) - 1, int(len(v) * 0.99))], v[-1]), flush=True)


def rounds(how, n):
    make_topic("failover", 1)
    until("in sync", lambda: in_sync("failover"))
    w = Writer("failover")
    w.start()
    gaps, told = [], 0
    for _ in range(n):
        until("acknowledgements", lambda: len(w.acked) > 20)
        victim = w.leader
        w.told.clear()
        if how == "kill":
            at = now_ms()
            klog("cluster", "kill", "--dir", DIR, str(victim))
            until("the next one", lambda: w.first_by_another(victim) is not None)
            gaps.append(w.first_by_another(victim) - at - SESSION_MS)
        else:
            until("some more", lambda: len(w.acked) > 20)
            before = len(w.acked)
            os.kill(pid_of(victim), signal.SIGTERM)
            until("another leads", lambda: w.leader not in (victim, -1) and len(w.acked) > before + 200)
            seen = w.acked[before - 1:]
            gaps.append(max(b - a for a, b in zip(seen, seen[1:])))
            told += len(w.told)
        klog("cluster", "start-broker", "--dir", DIR, str(victim))
        until("in sync", lambda: in_sync("failover"))
        w.begin_anew()
    w.ended = True
    figures("kill -9 to the next acknowledgement, less the session" if how == "kill" else "longest wait in a planned hand-over", gaps)
    if how == "stop":
        print("told meanwhile, all of them retried: %d" % told)


def many(n):
    make_topic("many", n)
    until("in sync", lambda: in_sync("many"), 300)
    led = leaders(Conn(ADDRESS[IDS[0]]), "many")
    victim = max(IDS, key=led.count)
    left = [b for b in IDS if b != victim]
    print("of %d partitions broker %d leads %d" % (n, victim, led.count(victim)), flush=True)
    at = now_ms()
    klog("cluster", "kill", "--dir", DIR, str(victim))
    right = {}

    def look(b):
        c = Conn(ADDRESS[b], timeout=60)
        while True:
            ls = leaders(c, "many")
            if victim not in ls and -1 not in ls:
                right[b] = now_ms()
                return
            time.sleep(0.02)
    for t in [threading.Thread(target=look, args=(b,)) for b in left]:
        t.start()
    record, todo, first = batch([b"x"]), set(range(n)), None
    conns = {b: Conn(ADDRESS[b], timeout=60) for b in left}
    while todo:
        ls = leaders(conns[left[0]], "many")
        for b in left:
            mine = [p for p in todo if ls[p] == b]
            if not mine:
                continue
            r = conns[b].ask(0, 7, string(None) + i16(-1) + i32(10000) + array(
                [string("many") + array([i32(p) + data(record) for p in mine])]))

            def one():
                p, err = r.i32(), r.i16()
                r.take(24)
                return p, err
            for _, parts in r.array(lambda: (r.string(), r.array(one))):
                todo -= {p for p, err in parts if err == 0}
        if todo:
            time.sleep(0.02)
    acked = now_ms()
    until("Metadata", lambda: len(right) == len(left))
    for b in left:
        print("Metadata of broker %d right after the session and %.0f ms" % (b, right[b] - at - SESSION_MS))
    print("acks=all in all %d after the session and %.0f ms" % (n, acked - at - SESSION_MS))
    klog("cluster", "start-broker", "--dir", DIR, str(victim))


if sys.argv[2] == "many":
    many(int(sys.argv[3]))
else:
    rounds(sys.argv[2], int(sys.argv[3]))
