# SPDX-License-Identifier: Apache-2.0
# Extended attributes tell what a partition is besides its bytes; lsattr shows append-only; what means nothing is EPERM.
scene
seq 1 7 >>"$P"
"$PY" - "$P" "$M/t1" <<'X' || fail "attributes"
import errno, os, sys
p, d = sys.argv[1:]
want = {"leader": "1", "isr": "1", "first_offset": "0", "end_offset": "7"}
names = os.listxattr(p)
assert sorted(names) == sorted("user.klog." + n for n in [*want, "leader_epoch", "topic_id"]), names
for name, value in want.items():
    assert os.getxattr(p, "user.klog." + name).decode() == value, (name, os.getxattr(p, "user.klog." + name))
assert int(os.getxattr(p, "user.klog.leader_epoch")) >= 0
assert os.getxattr(p, "user.klog.topic_id") == os.getxattr(d, "user.klog.topic_id")
for path, name in (p, "user.other"), (p, "security.selinux"), (d, "user.klog.leader"):
    try:
        os.getxattr(path, name)
    except OSError as e:
        assert e.errno == errno.ENODATA, (name, e)
    else:
        raise AssertionError(name)
for call in (lambda: os.setxattr(p, "user.klog.leader", b"2"), lambda: os.removexattr(p, "user.klog.leader"),
             lambda: os.posix_fallocate(os.open(p, os.O_WRONLY | os.O_APPEND), 0, 100)):
    try:
        call()
    except OSError as e:
        assert e.errno == errno.EPERM, e
    else:
        raise AssertionError("allowed")
X
if command -v lsattr >/dev/null; then has "lsattr" '^-*a-* ' "$(lsattr "$P")"; fi
"$PY" - "$P" <<'X' || fail "chattr" # +a as it is, and what would change it
import errno, fcntl, os, struct, sys
GETFLAGS, SETFLAGS, APPEND, IMMUTABLE = 0x80086601, 0x40086602, 0x20, 0x10
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(fd, SETFLAGS, struct.pack("l", APPEND))
for flags in 0, IMMUTABLE, APPEND | IMMUTABLE:
    try:
        fcntl.ioctl(fd, SETFLAGS, struct.pack("l", flags))
    except OSError as e:
        assert e.errno == errno.EPERM, (flags, e)
    else:
        raise AssertionError(flags)
assert struct.unpack("i4x", fcntl.ioctl(fd, GETFLAGS, bytes(8)))[0] == APPEND
X
