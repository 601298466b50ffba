# SPDX-License-Identifier: Apache-2.0
# A writer learns that its record is not committed: with the broker silent or gone, echo fails within the time-out, and so
# does the close of a line without a newline. Exit 0 means committed.
# https://github.com/bazil/fuse/issues/26 https://github.com/libfuse/libfuse/issues/373
# https://github.com/PyFilesystem/pyfilesystem/issues/101
klogd_start
topic t1
mount_start -o timeout=3
echo first >>"$P" || fail "append"
klogd_pause
fails 'Input/output error|Connection timed out' timeout 30 bash -c 'echo lost >>"$1"' _ "$P"
kill -CONT "$KLOGD_PID"
wait_for 15 "appends work again" bash -c 'echo second >>"$1"' _ "$P"
between "copies of the failed line" 0 1 "$(grep -c lost "$P")"
has "last line" second "$(tail -n1 "$P")"

# Written while the broker lived, closed after its death: a whole line was committed when write returned.
"$PY" - "$P" "$KLOGD_PID" <<'X' || fail "write, kill, close"
import os, signal, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
assert os.write(f, b'committed\n') == 10
os.kill(int(sys.argv[2]), signal.SIGKILL)
os.close(f)
X
wait "$KLOGD_PID" 2>/dev/null
fails 'Input/output error|Connection timed out' bash -c 'echo nobody >>"$1"' _ "$P"
klogd_restart
eq "the committed line" committed "$(consume | grep -v second | tail -n1)"
