# SPDX-License-Identifier: Apache-2.0
# A client that takes none of its answers for connections.max.idle.ms is closed, and what it held is given back, segments that were
# deleted included; a client whose request is being worked on is not idle.
klogd_start --override connections.max.idle.ms=2000 --override log.level=debug
topic t 1 segment.bytes=1048576
for _ in 1 2 3 4; do head -c 900000 /dev/zero | tr '\0' x | $K -P -t t -p 0 -D '~' -X message.max.bytes=1000000 || fail "produce"; done
eq "records" 4 "$(end_offset t)"
"$PY" - "$KLOGD_LOG" <<'X' || fail "clients that do not read"
import socket, sys, time
from kwire import *
def fetch_body(offset, wait_ms, min_bytes):
    part = i32(0) + i64(offset) + i32(8 << 20)
    return i32(-1) + i32(wait_ms) + i32(min_bytes) + i32(8 << 20) + i8(0) + array([string("t") + array([part])])
lazy = []
for _ in range(5):
    k = Conn(timeout=60)
    k.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(30):
        k.send(1, 4, fetch_body(0, 0, 1))
    lazy.append(k)
# This one waits for longer than the limit, twice, with a request under way.
busy = Conn(timeout=60)
corr = busy.send(1, 4, fetch_body(4, 5000, 1))
admin = Conn(timeout=60)
r = admin.ask(21, 0, array([string("t") + array([i32(0) + i64(4)])]) + i32(10000))
assert r.b.endswith(i64(4) + i16(0)), r.b.hex()
assert busy.reply(corr)
while open(sys.argv[1]).read().count("the peer took nothing of what waits for it for 2000 ms") < len(lazy):
    time.sleep(0.05)
busy.close(), admin.close()
X
gone "$KLOGD_PID" && fail "klogd ended"
nothing_held() { ! ls -l "/proc/$KLOGD_PID/fd" | grep -q deleted; }
wait_for 20 "deleted segments are let go" nothing_held
