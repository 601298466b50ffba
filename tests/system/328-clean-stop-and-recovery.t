# SPDX-License-Identifier: Apache-2.0
# A clean stop drains and leaves a marker, so that the next start scans nothing; a start after kill -9 is quick as well.
klogd_start
topic t1
# One idempotent producer that sends again what was not answered, over a clean stop in the middle.
PYTHONPATH=$PYTHONPATH:$SRCDIR/tests/crash "$PY" - <<'X' &
import os, kill_loop
w = kill_loop.Writer(0, 1)
kill_loop.TOPIC = "t1"
w.start()
while not os.path.exists("enough"):
    w.join(0.05)
kill_loop.stop.set()
w.join(30)
assert not w.is_alive() and not kill_loop.problems, kill_loop.problems
kill_loop.compare([w])
print(len(w.acked))
X
writer=$!
wait_for 20 "load" eval '[ "$(end_offset)" -gt 2000 ]'
klogd_stop
klogd_restart
n=$(end_offset)
wait_for 20 "more load" eval '[ "$(end_offset)" -gt $((n + 2000)) ]'
touch enough
wait $writer
eq "the writer and what it finds" 0 $?
klogd_stop
: >"$KLOGD_LOG"
klogd_restart
has_not "what a start after a clean stop says" 'WARN|scanned|cut ' "$(cat "$KLOGD_LOG")"
consume >all
for i in 1 2 3; do
    klogd_kill
    klogd_restart
done
consume | same "records after kill -9" all -
