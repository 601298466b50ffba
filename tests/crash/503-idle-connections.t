# SPDX-License-Identifier: Apache-2.0
# Ten thousand idle connections: little memory, no work, others served as before, and all given back.
# timeout: 120
ulimit -n 13000 2>/dev/null || skip "needs 13,000 descriptors (ulimit -n)" # an eighth is kept for files
klogd_start
topic t1
echo ok | grow
before=$(rss_kb "$KLOGD_PID")
fds=$(fd_count "$KLOGD_PID")
cat >idle.py <<'X'
import socket, sys
from kwire import Conn
c = [Conn(timeout=30) for _ in range(10000)]
for x in c[::100]:
    x.api_versions()
open("connected", "w").close()
sys.stdin.read()
X
mkfifo hold
"$PY" idle.py <hold &
idle=$!
exec 9>hold
wait_for 60 "ten thousand connections" test -e connected
wait_for 10 "klogd has accepted them" eval '[ "$(fd_count "$KLOGD_PID")" -ge 10000 ]'
between "kB of memory each connection" 0 8 $((($(rss_kb "$KLOGD_PID") - before) / 10000))
ticks() { awk '{ print $14 + $15 }' "/proc/$KLOGD_PID/stat"; }
was=$(ticks)
for i in 1 2 3 4 5 6 7 8 9 10; do eq "served" ok "$(consume t1 -c1)"; done
between "CPU ticks meanwhile" 0 200 $(($(ticks) - was))
exec 9>&-
wait $idle
wait_for 20 "descriptors are back to $fds" eval '[ "$(fd_count "$KLOGD_PID")" -le $fds ]'
