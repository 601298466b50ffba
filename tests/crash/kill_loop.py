# SPDX-License-Identifier: Apache-2.0
"""kill_loop.py KILLS SEED LOG KLOGD ARGUMENTS...

Starts klogd, lets four producers write to four partitions of a topic with segments small enough to roll often, kills it
with SIGKILL after a random time, starts it again, and so on; then compares what was acknowledged with what is there."""
import random
import socket
import subprocess
import sys
import threading
import time

from kwire import Conn, batch

TOPIC, PARTITIONS, WINDOW, START_MAX_S = "crash", 4, 5, 2.0
stop = threading.Event()
problems = []


class Writer(threading.Thread):
    """One idempotent producer on one partition, up to five batches in flight."""

    def __init__(self, partition, seed):
        super().__init__(daemon=True)
        self.partition, self.rnd = partition, random.Random(seed)
        self.acked = {}              # value -> offset
        self.pid = self.seq = None
        self.open = []               # (first sequence, values), in order, not acknowledged
        self.n = 0

    def run(self):
        try:
            while not (stop.is_set() and not self.open):
                try:
                    self.session(Conn(timeout=20))
                except (EOFError, ConnectionError, socket.timeout, OSError):
                    time.sleep(0.005)
        except Exception as e:      # noqa: B902  told at the end, by the main thread
            problems.append("partition %d: %r" % (self.partition, e))

    def session(self, c):
        if self.pid is None:
            err, self.pid, epoch = c.init_producer_id()
            assert (err, epoch) == (0, 0), (err, epoch)
            self.seq = 0
        waiting = [(self.send(c, b), b) for b in self.open]
        while True:
            while len(waiting) < WINDOW and not stop.is_set():
                values = [b"p%d n%d %s" % (self.partition, self.n + i, b"x" * self.rnd.randrange(200))
                          for i in range(self.rnd.choice((1, 1, 3, 20)))]
                self.n += len(values)
                b = (self.seq, values)
                self.seq += len(values)
                self.open.append(b)
                waiting.append((self.send(c, b), b))
            if not waiting:
                return c.close()
            corr, b = waiting.pop(0)
            err, base = c.produced(c.reply(corr))
            if err in (3, 5, 6, 7, 56):
                raise ConnectionError("not ready: %d" % err)
            assert err == 0, "error %d for sequence %d" % (err, b[0])
            self.open.remove(b)
            for i, v in enumerate(b[1]):
                self.acked[v] = base + i

    def send(self, c, b):
        records = batch(b[1], pid=self.pid, epoch=0, seq=b[0])
        return c.send(0, 7, c.produce_body(TOPIC, self.partition, records))


def start(command, log):
    t0 = time.monotonic()
    p = subprocess.Popen(command, stdout=log, stderr=log)
    while True:
        assert p.poll() is None, "klogd ended at start with %d" % p.returncode
        try:
            socket.create_connection(("127.0.0.1", 9092), timeout=1).close()
            return p, time.monotonic() - t0
        except OSError:
            assert time.monotonic() - t0 < 30, "klogd does not start"
            time.sleep(0.002)


def compare(writers):
    c = Conn()
    for w in writers:
        there = c.records(TOPIC, w.partition)
        offsets = [r[0] for r in there]
        assert offsets == list(range(len(there))), "offsets of partition %d are not dense" % w.partition
        at = {}
        for offset, _, _, value, _ in there:
            assert value not in at, "%r is there twice: %d and %d" % (value[:20], at[value], offset)
            at[value] = offset
        for value, offset in w.acked.items():
            assert at.get(value) == offset, "%r acknowledged at %d, found at %s" % (value[:20], offset, at.get(value))
        numbers = [int(r[3].split()[1][1:]) for r in there]
        assert numbers == sorted(numbers), "order of partition %d" % w.partition


def main():
    kills, seed, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4:]
    print("seed", seed)
    rnd = random.Random(seed)
    slowest = 0
    with open(sys.argv[3], "ab") as log:
        p, _ = start(command, log)
        err, text = Conn().create_topic(TOPIC, PARTITIONS, configs=[("segment.bytes", "200000")])
        assert err == 0, (err, text)
        writers = [Writer(i, seed + i) for i in range(PARTITIONS)]
        for w in writers:
            w.start()
        late = 0                                           # another process may have had the disk once
        for k in range(kills):
            time.sleep(rnd.uniform(0, 0.3) ** 2 * 3)       # often at once, at most 270 ms
            p.kill()
            p.wait()
            p, took = start(command, log)
            slowest = max(slowest, took)
            late += took >= START_MAX_S
            assert took < 10 and late <= kills // 30, "start %d took %.2f s, %d were late" % (k, took, late)
            assert not problems, problems
        stop.set()
        for w in writers:
            w.join(30)
            assert not w.is_alive(), "a producer hangs"
        assert not problems, problems
        compare(writers)
        p.kill()                                           # once more, idle
        p.wait()
        p, took = start(command, log)
        compare(writers)
        acked = sum(len(w.acked) for w in writers)
        p.terminate()
        assert p.wait(20) == 0, "exit status %d" % p.returncode
    print("%d records acknowledged over %d kills, slowest start %.0f ms" % (acked, kills, slowest * 1000))
    assert acked > kills, "hardly any load"


if __name__ == "__main__":
    main()
