# SPDX-License-Identifier: Apache-2.0
"""corruption.py SEEDS FIRST-SEED DIRECTORY KLOGD KLOG

Builds a data directory with known content, as a clean stop and as kill -9 leave it. Then, for each seed: one random
corruption of a copy, a start, and everything is read. What must hold:
  - no record is served that was not written there (topic, partition, offset, timestamp, key, value);
  - what is missing was told: by a line in klogd's log that names it, or by the read that met it;
  - no commit of a group is undone that a good batch proves; positions are ones that were committed;
  - a batch of an idempotent producer that is sent again is not stored again;
  - klog verify, asked before the start, found something whenever klogd did or something is missing;
  - partitions that are up take appends, and those are there after a clean stop and another start;
  - nothing takes longer than it may, and klogd never ends by itself but for refusing a directory with a line."""
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

from kgroup import GroupConn
from kwire import Batch, Conn, array, batch, crc32c, i32, i64, string

SEEDS, FIRST, TOP, KLOGD, KLOG = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
TOPICS = {"plain": 2, "even": 2, "compact": 1, "idem": 1}
GROUPS = ["g%d" % i for i in range(6)]
PID = {}


class Wrong(Exception):
    pass


# ---- a broker ----
class Broker:
    def __init__(self, where, port, *settings):
        self.dir, self.port, self.log = where, port, where + ".klogd.log"
        self.settings, self.p = settings, None

    def start(self):
        """False when it refuses."""
        out = open(self.log, "w")
        args = [KLOGD]
        for s in ("listeners=PLAINTEXT://127.0.0.1:%d" % self.port, "log.dirs=" + self.dir, "offsets.topic.num.partitions=1",
                  "offsets.retention.minutes=100000000", "log.retention.ms=-1", "log.segment.bytes=3000") + self.settings:
            args += ["--override", s]
        self.p = subprocess.Popen(args, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                c = Conn("127.0.0.1:%d" % self.port)
                c.api_versions()
                c.close()
                return True
            except (OSError, EOFError):
                if self.p.poll() is not None:
                    return False
                time.sleep(0.01)
        raise Wrong("klogd does not answer after 60 s")

    def stop(self, how="TERM"):
        self.p.send_signal(15 if how == "TERM" else 9)
        try:
            rc = self.p.wait(60)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise Wrong("klogd does not stop")
        if how == "TERM" and (rc not in (0, 4) or (rc == 4 and not self.lines())):
            raise Wrong("klogd ended with %d: %s" % (rc, self.lines()[-2:]))

    def lines(self):
        with open(self.log, errors="replace") as f:
            return [x.rstrip() for x in f if not re.search(r" (INFO|DEBUG) ", x)]

    def conn(self): return Conn("127.0.0.1:%d" % self.port, timeout=30)
    def group_conn(self): return GroupConn("127.0.0.1:%d" % self.port, timeout=30)


# ---- known content ----
class Truth:
    def __init__(self):
        self.records = {}                # (topic, partition) -> {offset: (timestamp, key, value)}
        self.start, self.end = {}, {}
        self.commits = {}                # group -> [offset], in order
        self.last_idem = None            # (sequence, values, offset)
        self.pid = None

    def copy(self):
        t = Truth()
        t.records = {k: dict(v) for k, v in self.records.items()}
        t.start, t.end = dict(self.start), dict(self.end)
        t.commits = {k: list(v) for k, v in self.commits.items()}
        t.last_idem, t.pid = self.last_idem, self.pid
        return t


def put(c, truth, topic, part, values, now, **how):
    err, base = c.produce(topic, part, batch(values, ts=now, **how))
    if err != 0:
        return err, base
    at = truth.records.setdefault((topic, part), {})
    for i, v in enumerate(values):
        at[base + i] = (now,) + (v if isinstance(v, tuple) else (None, v))
    truth.end[topic, part] = base + len(values)
    return 0, base


def write_some(b, truth, rnd, n):
    c, g = b.conn(), b.group_conn()
    now = 1700000000000 + 1000 * sum(truth.end.values())
    for i in range(n):
        now += rnd.randrange(1000)
        for part in (0, 1):
            values = [b"plain-%d %d %s" % (part, rnd.randrange(10 ** 9), b"x" * rnd.randrange(150)) for _ in range(rnd.randrange(1, 5))]
            err, _ = put(c, truth, "plain", part, values, now, squeeze=6 if rnd.randrange(4) == 0 else None)
            assert err == 0, err
            err, _ = put(c, truth, "even", part, [b"even-%d %06d %s" % (part, i, b"y" * 80)], now)
            assert err == 0, err
        err, _ = put(c, truth, "compact", 0, [(b"key%02d" % rnd.randrange(25), b"value %d" % rnd.randrange(10 ** 9))
                                              for _ in range(3)], now)
        assert err == 0, err
        seq = 0 if truth.last_idem is None else truth.last_idem[0] + len(truth.last_idem[1])
        values = [b"idem %d" % (seq + k) for k in range(2)]
        err, base = put(c, truth, "idem", 0, values, now, pid=truth.pid, epoch=0, seq=seq)
        assert err == 0, err
        truth.last_idem = (seq, values, base)
        group = GROUPS[i % len(GROUPS)]
        position = truth.end["plain", 0] - rnd.randrange(2)
        got = g.commit(group, {"plain": [(0, position)]})
        assert got == {("plain", 0): 0}, got
        truth.commits.setdefault(group, []).append(position)
    c.close()
    g.close()


def build(rnd):
    """{name: (directory, truth)}: early (for stale copies), clean, killed."""
    b = Broker(TOP + "/base", 19500, "log.cleaner.backoff.ms=200", "log.retention.check.interval.ms=200")
    b.start()
    c = b.conn()
    small = [("segment.bytes", "3000"), ("index.interval.bytes", "500")]
    for t, n in TOPICS.items():
        more = [("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01")] if t == "compact" else []
        assert c.create_topic(t, n, configs=small + more)[0] == 0
    truth = Truth()
    err, truth.pid, _ = c.init_producer_id()
    g = b.group_conn()
    while g.coordinator("g0") != 0:
        time.sleep(0.05)
    write_some(b, truth, rnd, 40)
    b.stop()
    shutil.copytree(b.dir, TOP + "/early")
    b.start()
    c = b.conn()
    write_some(b, truth, rnd, 60)
    start = truth.end["plain", 1] // 3
    r = c.ask(21, 0, array([string("plain") + array([i32(1) + i64(start)])]) + i32(10000))
    r.i32()
    assert r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i64(), r.i16())))) == [("plain", [(1, start, 0)])]
    truth.start["plain", 1] = start
    deadline = time.monotonic() + 60
    while len(list(readable(c, "compact", 0)[0])) > 0.7 * truth.end["compact", 0]:
        assert time.monotonic() < deadline, "nothing was compacted"
        time.sleep(0.2)
    b.stop()
    shutil.copytree(b.dir, TOP + "/clean")
    clean = truth.copy()
    b.settings = ("log.cleaner.enable=false",)
    b.start()
    write_some(b, truth, rnd, 25)
    b.stop("KILL")
    shutil.copytree(b.dir, TOP + "/killed")
    return {"clean": (TOP + "/clean", clean), "killed": (TOP + "/killed", truth)}


# ---- reading ----
def readable(c, topic, part):
    """({offset: (timestamp, key, value)}, problems, start, end): everything that can be had."""
    err, _, start = c.list_offset(topic, part, -2)
    err2, _, end = c.list_offset(topic, part, -1)
    if err or err2:
        return {}, ["ListOffsets: error %d" % (err or err2)], -1, -1
    got, problems, at = {}, [], start
    while at < end:
        err, _, _, b = c.fetch(topic, part, at)
        if err:
            problems.append("offset %d: error %d" % (at, err))
            at += 1
            continue
        if not b:
            raise Wrong("%s-%d: nothing at offset %d, and no error; the end is %d" % (topic, part, at, end))
        before = at
        while len(b) >= 61 and len(b) >= 12 + int.from_bytes(b[8:12], "big"):
            one = Batch(b)
            b = b[12 + one.size:]
            if one.magic != 2 or not one.crc_good():
                problems.append("offset %d: checksum" % at)
                at = max(at + 1, one.base + one.last_delta + 1 if 0 <= one.last_delta < 1000 and one.base <= at else 0)
                break
            if one.base + one.last_delta < at:
                raise Wrong("%s-%d: batch %d..%d at %d" % (topic, part, one.base, one.base + one.last_delta, at))
            for o, ts, key, value, _ in one.records():
                if o >= at:
                    if o in got:
                        raise Wrong("%s-%d: offset %d twice" % (topic, part, o))
                    got[o] = (ts, key, value)
            at = one.base + one.last_delta + 1
        if at == before:
            problems.append("offset %d: no whole batch" % at)
            at += 1
    return got, problems, start, end


def check_reads(b, truth, told, appended):
    """Names of partitions of which something is missing."""
    c = b.conn()
    missing = {}
    for topic, n in TOPICS.items():
        for part in range(n):
            name = "%s-%d" % (topic, part)
            got, problems, start, end = readable(c, topic, part)
            want = dict(truth.records[topic, part])
            want.update(appended.get((topic, part), {}))
            for o, r in got.items():
                if want.get(o) != r and truth.records[topic, part].get(o) != r:
                    raise Wrong("%s: offset %d is %r, written was %r" % (name, o, r, want.get(o)))
            first = truth.start.get((topic, part), 0)
            gone = [o for o in want if o >= first and o not in got]
            if topic == "compact":       # the newest of each key has to be there
                newest = {}
                for o in sorted(want):
                    newest[want[o][1]] = o
                gone = [o for o in newest.values() if o not in got]
            if gone or problems:
                missing[name] = (gone[:5], problems[:3])
                if not problems and not any(name in x for x in told()):
                    raise Wrong("%s: %d records from offset %d on are missing (start %d, end %d), and nothing says so"
                                % (name, len(gone), min(gone), start, end))
    c.close()
    return missing


# ---- groups ----
def proven(directory):
    """{group: newest position of plain-0 in a whole batch}, byte by byte."""
    out = {}
    where = directory + "/__consumer_offsets-0"
    logs = sorted(f for f in os.listdir(where) if f.endswith(".log")) if os.path.isdir(where) else []
    found = []
    for f in logs:
        data = open(where + "/" + f, "rb").read()
        at = 0
        while at + 61 <= len(data):
            size = 12 + int.from_bytes(data[at + 8:at + 12], "big")
            if data[at + 16] == 2 and 61 <= size <= len(data) - at and crc32c(data[at + 21:at + size]) == int.from_bytes(data[at + 17:at + 21], "big"):
                found.append(Batch(data[at:at + size]))
                at += size
            else:
                at += 1
    for one in found:
        for _, _, key, value, _ in one.records():
            if key is None or int.from_bytes(key[:2], "big") > 1 or value is None:
                continue
            n = int.from_bytes(key[2:4], "big")
            group = key[4:4 + n].decode()
            out[group] = max(out.get(group, -1), struct.unpack(">q", value[2:10])[0])
    return out


def check_groups(b, truth, told, hit, directory_before):
    g = b.group_conn()
    lost = []
    best = proven(directory_before)
    for group in GROUPS:
        deadline = time.monotonic() + 30
        while True:
            err, got = g.positions(group, {"plain": [0]})
            if err not in (14, 15, 16) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        if err:
            if not any("__consumer_offsets" in x for x in told()):
                raise Wrong("group %s: error %d, and nothing says why" % (group, err))
            lost.append(group)
            continue
        at = got["plain", 0][0]
        if at == truth.commits[group][-1]:
            continue
        lost.append(group)
        if at != -1 and at not in truth.commits[group]:
            raise Wrong("group %s is at %d, which nobody committed" % (group, at))
        if "__consumer_offsets" not in hit and not hit.startswith("registers"):
            raise Wrong("group %s is at %d instead of %d" % (group, at, truth.commits[group][-1]))
        if not any("__consumer_offsets" in x for x in told()):
            raise Wrong("group %s is at %d instead of %d, and nothing says so" % (group, at, truth.commits[group][-1]))
        if at < best.get(group, -1):
            raise Wrong("group %s is at %d, but a whole batch says %d" % (group, at, best[group]))
    g.close()
    return lost


# ---- appends ----
def append_all(b, truth, told, missing, appended):
    c = b.conn()
    for topic, n in TOPICS.items():
        for part in range(n):
            name = "%s-%d" % (topic, part)
            before = c.list_offset(topic, part, -1)[2]
            value = (b"appended", b"to " + name.encode())
            now = 1750000000000
            err, base = c.produce(topic, part, batch([value], ts=now))
            if err:
                if not any(name in x for x in told()):
                    raise Wrong("%s: append fails with %d, and nothing says why" % (name, err))
                continue
            if base < before:
                raise Wrong("%s: appended at %d, the end was %d" % (name, base, before))
            appended.setdefault((topic, part), {})[base] = (now,) + value
    seq, values, offset = truth.last_idem
    if "idem-0" not in missing:
        err, base = c.produce("idem", 0, batch(values, ts=1750000000000, pid=truth.pid, epoch=0, seq=seq))
        if err == 0 and base != offset:
            raise Wrong("a batch sent again is stored again, at %d instead of %d" % (base, offset))
    c.close()


# ---- corruptions ----
def files_of(d):
    return sorted(os.path.relpath(os.path.join(p, f), d) for p, _, fs in os.walk(d) for f in fs if f != ".lock")


def kind_of(f):
    base = os.path.basename(f)
    return re.sub(r"^\d{20}", "", base) if re.match(r"^\d{20}", base) else base


def corrupt(rnd, d, early, state):
    """One corruption; (what, file)."""
    files = files_of(d)
    kinds = sorted({kind_of(f) for f in files})
    kind = rnd.choice(kinds + [".log"] * 3)
    f = rnd.choice([x for x in files if kind_of(x) == kind])
    path = d + "/" + f
    size = os.path.getsize(path)
    same = [x for x in files if kind_of(x) == kind and x != f]
    alike = [x for x in same if os.path.basename(x) == os.path.basename(f)]
    ops = ["delete", "append", "zeros", "flip", "flip", "flip", "zero", "cut"]
    # After a kill nothing on the disk says yet what the newest segment holds above the checkpoint: whole other batches in its
    # place cannot be told from its own.
    newest = [max(x for x in files if x.startswith(os.path.dirname(y) + "/") and x.endswith(".log")) for y in files if y.endswith(".log")]
    if state == "killed" and kind == ".log":
        alike, same = [x for x in alike if x not in newest], [x for x in same if x not in newest]
    if (alike or same) and not (state == "killed" and f in newest):
        ops += ["swap", "foreign", "foreign"]
    if os.path.exists(early + "/" + f):
        ops += ["stale", "stale"]
    if "/" in f:
        ops += ["directory gone", "directory renamed"] if rnd.randrange(6) == 0 else []
    if size == 0:
        ops = [o for o in ops if o not in ("flip", "zero", "cut")]
    op = rnd.choice(ops)
    what = "%s %s" % (op, f)
    if op == "delete":
        os.unlink(path)
    elif op == "append":
        with open(path, "ab") as o:
            o.write(bytes(rnd.randrange(256) for _ in range(rnd.choice((1, 7, 60, 500)))))
    elif op == "zeros":
        with open(path, "ab") as o:
            o.write(bytes(rnd.choice((1, 512, 4096, 100000))))
    elif op in ("flip", "zero"):
        at = rnd.randrange(size)
        with open(path, "r+b") as o:
            if op == "flip":
                o.seek(at)
                x = o.read(1)[0]
                o.seek(at)
                bit = rnd.randrange(8)
                o.write(bytes([x ^ 1 << bit]))
                what += " at %d bit %d" % (at, bit)
            else:
                unit = rnd.choice((512, 4096))
                at = at // unit * unit
                o.seek(at)
                o.write(bytes(min(unit, size - at)))
                what += " at %d" % at
    elif op == "cut":
        n = rnd.randrange(size)
        os.truncate(path, n)
        what += " to %d" % n
    elif op in ("swap", "foreign"):
        other = rnd.choice(alike if alike and rnd.randrange(4) else same)
        what += " and " + other
        shutil.copyfile(path, d + "/x")
        shutil.copyfile(d + "/" + other, path)
        if op == "swap":
            shutil.copyfile(d + "/x", d + "/" + other)
            f += " " + other
        os.unlink(d + "/x")
    elif op == "stale":
        shutil.copyfile(early + "/" + f, path)
    elif op == "directory gone":
        shutil.rmtree(os.path.dirname(path))
    elif op == "directory renamed":
        os.rename(os.path.dirname(path), os.path.dirname(path) + rnd.choice(("-old", "9", ".bak")))
    return what, f


def verify(d):
    p = subprocess.run([KLOG, "verify", "--no-progress", d], capture_output=True, text=True, timeout=60)
    m = re.search(r": (\d+) errors, (\d+) warnings", p.stdout)
    return p.returncode, (int(m.group(1)) + int(m.group(2)) if m else -1), p.stdout


def one(seed, bases, port):
    rnd = random.Random(seed)
    state = rnd.choice(sorted(bases))
    base, truth = bases[state]
    d = "%s/s%d" % (TOP, seed)
    shutil.copytree(base, d)
    what, hit = corrupt(rnd, d, TOP + "/early", state)
    what = "seed %d, %s: %s" % (seed, state, what)
    b = Broker(d, port, "log.cleaner.enable=false", "log.retention.check.interval.ms=3600000")
    try:
        _, findings, _ = verify(d)
        before = d + ".before"
        shutil.copytree(d, before)
        appended = {}
        if not b.start():
            lines = b.lines()
            if b.p.returncode not in (1, 2) or not lines:
                raise Wrong("klogd ended with %d: %s" % (b.p.returncode, lines[-3:]))
            if not re.match(r"(meta.properties|registers)", hit):
                raise Wrong("klogd does not start: %s" % lines[-1])
            if findings == 0:
                raise Wrong("klogd refuses (%s), klog verify says nothing" % lines[-1])
            return what + ": refused"
        missing = check_reads(b, truth, b.lines, appended)
        lost = check_groups(b, truth, b.lines, hit, before)
        append_all(b, truth, b.lines, missing, appended)
        check_reads(b, truth, b.lines, appended)
        told = b.lines()
        b.stop()
        if (missing or lost or told) and findings == 0:
            raise Wrong("klog verify found nothing; missing %s, groups %s, lines %s" % (missing, lost, told[:2]))
        if not b.start():
            raise Wrong("the second start is refused: %s" % b.lines()[-1:])
        check_reads(b, truth, lambda: told + b.lines(), appended)
        b.stop()
        return what + (": missing %s" % sorted(missing) if missing else "")
    except (Wrong, socket.timeout, EOFError, ConnectionError, AssertionError, subprocess.TimeoutExpired) as e:
        kept = TOP + "/kept"
        os.makedirs(kept, exist_ok=True)
        shutil.copytree(d + ".before", "%s/%d" % (kept, seed), dirs_exist_ok=True) if os.path.exists(d + ".before") else None
        return "WRONG " + what + ": %s%s\n    %s" % (type(e).__name__ + " " if not isinstance(e, Wrong) else "", e, "\n    ".join(b.lines()[-4:]))
    finally:
        if b.p is not None and b.p.poll() is None:
            b.p.kill()
            b.p.wait()
        for x in (d, d + ".before"):
            shutil.rmtree(x, ignore_errors=True)
        if os.path.exists(b.log):
            os.unlink(b.log)


def main():
    bases = build(random.Random(FIRST))
    todo, wrong, done, mu = iter(range(FIRST, FIRST + SEEDS)), [], [0], threading.Lock()

    def work(port):
        while True:
            with mu:
                seed = next(todo, None)
            if seed is None:
                return
            said = one(seed, bases, port)
            with mu:
                done[0] += 1
                if said.startswith("WRONG"):
                    wrong.append(said)
                if said.startswith("WRONG") or os.environ.get("VERBOSE"):
                    print(said, flush=True)
    threads = [threading.Thread(target=work, args=(19501 + i,)) for i in range(int(os.environ.get("WORKERS", "2")))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("%d corruptions, %d wrong" % (done[0], len(wrong)))
    sys.exit(1 if wrong or done[0] != SEEDS else 0)


main()
