#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""share_loop.py SECONDS SEED: two `klog run`, a kcat and a python3-kafka consumer share the group g of topic t1 while records are
produced steadily; one after the other is stopped or killed and comes back. Judges that every record was dealt with,
and that no position ever went back.
`share_loop.py consume` is the python3-kafka consumer."""
import os
import random
import signal
import subprocess
import sys
import threading
import time

from kwire import Conn, Reader, array, batch, i32, string

PARTITIONS = 6
SESSION_MS = 6000


def consume():
    from kafka import KafkaConsumer
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    c = KafkaConsumer("t1", bootstrap_servers="127.0.0.1:9092", group_id="g", auto_offset_reset="earliest",
                      session_timeout_ms=SESSION_MS, heartbeat_interval_ms=500, auto_commit_interval_ms=200)
    while not stop:
        for records in c.poll(200).values():
            for r in records:
                print(r.partition, r.offset, flush=True)
    c.close()


def committed(conn):
    """partition -> offset"""
    r = conn.ask(9, 1, string("g") + array([string("t1") + array([i32(p) for p in range(PARTITIONS)])]))
    r.i32(), r.string(), r.i32()
    out = {}
    for _ in range(PARTITIONS):
        p, offset = r.i32(), r.i64()
        r.string(), r.i16()
        out[p] = offset
    return out


class Member:
    def __init__(self, name, ends, command):
        self.name, self.ends, self.command, self.p = name, ends, command, None

    def start(self):
        with open(self.name + ".out", "ab") as out, open(self.name + ".err", "ab") as err:
            self.p = subprocess.Popen(self.command, stdout=out, stderr=err)

    def stop(self, sig):
        self.p.send_signal(sig)
        self.p.wait(30)


def main(seconds, seed):
    random.seed(seed)
    print("seed", seed)
    notes = "n=$KLOG_OFFSET; while read -r x; do echo $KLOG_PARTITION $n; n=$((n + 1)); done; echo ok $KLOG_PARTITION $n"
    run = ["klog", "run", "-g", "g", "-f", "-n", "5", "-P", "2", "--session-timeout", "%dms" % SESSION_MS, "t1", "--", "sh", "-c", notes]
    members = [
        Member("run1", (signal.SIGKILL, signal.SIGTERM), run),
        Member("run2", (signal.SIGKILL, signal.SIGTERM), run),
        # at a SIGTERM kcat commits a record that it does not print any more
        Member("kcat", (signal.SIGKILL,), ["kcat", "-b", "127.0.0.1:9092", "-q", "-u", "-G", "g", "-X", "auto.offset.reset=earliest", "-X",
                        "session.timeout.ms=%d" % SESSION_MS, "-X", "heartbeat.interval.ms=500", "-X",
                        "auto.commit.interval.ms=200", "-f", "%p %o\n", "t1"]),
        Member("python", (signal.SIGTERM,), [sys.executable, __file__, "consume"]),
    ]
    for m in members:
        m.start()
    ends = [0] * PARTITIONS
    producing = threading.Event()

    def produce():
        conn = Conn()
        while not producing.wait(0.02):
            p = random.randrange(PARTITIONS)
            err, base = conn.produce("t1", p, batch([b"x"] * 3))
            assert err == 0 and base == ends[p], (err, base)
            ends[p] += 3

    producer = threading.Thread(target=produce)
    producer.start()
    conn, last, bad = Conn(), {}, []

    def look():
        now = committed(conn)
        for p, offset in now.items():
            if offset < last.get(p, -1):
                bad.append("partition %d: the position went back from %d to %d" % (p, last[p], offset))
        last.update(now)
        return now

    deadline, changes = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        wake = time.monotonic() + random.uniform(1, 3)
        while time.monotonic() < wake:
            look()
            time.sleep(0.1)
        m = random.choice(members)
        m.stop(random.choice(m.ends))
        m.start()
        changes += 1
    producing.set()
    producer.join()
    wait = time.monotonic() + 40
    while list(look().values()) != ends and time.monotonic() < wait:
        time.sleep(0.1)
    for m in members:
        m.stop(signal.SIGTERM)
    if list(look().values()) != ends:
        bad.append("not all was committed: %s of %s" % (last, ends))
    seen = [set() for _ in range(PARTITIONS)]
    for m in members:
        n = 0
        for line in open(m.name + ".out"):
            words = line.split()
            if len(words) == 2 and line.endswith("\n"):
                seen[int(words[0])].add(int(words[1]))
                n += 1
        print(m.name, n, "records")
        if n == 0:
            bad.append(m.name + " got nothing")
    for p in range(PARTITIONS):
        missing = set(range(ends[p])) - seen[p]
        if missing:
            bad.append("partition %d: skipped %s" % (p, sorted(missing)[:10]))
    print(sum(ends), "records", changes, "changes")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    if sys.argv[1] == "consume":
        consume()
    else:
        main(float(sys.argv[1]), int(sys.argv[2]))
