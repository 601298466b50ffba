# SPDX-License-Identifier: Apache-2.0
# When klogfs is told to stop, the unfinished last lines of open files become records, as a last close would make them.
scene
exec 9>>"$P"
printf 'whole\nunfinished' >&9
eq "before" whole "$(consume)"
kill -TERM "$KLOGFS_PID"
wait_gone "$KLOGFS_PID"
wait "$KLOGFS_PID"
eq "exit status" 0 $?
KLOGFS_PID=
exec 9>&-
printf 'whole\nunfinished\n' | cmp - <(consume) || fail "records"
mounted && fail "a mount is left"
true
