# SPDX-License-Identifier: Apache-2.0
# No memory for what a client asks for: its connection ends, the broker and everybody else go on, and when memory is back all is as before.
# timeout: 120
! grep -qE "__(asan|tsan)_init" "$BUILDDIR/daemon/klogd" || skip "a sanitizer needs the address space that is taken away here"
klogd_start --override queued.max.request.bytes=-1 --override num.network.threads=2 --override log.level=debug
topic t 1 max.message.bytes=20000000
echo before | grow t
"$PY" - "$KLOGD_PID" "$KLOGD_LOG" <<'X' || fail "out of memory"
import resource, socket, sys, threading, time
from kwire import *
pid = int(sys.argv[1])
_, hard = resource.prlimit(pid, resource.RLIMIT_AS)
def vm(): return int([l for l in open("/proc/%d/status" % pid) if l.startswith("VmSize")][0].split()[1]) << 10
def said(what): return what in open(sys.argv[2]).read()
other = Conn(timeout=60)
assert other.metadata(["t"])["t"] == (0, 1)
chunk = b"\0" * (1 << 20)
def half():
    s = socket.create_connection(("127.0.0.1", 9092))
    s.settimeout(60)
    def send():
        try:
            s.sendall(i32(100 << 20))
            for _ in range(90):
                s.sendall(chunk)
        except OSError:
            pass
    t = threading.Thread(target=send, daemon=True)
    t.start()
    return s, t
for spare in 300 << 20, 100 << 20, 30 << 20, 5 << 20:
    resource.prlimit(pid, resource.RLIMIT_AS, (vm() + spare, hard))
    held = [half() for _ in range(12)]
    while not said("there is no memory for a frame"):
        time.sleep(0.05)
    for i in range(50):
        assert other.metadata(["t"])["t"] == (0, 1)
    # a large answer: it, or the end of this connection
    big = Conn(timeout=60)
    big.send(32, 3, i32(5000) + (i8(4) + string("1") + i32(-1)) * 5000 + i8(1) + i8(1))
    try:
        big.frame()
    except EOFError:
        pass
    assert other.metadata(["t"])["t"] == (0, 1)
    for s, _ in held:
        s.close()
    for _, t in held:
        t.join()
    resource.prlimit(pid, resource.RLIMIT_AS, (hard, hard))
    assert other.produce("t", 0, batch([b"x" * 3000000]))[0] == 0
X
gone "$KLOGD_PID" && fail "klogd ended"
has_not "log" 'invariant|out of memory' "$(cat "$KLOGD_LOG")"
eq "stored" 5 "$(end_offset t)"
klogd_stop
