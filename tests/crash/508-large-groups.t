# SPDX-License-Identifier: Apache-2.0
# A group of 1,000 members and 10,000 small ones: joins settle, cost what they should, and are loaded after kill -9.
# timeout: 240
ulimit -n 4096 2>/dev/null || skip "needs 4,096 descriptors (ulimit -n)"
klogd_start --override group.initial.rebalance.delay.ms=0 --override log.level=debug
topic t 10
"$PY" -c "
from kgroup import GroupConn
while GroupConn().coordinator('x') != 0: pass" || fail "no coordinator"
klogd_kill
klogd_restart
"$PY" "$SRCDIR/tests/crash/large_groups.py" $KLOGD_PID many || fail "see above"
"$PY" "$SRCDIR/tests/crash/large_groups.py" $KLOGD_PID large || fail "see above"
klogd_kill
: >"$KLOGD_LOG"
klogd_restart
loaded() { [ "$(grep -c 'loaded groups=' "$KLOGD_LOG")" -ge 50 ]; }
wait_for 20 "all partitions of __consumer_offsets are loaded" loaded
eq "groups after kill -9" 10001 "$(sed -n 's/.*loaded groups=\([0-9]*\).*/\1/p' "$KLOGD_LOG" | awk '{ n += $1 } END { print n }')"
slowest=$(sed -n 's/.*loaded groups=.* ms=\([0-9]*\)/\1/p' "$KLOGD_LOG" | sort -n | tail -n1)
echo "slowest partition to load: $slowest ms"
