# SPDX-License-Identifier: Apache-2.0
# Small things that programs do to any file: setting owner and mode to what they are, O_NONBLOCK on a log's descriptor, names that are too long,
# directories with a size, a mount point that is none.
scene
cat >calls.py <<'X'
import errno, fcntl, os, stat, sys
m = sys.argv[1]
p = m + "/t1/p0"
files = [p, m + "/t1", m, m + "/t1/.config", m + "/t1/.status", m + "/t1/follow/p0"]


def err(f, *a, **kw):
    try:
        f(*a, **kw)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "ok"


for f in files:
    s = os.stat(f)
    mode = stat.S_IMODE(s.st_mode)
    assert err(os.chmod, f, mode) == "ok", f
    assert err(os.chown, f, s.st_uid, s.st_gid) == "ok", f
    assert err(os.chown, f, -1, s.st_gid) == "ok", f
    assert err(os.chown, f, s.st_uid, -1) == "ok", f
    assert err(os.chown, f, -1, -1) == "ok", f
    assert err(os.chmod, f, mode ^ 0o100) == "EPERM", f
    assert err(os.chown, f, s.st_uid + 1, -1) == "EPERM", f
    assert err(os.chown, f, -1, s.st_gid + 1) == "EPERM", f
    assert err(os.utime, f) == "ok", f
    assert err(os.utime, f, (1, 1)) == "EPERM", f
    now = os.stat(f)
    assert (now.st_mode, now.st_uid, now.st_gid) == (s.st_mode, s.st_uid, s.st_gid), f
fd = os.open(p, os.O_WRONLY | os.O_APPEND)
s = os.fstat(fd)
assert err(os.fchmod, fd, stat.S_IMODE(s.st_mode)) == "ok" and err(os.fchown, fd, s.st_uid, s.st_gid) == "ok"
# As haproxy and others set up the descriptor of a log
fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
assert os.write(fd, b"non-blocking\n") == 13
fcntl.fcntl(fd, fcntl.F_SETFL, 0)
assert os.write(fd, b"blocking again\n") == 15
assert os.pwrite(fd, b"positions mean nothing\n", 3) == 23
os.close(fd)
assert open(p, "rb").read() == b"non-blocking\nblocking again\npositions mean nothing\n"
# A descriptor that was not opened to append stays one
assert err(os.open, p, os.O_WRONLY) == "EPERM"
fd = os.open(p, os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
assert err(os.write, fd, b"x\n") == "EBADF"
os.close(fd)
for d in (m, m + "/t1", m + "/t1/.groups"):
    for n, want in ((256, "ENAMETOOLONG"), (1024, "ENAMETOOLONG"), (2000, "ENAMETOOLONG"), (255, "ENOENT")):
        assert err(os.stat, d + "/" + "x" * n) == want, (d, n)
    for f in (os.mkdir, os.mknod, lambda x: os.open(x, os.O_CREAT | os.O_WRONLY)):
        assert err(f, d + "/" + "x" * 256) == "ENAMETOOLONG", d
    assert os.stat(d).st_size == 4096, d
assert os.statvfs(m).f_namemax == 249
X
status 0 "$PY" calls.py $M
eq "directories of size 0" "" "$(find $M -type d -size 0)"
# chmod and install of shell tools
status 0 chmod 644 $P
status 0 chown 0:0 $P
fails "Operation not permitted" chmod 600 $P
echo data >file
fails "cannot mount on $T/tmp/file: it is not a directory" klogfs $B "$PWD/file"
eq "the file" data "$(cat file)"

# ---- signals that mean nothing ----
for sig in USR1 USR2; do
    kill -$sig "$KLOGD_PID" "$KLOGFS_PID"
    echo "after $sig" >>$P
    eq "the last line" "after $sig" "$(tail -n 1 $P)"
done
echo "one more" >>$P
status 0 klog run -g g t1 -- sh -c 'kill -USR1 $PPID; kill -USR2 $PPID; cat >/dev/null'
eq "the group's position" 6 "$(cat $M/t1/.groups/g/p0)"

# ---- what klog says ----
fails "there is no broker 9; there is 1" timeout 5 klog config get broker 9
fails "there is no broker 9; there is 1" timeout 5 klog config set broker 9 log.retention.ms=1000
status 2 klog help
has_not "what klog says of 'help'" "did you mean" "$OUT"
status 2 klog tpoic
has "what klog says of 'tpoic'" "did you mean 'topic'" "$OUT"
fails 'unknown option.* key "remount"$|remount' klogfs $B $M -o remount
has_not "about -o remount" "timeout" "$OUT"
mkdir twice
ln -s twice other
fails "log.dirs: $PWD/other is named twice" klogd --override listeners=PLAINTEXT://127.0.0.1:9093 --override log.dirs="$PWD/twice,$PWD/other"
