# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The mount shows exactly what kcat shows, whatever compaction, retention, DeleteRecords and tombstones have done to the log: read
# from end to end, at any position, from the end, as a stream, as a group. Segments are as small as can be, so whole ones
# lose all their records, at the front, in the middle, at the end. SEED=, ROUNDS= and HISTORIES= for more.
requires kcat
klogd_start --override log.cleaner.backoff.ms=20 --override log.retention.check.interval.ms=100
mount_start
echo "SEED=${SEED:=$RANDOM}"
cat >compare.py <<'X'
import os, random, subprocess, sys, time
from kwire import Conn, string, array, i32, i64

mnt, seed, rounds, histories = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rnd = random.Random(seed)
broker = "127.0.0.1:9092"


def run(*args, stdin=None):
    return subprocess.run(args, input=stdin, stdout=subprocess.PIPE, check=True, timeout=60).stdout


def kcat(topic):
    return run("kcat", "-b", broker, "-q", "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e",
               "-X", "fetch.wait.max.ms=5")


def delete_records(c, topic, offset):
    r = c.ask(21, 1, array([string(topic) + array([i32(0) + i64(offset)])]) + i32(10000))
    r.i32()
    _, parts = r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i64(), r.i16()))))[0]
    assert parts[0][2] == 0, parts


def history(topic, c):
    """One random change."""
    what = rnd.choice(["produce"] * 6 + ["delete", "policy"])
    if what == "produce":
        n, keys, width = rnd.choice([1, 5, 40, 300]), rnd.choice([1, 3, 10, 100]), rnd.choice([1, 20, 60, 90])
        lines = []
        for i in range(n):
            history.count += 1
            value = b"" if rnd.random() < 0.1 else b"%d-" % history.count + b"v" * rnd.randrange(width)
            lines.append(b"k%d:%s\n" % (rnd.randrange(keys), value))
        run("kcat", "-b", broker, "-q", "-P", "-t", topic, "-p", "0", "-K:", "-Z",
            "-X", "batch.num.messages=%d" % rnd.choice([1, 2, 7]), stdin=b"".join(lines))
    elif what == "delete":  # refused where the policy is only to compact
        run("klog", "config", "set", "topic", topic, "cleanup.policy=compact,delete")
        start, end = c.list_offset(topic, 0, -2)[2], c.list_offset(topic, 0, -1)[2]
        delete_records(c, topic, rnd.choice([end, rnd.randint(start, end), min(end, start + 3)]))
    else:
        policy = rnd.choice(["compact", "compact", "compact,delete"])
        run("klog", "config", "set", "topic", topic, "cleanup.policy=" + policy, "retention.bytes=%d" % rnd.choice([2000, 20000]))


def read_on(path, sizes, flags=0):
    fd, out = os.open(path, os.O_RDONLY | flags), []
    while True:
        try:
            b = os.read(fd, rnd.choice(sizes))
        except BlockingIOError:
            break
        if not b:
            break
        out.append(b)
    os.close(fd)
    return b"".join(out)


def looks(topic, group):
    """(what, how to see it in the mount, what it should be of everything kcat shows)"""
    p = "%s/%s/p0" % (mnt, topic)
    yield "cat", lambda: run("cat", p), lambda want: want
    yield "wc -c", lambda: run("wc", "-c", p), lambda want: b"%d %s\n" % (len(want), p.encode())
    yield "small reads", lambda: read_on(p, [1, 7, 100, 4096, 70000]), lambda want: want
    yield "follow", lambda: read_on("%s/%s/follow/p0" % (mnt, topic), [1, 100, 131072], os.O_NONBLOCK), lambda want: want
    yield "as", lambda: read_on("%s/%s/as/%s/p0" % (mnt, topic, group), [131072]), lambda want: want
    for n in (1, rnd.randint(2, 60)):
        yield "tail -n %d" % n, lambda: run("tail", "-n", str(n), p), lambda want: b"".join(want.splitlines(keepends=True)[-n:])
    size = os.stat(p).st_size
    for _ in range(20):
        at, n = rnd.randint(0, size), rnd.choice([1, 50, 1000, 200000])
        yield "pread %d at %d" % (n, at), lambda: pread(p, n, at), lambda want: want[at:at + n]


def pread(path, n, at):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, n, at)
    finally:
        os.close(fd)


def tried(f):
    try:
        return f()
    except (OSError, subprocess.CalledProcessError) as e:
        return repr(e).encode()


def settled(topic):
    """What kcat shows, once the mount has as much: the base of a file moves when the last who had it open has closed it."""
    deadline = time.monotonic() + 30
    while True:
        shown, size = kcat(topic), os.stat("%s/%s/p0" % (mnt, topic)).st_size
        if size == len(shown):
            return shown
        if time.monotonic() > deadline:
            sys.exit("%s has %d bytes, and kcat shows %d" % (topic, size, len(shown)))


def compare(topic, group):
    while True:  # until nothing changed while the mount was looked at
        before = settled(topic)
        said = [(what, tried(see), right(before)) for what, see, right in looks(topic, group)]
        if before == kcat(topic):
            break
        group += "x"
    for what, got, want in said:
        if got != want:
            open("want", "wb").write(want)
            open("got", "wb").write(got)
            sys.exit("%s: %s differs: %d bytes wanted, %r; %d got, %r" % (topic, what, len(want), want[:60], len(got), got[:60]))
    return len(before)


history.count = 0
for h in range(histories):
    c, topic, seen = Conn(broker), "h%d" % h, []
    err = c.create_topic(topic, 1, 1, [("cleanup.policy", "compact"), ("segment.bytes", str(rnd.choice([1024, 3000]))),
                                       ("min.cleanable.dirty.ratio", "0"), ("delete.retention.ms", rnd.choice(["0", "100000"])),
                                       ("index.interval.bytes", rnd.choice(["0", "200", "4096"]))])[0]
    assert err == 0, err
    for r in range(rounds):
        for _ in range(rnd.randint(1, 4)):
            history(topic, c)
        seen.append(compare(topic, "g%d" % r))
    print(topic, "sizes seen", seen)
    c.close()
X
"$PY" compare.py $M $SEED ${ROUNDS:-8} ${HISTORIES:-3} || fail "the mount and kcat differ (SEED=$SEED)"
