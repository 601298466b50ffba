# SPDX-License-Identifier: Apache-2.0
# What would destroy data fails with EPERM and changes nothing; nothing pretends to have worked.
# https://github.com/s3fs-fuse/s3fs-fuse/issues/1811 https://github.com/s3fs-fuse/s3fs-fuse/pull/403
# https://github.com/macos-fuse-t/fuse-t/issues/15
scene
echo keep >>"$P"
no='Operation not permitted'
fails "$no" bash -c 'echo x >"$1"' _ "$P"
fails "$no" bash -c ': >"$1"' _ "$P"
fails "$no" truncate -s 0 "$P"
fails "$no" truncate -s 1M "$P"
fails "$no" truncate -s 5 "$P"
fails "$no" cp /etc/hostname "$P"
fails "$no" dd if=/etc/hostname of="$P" status=none
fails "$no" rm -f "$P"
fails "$no" mv "$P" "$M/t1/p1"
fails "$no" ln "$P" "$M/t1/p1"
fails "$no" fallocate -l 4096 "$P"
"$PY" - "$P" <<'X' || fail "system calls"
import errno, os, sys
p = sys.argv[1]
def eperm(f, *a):
    try:
        f(*a)
    except OSError as e:
        assert e.errno == errno.EPERM, (f, a, e)
        return
    raise AssertionError((f, a, "worked"))
f = os.open(p, os.O_RDWR | os.O_APPEND)
eperm(os.ftruncate, f, 0)
eperm(os.truncate, p, 0)
eperm(os.open, p, os.O_WRONLY)
eperm(os.open, p, os.O_RDWR)
eperm(os.open, p, os.O_WRONLY | os.O_APPEND | os.O_TRUNC)
eperm(os.unlink, p)
eperm(os.rename, p, p + "x")
eperm(os.symlink, "p0", p + "x")
eperm(os.mknod, os.path.dirname(p) + "/fifo", 0o10644)
X
eq "content" keep "$(cat "$P")"
eq "end offset" 1 "$(end_offset)"
