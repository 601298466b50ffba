# SPDX-License-Identifier: Apache-2.0
# A writer that signals interrupt while its record is on its way gets the acknowledgement, not EINTR: it never has to send twice.
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
