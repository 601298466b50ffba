#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""chaos.py SECONDS SEED DIRECTORY [FAULT...]

Three brokers and a ZooKeeper, each in a network namespace of its own, under load and faults; then all is healed, every replica has to be in
sync, the replicas' logs are read from their files, and history.c judges what clients saw. The seed decides what happens when, as far as
this program does. Needs to be process 1's child in namespaces of its own (chaos.sh).

  kill       SIGKILL of a broker, started again after a while        pause     SIGSTOP and SIGCONT of a broker
  stop       SIGTERM, and started again                              zookeeper SIGSTOP and SIGCONT of ZooKeeper
  isolate    a broker without any network                            part      two brokers that do not reach each other
  deaf       one that gets no answer from another (one way)          away      a broker without ZooKeeper
  full       a broker's disk is full                                 power     a broker's power is cut: what was not synced is lost
"""
import collections
import fcntl
import glob
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time

SECONDS, SEED, DIR = float(sys.argv[1]), int(sys.argv[2]), os.path.abspath(sys.argv[3])
BUILD, SRC = os.environ["BUILDDIR"], os.environ["SRCDIR"]
PARTITIONS, NODES, PRODUCERS, READERS, RATE = 6, 3, 3, 2, 400
DISK_MB = 512
IP = {n: "10.99.0.%d" % n for n in range(1, NODES + 1)}
ZOOKEEPER_IP, OUR_IP = "10.99.0.100", "10.99.0.200"
BROKERS = ",".join("%s:9092" % ip for ip in IP.values())
FS_IOC_SHUTDOWN, NO_FLUSH = 0x8004587D, 2
rnd = random.Random(SEED)
began = time.monotonic()


def say(*words):
    print("%8.3f" % (time.monotonic() - began), *words, flush=True)


def run(*command, check=True):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and r.returncode != 0:
        raise SystemExit("%s: status %d: %s" % (" ".join(command), r.returncode, r.stdout))
    return r.stdout


def wait_for(what, seconds, test):
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            raise SystemExit("waited in vain for: " + what)
        time.sleep(0.05)


# ---- hosts ----
class Host:
    """A network namespace, which is held by a process that sleeps in it."""

    def __init__(self, name, ip):
        self.name, self.ip, self.p, self.stopped, self.blocked = name, ip, None, False, set()
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        wait_for("a namespace", 10, lambda: os.readlink("/proc/%d/ns/net" % self.holder.pid) != os.readlink("/proc/self/ns/net"))
        run("ip", "link", "add", "v" + name, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        run("ip", "link", "set", "v" + name, "master", "br0", "up")
        for c in ("addr add %s/24 dev eth0" % ip, "link set eth0 up", "link set lo up"):
            self.ip_command(*c.split())

    def enter(self):
        return ["nsenter", "--net=/proc/%d/ns/net" % self.holder.pid]

    def ip_command(self, *words):
        return run(*self.enter(), "ip", *words)

    def spawn(self, command, log):
        with open(log, "ab") as out:
            self.p = subprocess.Popen(self.enter() + ["--"] + command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.stopped = False

    def signal(self, sig):
        self.p.send_signal(sig)
        self.stopped = sig == signal.SIGSTOP

    def block(self, ip):
        """Nothing goes from here to ip any more; what comes from there still does."""
        if ip not in self.blocked:
            self.ip_command("route", "add", "blackhole", ip + "/32")
            self.blocked.add(ip)

    def heal(self):
        for ip in self.blocked:
            self.ip_command("route", "del", "blackhole", ip + "/32")
        self.blocked = set()


class Broker(Host):
    def __init__(self, n):
        super().__init__("b%d" % n, IP[n])
        self.n, self.disk, self.image = n, "%s/disk%d" % (DIR, n), None
        self.log = "%s/klogd%d.log" % (DIR, n)
        os.makedirs(self.disk)
        self.mount(True)

    def mount(self, anew):
        """A file system of its own, which may be full or lose its power, where the machine lets us have one."""
        image = "/dev/shm/klog-chaos-%d-%d" % (os.getpid(), self.n)
        if anew:
            with open(image, "wb") as f:
                f.truncate(DISK_MB << 20)
            run("mkfs.ext4", "-q", "-F", image)
        self.mounted = subprocess.run(["mount", "-o", "loop", image, self.disk], stderr=subprocess.DEVNULL).returncode == 0
        self.image = image

    def unmount(self):
        run("umount", self.disk)
        self.mounted = False

    def start(self):
        settings = {"broker.id": self.n, "broker.rack": "ABC"[self.n - 1], "listeners": "PLAINTEXT://%s:9092" % self.ip,
                    "log.dirs": self.disk + "/data", "zookeeper.connect": ZOOKEEPER_IP + ":2181", "zookeeper.session.timeout.ms": 1000,
                    "replica.lag.time.max.ms": 2000, "log.segment.bytes": 4 << 20}
        command = [BUILD + "/daemon/klogd"]
        for k, v in settings.items():
            command += ["--override", "%s=%s" % (k, v)]
        self.spawn(command, self.log)

    def runs(self):
        return self.p is not None and self.p.poll() is None

    def end(self, sig):
        if self.runs():
            self.signal(sig)
            self.p.wait(60)

    def cut_power(self):
        fd = os.open(self.disk, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_FLUSH))
        os.close(fd)
        self.end(signal.SIGKILL)
        self.unmount()
        self.mount(False)


class ZooKeeper(Host):
    def start(self):
        with open(DIR + "/zoo.cfg", "w") as f:
            f.write("tickTime=100\nminSessionTimeout=200\nmaxSessionTimeout=60000\ndataDir=%s/zookeeper\nclientPort=2181\n"
                    "admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n" % DIR)
        self.spawn(["java", "-Xms16m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp",
                    "/usr/share/java/zookeeper.jar", "-Dzookeeper.forceSync=no", "-Djava.awt.headless=true",
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain", DIR + "/zoo.cfg"], DIR + "/zookeeper.log")


    def serves(self):
        try:
            with socket.create_connection((self.ip, 2181), timeout=1) as s:
                s.sendall(b"srvr")
                return b"Mode:" in s.recv(4096)
        except OSError:
            return False


# ---- faults: each begins something and returns what ends it ----
def fault_kill(b):
    b.end(signal.SIGKILL)
    return b.start


def fault_stop(b):
    b.end(signal.SIGTERM)
    return b.start


def fault_pause(b):
    b.signal(signal.SIGSTOP)
    return lambda: b.signal(signal.SIGCONT)


def fault_zookeeper(_):
    zookeeper.signal(signal.SIGSTOP)
    return lambda: zookeeper.signal(signal.SIGCONT)


def fault_isolate(b):
    for ip in [ZOOKEEPER_IP, OUR_IP] + [i for n, i in IP.items() if n != b.n]:
        b.block(ip)
    return b.heal


def fault_part(b):
    other = brokers[b.n % NODES]
    b.block(other.ip)
    other.block(b.ip)
    return lambda: (b.heal(), other.heal())


def fault_deaf(b):
    other = brokers[b.n % NODES]
    other.block(b.ip)
    return other.heal


def fault_away(b):
    b.block(ZOOKEEPER_IP)
    return b.heal


def fault_full(b):
    path = b.disk + "/filler"
    with open(path, "wb") as f:
        try:
            while True:
                f.write(b"\0" * (1 << 20))
                f.flush()
        except OSError:
            pass
        try:
            f.close()
        except OSError:
            pass
    return lambda: os.unlink(path)


def fault_power(b):
    b.cut_power()
    return b.start


FAULTS = {n[6:]: f for n, f in sorted(globals().items()) if n.startswith("fault_")}
NEED_DISK = ("full", "power")


# ---- the end ----
def describe():
    out = run(BUILD + "/src/klog", "topic", "describe", "chaos", "-b", BROKERS, "--json", "--timeout", "5", check=False)
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def all_in_sync():
    for b in brokers:
        if not b.runs():
            raise SystemExit("broker %d has ended: see %s" % (b.n, b.log))
    rows = describe()
    return len(rows) == PARTITIONS and all(sorted(r["isr"]) == list(IP) and r["leader"] is not None for r in rows)


def dump(history):
    """What each replica has in its files, after a clean stop."""
    for b in brokers:
        for p in range(PARTITIONS):
            end = 0
            for path in sorted(glob.glob("%s/data/chaos-%d/*.log" % (b.disk, p))):
                out = subprocess.Popen([BUILD + "/src/klog", "dump", "--json", "--records", path], stdout=subprocess.PIPE, text=True)
                for line in out.stdout:
                    batch = json.loads(line)
                    for r in batch.get("records", []):
                        proc, n = r["value"].split("-")[:2]
                        history.write("dump %d %d %d %d %s %s\n" % (b.n, p, r["offset"], batch["leader_epoch"], proc, n))
                    end = batch["last_offset"] + 1
                if out.wait() != 0:
                    raise SystemExit("klog dump %s: status %d" % (path, out.returncode))
            history.write("end %d %d %d\n" % (b.n, p, end))


def one_fault(kinds, counts):
    kind = rnd.choice(kinds)
    b = rnd.choice([x for x in brokers if x.runs() and not x.stopped])
    say(kind, "broker %d" % b.n)
    heal = FAULTS[kind](b)
    counts[kind] += 1
    time.sleep(rnd.choice((0.2, 1.0, 3.0)) * rnd.uniform(0.5, 1.5))
    heal()
    say("healed")
    if rnd.randrange(2):
        time.sleep(rnd.uniform(0, 2))                      # else the next comes before all have caught up
    for x in brokers:
        if not x.runs():
            raise SystemExit("broker %d has ended by itself: see %s" % (x.n, x.log))


def main():
    global brokers, zookeeper
    wanted = sys.argv[4:] or list(FAULTS)
    print("seed", SEED)
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "br0", "type", "bridge")
    run("ip", "addr", "add", OUR_IP + "/24", "dev", "br0")
    run("ip", "link", "set", "br0", "up")
    zookeeper = ZooKeeper("z", ZOOKEEPER_IP)
    brokers = [Broker(n) for n in IP]
    kinds = [k for k in wanted if k not in NEED_DISK or all(b.mounted for b in brokers)]
    if kinds != wanted:
        print("skipped, for want of loop devices:", *[k for k in wanted if k not in kinds])
    zookeeper.start()
    wait_for("ZooKeeper", 30, zookeeper.serves)
    for b in brokers:
        b.start()
    klog = BUILD + "/src/klog"
    wait_for("three brokers", 30, lambda: len(re.findall('"broker":', run(klog, "ping", "-b", BROKERS, "--json", check=False))) == NODES)
    run(klog, "topic", "create", "chaos", "-p", str(PARTITIONS), "-r", str(NODES), "-c", "min.insync.replicas=2", "-b", BROKERS)
    clients, files = [], []
    for what, n in [("produce", i + 1) for i in range(PRODUCERS)] + [("poll", i + 1) for i in range(READERS)]:
        files.append("%s/%s%d" % (DIR, what, n))
        more = [str(RATE)] if what == "produce" else []
        clients.append(subprocess.Popen(["/usr/bin/python3", SRC + "/tests/chaos/clients.py", what, BROKERS, str(n), str(PARTITIONS), *more,
                                         files[-1]], stdin=subprocess.PIPE, stderr=open(files[-1] + ".log", "w")))
    counts = collections.Counter()
    wait_for("the first records", 30, lambda: os.path.exists(files[0]) and os.path.getsize(files[0]) > 20000)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        one_fault(kinds, counts)
    wait_for("all replicas in sync", 60, all_in_sync)
    say("all replicas are in sync")
    for c in clients[:PRODUCERS]:
        c.stdin.close()
    for c in clients[:PRODUCERS]:
        if c.wait(150) != 0:
            raise SystemExit("a producer ended with status %d" % c.returncode)
    wait_for("all replicas in sync", 60, all_in_sync)
    ends = sum(r["end"] for r in describe())
    say("%d records are in the cluster" % ends)

    def all_read():
        return all(sum(1 for _ in open(f)) >= ends for f in files[PRODUCERS:])
    wait_for("the readers have read all", 60, all_read)
    for c in clients[PRODUCERS:]:
        c.stdin.close()
    for c in clients[PRODUCERS:]:
        if c.wait(30) != 0:
            raise SystemExit("a reader ended with status %d" % c.returncode)
    for b in brokers:
        b.end(signal.SIGTERM)
        if b.p.returncode != 0:
            raise SystemExit("broker %d: exit status %d: see %s" % (b.n, b.p.returncode, b.log))
    with open(DIR + "/dumps", "w") as history:
        dump(history)
    print("faults:", ", ".join("%s %d" % kv for kv in sorted(counts.items())))
    return subprocess.run([BUILD + "/tests/chaos/history", *files, DIR + "/dumps"]).returncode


def clean_up():
    for h in brokers + [zookeeper]:
        if h.p is not None and h.p.poll() is None:
            h.p.kill()
            h.p.wait()
        h.holder.kill()
    for b in brokers:
        if b.mounted:
            run("umount", "-l", b.disk, check=False)
        if b.image is not None and os.path.exists(b.image):
            os.unlink(b.image)


brokers, zookeeper, status = [], None, 1
try:
    status = main()
finally:
    if zookeeper is not None:
        clean_up()
sys.exit(status)
