# SPDX-License-Identifier: Apache-2.0
# timeout: 90
# klogfs ends well and in time with readers of groups, waiting opens, polls and changes of positions on their way, whether the broker
# answers, stands still, or is gone.
klogd_start --override group.initial.rebalance.delay.ms=0
topic t1 2
R=$M/t1/as
G=$M/t1/.groups
PIDS=()
run() { "$@" >>out 2>&1 & PIDS+=($!); }
cat >poll.py <<'X'
import os, select, sys
f = os.open(sys.argv[1], os.O_RDONLY)
p = select.poll()
p.register(f, select.POLLIN)
while p.poll() and os.read(f, 100):
    pass
X
more() {
    run cat "$R/g/follow/p0" # waits for the one that is killed
    run cat "$R/k/p0"
    run cat "$R/k/all"
    run mkdir "$G/l"
    run cat "$G/h/p0"
    run bash -c 'echo 1 >"$1"' _ "$G/k/p0"
    run bash -c 'echo 1 >"$1"' _ "$G/h/p0"
    run ls -lR "$G"
    run cat "$G/h/.status"
    run bash -c 'echo x >>"$1"' _ "$P"
    kill -9 "${PIDS[0]}" "${PIDS[2]}" 2>/dev/null # the one of the first two that was let in, or not
}
for broker in answers stops hangs-later gone; do
    mount_start -o timeout=1,session=6
    seq 1 100 >>"$P"
    : >out
    PIDS=()
    run cat "$R/g/follow/p0"
    run cat "$R/g/follow/p0"
    run cat "$R/h/follow/all"
    run cat "$R/h/follow/all"
    run cat "$R/i/p1"
    run "$PY" poll.py "$R/j/follow/all"
    wait_lines out 101 # one group's and a part of the other's
    case $broker in
    answers) more ;;
    stops) klogd_pause; more ;;
    hangs-later) more; klogd_pause ;;
    gone) klogd_kill; more ;;
    esac
    kill -TERM "$KLOGFS_PID"
    wait_gone "$KLOGFS_PID" 20
    wait "$KLOGFS_PID"
    eq "exit status of klogfs when the broker $broker" 0 $?
    KLOGFS_PID=
    [ -z "$KLOGD_PID" ] || kill -CONT "$KLOGD_PID"
    wait "${PIDS[@]}" 2>/dev/null
done

# Who reads on while its member is leaving already: that says nothing any more, and breaks nothing.
cat >late.py <<'X'
import os, sys, time
f = os.open(sys.argv[1], os.O_RDONLY)
os.read(f, 100)
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
try:
    while os.read(f, 100):
        pass
except OSError:
    pass
X
klogd_restart
mount_start -o timeout=2,session=6
"$PY" late.py "$R/late/all" & late=$!
wait_for 20 "it has read something" test -e ready
klogd_pause
kill -TERM "$KLOGFS_PID"
wait_for 5 "it is stopping" eval '[ "$(grep -c "stopping: signal 15" "$KLOGFS_LOG")" = 5 ]'
touch go
wait_gone "$KLOGFS_PID" 20
wait "$KLOGFS_PID"
eq "exit status of klogfs with a late reader" 0 $?
KLOGFS_PID=
wait $late
kill -CONT "$KLOGD_PID"
mount_start -o session=6
left() { [ "$(tail -n +2 "$G/h/.status" | awk '{ print $5 }' | sort -u)" = - ]; }
wait_for 20 "the members of the mount that ended without them are missed" left
eq "what another group reads" "$(wc -l <"$P")" "$(wc -l <"$R/new/p0")"
