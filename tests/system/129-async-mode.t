# SPDX-License-Identifier: Apache-2.0
# With -o async a write returns at once; fsync and close wait and tell; nothing is lost, nothing twice.
klogd_start
topic t1
mount_start -o async,timeout=4
seq 1 100000 >>"$P" || fail "seq"
wait_for 10 "all lines are there" eval '[ "$(wc -l <"$P")" = 100000 ]'
cmp "$P" <(seq 1 100000) || fail "lines"
klogd_pause
"$PY" - "$P" <<'X' || fail "errors with the broker silent"
import errno, os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
assert os.write(f, b'lost or late\n') == 13
try:
    os.fsync(f)
except OSError as e:
    assert e.errno in (errno.EIO, errno.ETIMEDOUT), e
else:
    raise AssertionError("fsync lied")
os.close(f)
X
kill -CONT "$KLOGD_PID"
wait_for 15 "appends work again" bash -c 'echo on >>"$1"' _ "$P"
between "copies of the late line" 0 1 "$(grep -c 'lost or late' "$P")"
wait_for 5 "last line" eval '[ "$(tail -n1 "$P")" = on ]'
