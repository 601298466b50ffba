# SPDX-License-Identifier: Apache-2.0
# A writer that signals interrupt while its record is on its way gets the acknowledgement, not EINTR: it never has to send twice.
# Nor does any other call on a file of the mount see such signals while the broker answers.
scene
"$PY" - "$P" "$KLOGD_PID" <<'X' || fail "writes under a timer"
import ctypes, os, signal, sys, threading
p, klogd = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGALRM, lambda *a: None)
signal.siginterrupt(signal.SIGALRM, True)
libc = ctypes.CDLL(None, use_errno=True)       # python itself would go on after EINTR
f = os.open(p, os.O_WRONLY | os.O_APPEND)
assert libc.write(f, b"first\n", 6) == 6
for i in range(3):
    os.kill(klogd, signal.SIGSTOP)
    threading.Timer(0.5, os.kill, (klogd, signal.SIGCONT)).start()
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    line = b"line %d\n" % i
    n = libc.write(f, line, len(line))
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert n == len(line), (n, os.strerror(ctypes.get_errno()))
os.close(f)
X
printf 'first\nline 0\nline 1\nline 2\n' | same "content" - "$P"

# A timer whose handler restarts calls (a profiler's, Go's preemption, git's progress) is not seen by stat, open, read, readdir,
# statfs, getxattr and write, as on a disk: no EINTR, and every line is there once.
# https://github.com/golang/go/issues/40846 https://github.com/macfuse/macfuse/issues/228 https://github.com/macfuse/macfuse/issues/213
"$PY" - "$P" "$M/t1" <<'X' || fail "calls under a timer that restarts them"
import ctypes, errno, os, signal, sys
p, d = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *a: None)
signal.siginterrupt(signal.SIGALRM, False)
buf = ctypes.create_string_buffer(4096)
calls = {}
def call(name, *args):
    n = getattr(libc, name)(*args)
    if n < 0 and ctypes.get_errno() == errno.EINTR:
        calls[name] = calls.get(name, 0) + 1
    return n
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
for i in range(200):
    call("stat", p, buf)
    f = call("open", p, os.O_RDONLY)
    call("read", f, buf, 4096)
    call("read", f, buf, 4096)
    os.close(f)
    call("statfs", d, buf)
    call("getxattr", p, b"user.klog.end_offset", buf, 100)
    f = call("open", p, os.O_WRONLY | os.O_APPEND)
    call("write", f, b"again %d\n" % i, len(b"again %d\n" % i))
    os.close(f)
    os.listdir(d)
signal.setitimer(signal.ITIMER_REAL, 0)
assert not calls, calls
X
{ printf 'first\nline 0\nline 1\nline 2\n'; seq -f 'again %g' 0 199; } | same "content after the timer" - "$P"
