# SPDX-License-Identifier: Apache-2.0
# A broker and a mount start, serve one record, and stop with status 0; after a clean stop nothing is scanned.
klogd_start
topic t1
echo hello | grow
eq "the record" hello "$(consume)"
klogd_stop
klogd_restart
eq "the record after a restart" hello "$(consume)"
mount_start
eq "the same through the mount" hello "$(cat "$P")"
mount_stop
klogd_stop

# Started with standard descriptors closed, no file and no connection of theirs takes those numbers and the log lines with them.
"$BUILDDIR/daemon/klogd" --override listeners="PLAINTEXT://127.0.0.1:9092" --override log.dirs="$D" 0<&- 2>&- 19>&- >/dev/null &
KLOGD_PID=$!
wait_for 15 "klogd listens" klogd_up
klogfs -f "$B" "$M" 0<&- 1>&- 2>&- 19>&- &
KLOGFS_PID=$!
wait_for 15 "klogfs mounts" mount_answers
echo again >>"$P" || fail "append"
eq "all of it" "hello again" "$(echo $(consume))"
klog topic list -b "$B" >&- 2>&- && fail "klog wrote to a closed standard output"
klog topic create -b "$B" t2 0<&- 2>&- >/dev/null || fail "klog without standard input and error"
mount_stop
klogd_stop
eq "files with log lines" "" "$(grep -rlE 'INFO |WARN ' "$D")"
status 0 klog verify "$D"
