# SPDX-License-Identifier: Apache-2.0
# poll, select and epoll on as/G/follow/: nothing until there is a record, then readable at once; they acknowledge nothing, and they
# see rebalances and the end.
requires kcat
scene --override group.initial.rebalance.delay.ms=0
cat >polls.py <<'X'
import errno, os, select, signal, subprocess, sys, time
M, what = sys.argv[1], sys.argv[2]
F = "%s/t1/as/g-%s/follow/%s" % (M, what, what)
G = "%s/t1/.groups/g-%s" % (M, what)
IN = select.POLLIN
os.mkdir(G)
with open(G + "/p0", "w") as f:
    f.write("end\n")


def grow(line):
    subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", "t1", "-p", "0", "-X", "linger.ms=0"], input=line, check=True)


def append(line):
    with open(M + "/t1/p0", "ab") as f:
        f.write(line)


def position():
    with open(G + "/p0") as f:
        return int(f.read())


def until(what, f):
    t = time.monotonic()
    while not f():
        assert time.monotonic() - t < 20, what
        time.sleep(0.02)


n = position()
for name in ("poll", "select", "epoll", "edge"):
    f = os.open(F, os.O_RDONLY | os.O_NONBLOCK)
    if name == "poll":
        p = select.poll()
        p.register(f, IN)
        wait = lambda ms: p.poll(ms) == [(f, IN)]
    elif name == "select":
        wait = lambda ms: select.select([f], [], [], ms / 1000)[0] == [f]
    else:
        e = select.epoll()
        e.register(f, IN | (select.EPOLLET if name == "edge" else 0))
        wait = lambda ms: e.poll(ms / 1000) == [(f, IN)]

    def nothing():
        try:
            return os.read(f, 100) and False
        except BlockingIOError:
            return True

    assert not wait(50), name + ": readable when empty"
    assert nothing(), name
    for how in (append, grow):
        how(b"one\n")
        assert wait(10000), name + ": not woken"
        if name != "edge":
            assert wait(0), name + ": still readable"
        assert os.read(f, 2) == b"on"
        if name != "edge":
            assert wait(0), name + ": readable in the middle of a line"
        assert os.read(f, 100) == b"e\n"
        assert not wait(50), name + ": readable after all was read"
    n += 2
    until("the record before the last is committed", lambda: position() == n - 1)
    assert not wait(1200 if name == "poll" else 0), name
    assert position() == n - 1, "a poll acknowledged something"
    assert nothing(), name
    until("reading on acknowledges", lambda: position() == n)
    append(b"two\n")                 # nobody waits: it is seen when asked
    if name != "edge":
        until("a record that is there", lambda: wait(0))
    assert os.read(f, 100) == b"two\n"
    assert nothing()
    n += 1
    os.close(f)

# a signal ends the wait, without an event
f = os.open(F, os.O_RDONLY | os.O_NONBLOCK)


class Alarm(Exception): pass
def alarm(*_): raise Alarm


signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.2)
p = select.poll()
p.register(f, IN)
try:
    sys.exit("events instead of the signal: %s" % p.poll(20000))
except Alarm:
    pass
assert p.poll(0) == []

# two processes that share the descriptor wait for one record; one gets it
pids = []
for i in range(2):
    pid = os.fork()
    if pid == 0:
        q = select.poll()
        q.register(f, IN)
        os._exit(0 if q.poll(20000) == [(f, IN)] else 1)
    pids.append(pid)
until("both wait", lambda: all("poll" in open("/proc/%d/wchan" % p).read() for p in pids))
append(b"shared\n")
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
assert os.read(f, 100) == b"shared\n"

if what == "all":
    # another member takes the one partition or gets none; whoever has it is woken, the other never
    try: os.read(f, 1); sys.exit("no EAGAIN")
    except BlockingIOError: pass
    h = os.open(F, os.O_RDONLY | os.O_NONBLOCK)
    status = lambda: open(G + "/.status").read().splitlines()[1].split()[4]
    before = status()
    p.register(h, IN)
    for i in range(2):
        if i == 1:                   # the owner goes: the other one gets what it had
            os.close(owner)
            p.unregister(owner)
            before = status()
        append(b"for one\n")
        got = p.poll(20000)
        assert len(got) == 1 and got[0][1] == IN, got
        owner = got[0][0]
        assert os.read(owner, 100) == b"for one\n"
        try: os.read(owner, 1); sys.exit("no EAGAIN")
        except BlockingIOError: pass
        assert p.poll(50) == []
    p.unregister(owner)
    f = owner
    p.register(f, IN)

# the mount ends: who waits is woken; the end is read where the mount is still there for it
print("waits", flush=True)
got = p.poll(20000)
assert len(got) == 1 and got[0][0] == f and got[0][1] & (IN | select.POLLERR), got
try:
    assert os.read(f, 100) == b""
except OSError as e:
    assert e.errno in (errno.ENOTCONN, errno.ECONNABORTED), e
X
for which in p0 all; do
    "$PY" polls.py "$M" $which >$which.out &
    PID=$!
    said() { [ -s $which.out ] || gone $PID; }
    wait_for 50 "the end of the test of $which" said
    kill -TERM "$KLOGFS_PID"
    wait_gone "$KLOGFS_PID" 20
    KLOGFS_PID=
    wait_gone $PID
    wait $PID
    eq "polls of $which" 0 $?
    mount_start
done
