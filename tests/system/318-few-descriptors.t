# SPDX-License-Identifier: Apache-2.0
# At the limit of descriptors creation fails with an error, what exists is served, and the daemon does not spin.
# https://github.com/apache/kafka/pull/1353
requires_klogd
klogd_spawn_limited() { (ulimit -n 200; exec "$BUILDDIR/daemon/klogd" --override listeners=PLAINTEXT://127.0.0.1:9092 --override log.dirs="$D") >>"$KLOGD_LOG" 2>&1 19>&- & KLOGD_PID=$!; }
klogd_spawn_limited
wait_for 15 "klogd listens" klogd_up
topic t1
echo before | grow
"$PY" - <<'X' || fail "creation at the limit"
from kwire import Conn
c = Conn()
codes = set()
for i in range(40):
    codes.add(c.create_topic("f%d" % i, 20)[0])
assert codes <= {0, 44, 56, 37, 42, -1}, codes
X
echo after | grow
eq "served" "before after" "$(consume | tr '\n' ' ' | sed 's/ $//')"
ticks() { awk '{ print $14 + $15 }' "/proc/$KLOGD_PID/stat"; }
was=$(ticks)
eq "still one line" before "$(consume t1 -c1)"
"$PY" -c "
import socket, time
s = []
try:
    for i in range(300): s.append(socket.create_connection(('127.0.0.1', 9092), timeout=2))
except OSError: pass
t = time.monotonic()
while time.monotonic() - t < 1: time.sleep(0.05)"
between "CPU ticks in a second at the limit" 0 60 $(($(ticks) - was))
wait_for 10 "served again" eval '[ "$(consume t1 -c1)" = before ]'
