# SPDX-License-Identifier: Apache-2.0
# Readers that leave early kill nobody: both daemons live on, descriptors come back.
# https://github.com/confluentinc/librdkafka/issues/2
# timeout: 120
scene
seq 1 2000000 >>"$P"
fds=$(fd_count "$KLOGD_PID")
cat "$P" | head -n1 >first
eq "statuses" "141 0" "${PIPESTATUS[*]}"
eq "first line" 1 "$(cat first)"
for i in $(seq 20); do $KC -t t1 -p 0 -o beginning | head -n1 >first; done
"$PY" - <<'X' || fail "connections dropped inside a reply"
import socket, struct
from kwire import Conn, i8, i16, i32, i64, string, array
for i in range(50):
    c = Conn()
    c.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    c.send(1, 4, i32(-1) + i32(0) + i32(1) + i32(1 << 26) + i8(0) + array([string("t1") + array([i32(0) + i64(0) + i32(1 << 26)])]))
    c.s.recv(100)
    c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))   # close with RST
    c.close()
X
gone "$KLOGD_PID" && fail "klogd died"
gone "$KLOGFS_PID" && fail "klogfs died"
wait_for 5 "descriptors are back to $fds" eval '[ "$(fd_count "$KLOGD_PID")" -le $((fds + 4)) ]'
eq "still served" 2000000 "$(tail -n1 "$P")"
