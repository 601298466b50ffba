# SPDX-License-Identifier: Apache-2.0
# Every usual way to open for append works; a positioned writer is never turned into an appender.
# https://github.com/libfuse/sshfs/issues/117 https://github.com/libfuse/sshfs/issues/85
# https://github.com/netheril96/securefs/issues/58
scene
"$PY" - "$P" <<'X' || fail "open flags"
import errno, os, sys
from os import O_APPEND, O_CREAT, O_DSYNC, O_RDWR, O_SYNC, O_TRUNC, O_WRONLY
p = sys.argv[1]
for flags in O_WRONLY | O_CREAT | O_APPEND, O_RDWR | O_APPEND, O_WRONLY | O_APPEND | O_SYNC, O_WRONLY | O_APPEND | O_DSYNC:
    f = os.open(p, flags, 0o644)
    assert os.write(f, b'q\n') == 2, flags
    os.close(f)
for flags in O_WRONLY, O_RDWR, O_WRONLY | O_APPEND | O_TRUNC, O_WRONLY | O_CREAT, O_RDWR | O_CREAT | O_TRUNC:
    try:
        os.open(p, flags, 0o644)
    except OSError as e:
        assert e.errno == errno.EPERM, (flags, e)
    else:
        raise AssertionError(flags)
try:
    os.open(p, O_WRONLY | O_APPEND | O_CREAT | os.O_EXCL, 0o644)
except OSError as e:
    assert e.errno == errno.EEXIST, e
else:
    raise AssertionError("O_EXCL")
open(p, 'a').write('a\n')
X
echo tee | tee -a "$P" >/dev/null || fail "tee -a"
echo dd | dd of="$P" oflag=append conv=notrunc status=none || fail "dd append"
fails 'Operation not permitted' dd if=/etc/hostname of="$P" conv=notrunc status=none
printf 'q\nq\nq\nq\na\ntee\ndd\n' | same "content" - "$P"
