# SPDX-License-Identifier: Apache-2.0
# Requests begun and answers not taken have a budget over all connections (queued.max.request.bytes): above it larger requests wait,
# those who do not go on are closed, small ones are served all the while, and a large honest one comes to its end.
# timeout: 120
MB=$((1 << 20))
klogd_start --override socket.request.max.bytes=$((32 * MB)) --override queued.max.request.bytes=$((64 * MB))
topic t 1 max.message.bytes=$((20 * MB))
topic wide 2000
"$PY" - "$KLOGD_PID" <<'X' || fail "half frames"
import os, socket, sys, threading
from kwire import *
def status(key): return int([l for l in open("/proc/%s/status" % sys.argv[1]) if l.startswith(key)][0].split()[1])
before = status("VmRSS")
other = Conn(timeout=60)
chunk = b"\0" * (1 << 20)
def half():
    s = socket.create_connection(("127.0.0.1", 9092))
    s.settimeout(30)
    def send():
        try:
            s.sendall(i32(32 << 20))
            for _ in range(30):
                s.sendall(chunk)
        except OSError:
            pass
    threading.Thread(target=send, daemon=True).start()
    return s
half_frames = [half() for _ in range(16)]
# Somebody has a large batch to bring meanwhile, and gets through.
big = Conn(timeout=60)
assert big.produce("t", 0, batch([os.urandom(4 << 20)]), timeout_ms=60000) == (0, 0)
for _ in range(100):
    assert other.metadata(["t"])["t"] == (0, 1)
for s in half_frames:
    s.close()
grown = (status("VmHWM") - before) >> 10
assert grown < 64 + 32 + 60, grown

# Answers that nobody takes: 80 kB each, on many connections
def unread():
    k = Conn(timeout=60)
    k.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(200):
        try:
            k.send(3, 1, array([string("wide")]))
        except ConnectionError:
            break
    return k
held = [unread() for _ in range(40)]
for _ in range(100):
    assert other.metadata(["t"])["t"] == (0, 1)
assert big.produce("t", 0, batch([os.urandom(4 << 20)]), timeout_ms=60000) == (0, 1)
grown = (status("VmHWM") - before) >> 10
assert grown < 64 + 32 + 60, grown
X
gone "$KLOGD_PID" && fail "klogd ended"
has "log" 'take all of queued.max.request.bytes=67108864' "$(cat "$KLOGD_LOG")"
has "log" 'it holds memory, which is short \(queued.max.request.bytes\), and does not go on' "$(cat "$KLOGD_LOG")"
eq "stored" 2 "$(end_offset t)"
klogd_stop
status 1 "$BUILDDIR/daemon/klogd" --override log.dirs="$D" --override queued.max.request.bytes=1000000
has "error" 'queued.max.request.bytes=1000000 is less than socket.request.max.bytes=104857600: raise it' "$OUT"
