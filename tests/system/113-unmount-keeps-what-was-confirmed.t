# SPDX-License-Identifier: Apache-2.0
# SIGTERM and umount flush and leave no mount; what write or fsync confirmed survives the broker's kill -9.
# https://github.com/huggingface/hf-mount/pull/29 https://github.com/archiecobbs/s3backer/issues/197
# https://github.com/skoobe/riofs/issues/130 https://github.com/sifiveinc/wake/pull/663
scene
seq 1 50000 >>"$P"
kill -TERM "$KLOGFS_PID"
wait_gone "$KLOGFS_PID"
wait "$KLOGFS_PID"
eq "exit status of klogfs after TERM" 0 $?
KLOGFS_PID=
mounted && fail "a mount is left"
consume | cmp - <(seq 1 50000) || fail "lost lines"

for mode in sync async; do
    mount_start -o $mode
    "$PY" -c "
import os
f = os.open('$P', os.O_WRONLY | os.O_APPEND)
assert os.write(f, b'$mode\n') == len('$mode\n')
os.fsync(f)
" || fail "write and fsync"
    klogd_kill
    klogd_restart
    eq "the line after kill -9" $mode "$(consume | tail -n1)"
    wait_for 15 "the mount sees it" eval '[ "$(tail -n1 "$P")" = $mode ]'
    mount_stop
done

# With write-behind the lines are on their way when the writer ends; umount waits for them.
mount_start -o async
seq 1 20000 >>"$P"
mount_stop
eq "lines" $((50000 + 2 + 20000)) "$(consume | wc -l)"

# TERM with a file open ends the daemon as well and leaves no mount.
mount_start
exec 9<"$P"
kill -TERM "$KLOGFS_PID"
wait_gone "$KLOGFS_PID"
KLOGFS_PID=
mounted && fail "a mount is left"
exec 9<&-
