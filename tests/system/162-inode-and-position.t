# SPDX-License-Identifier: Apache-2.0
# Programs that remember inode and position and close the file in between (logtail, filebeat) never skip a line that is there when they
# come back: after retention has taken lines, the number is another one. Without that it stays, over restarts of mount and broker too.
requires kcat
scene
ship() { # as logtail does
    "$PY" - "$P" shipped pos <<'X'
import os, sys
p, out, pos = sys.argv[1:]
fd = os.open(p, os.O_RDONLY)
st = os.fstat(fd)
ino, at = map(int, open(pos).read().split()) if os.path.exists(pos) else (0, 0)
if ino != st.st_ino or at > st.st_size:
    at = 0
os.lseek(fd, at, os.SEEK_SET)
with open(out, "ab") as f:
    while b := os.read(fd, 65536):
        f.write(b)
        at += len(b)
open(pos, "w").write("%d %d" % (st.st_ino, at))
X
}
seq 1 1000 | grow
ship || fail "first run"
seq 1001 2000 | grow
ship || fail "second run"
same "without retention" <(seq 1 2000) shipped
mount_stop
klogd_stop
klogd_restart
mount_start
seq 2001 2500 | grow
ship || fail "after a restart"
same "after a restart" <(seq 1 2500) shipped
seq 2501 5000 | grow
"$PY" "$TESTLIB/delete_records.py" t1 1800 || fail "DeleteRecords"
: >shipped
ship || fail "after lines were removed"
same "after lines were removed" <(seq 1801 5000) shipped
if command -v logtail >/dev/null; then
    logtail -f "$P" -o lt.pos >/dev/null || fail "logtail"
    seq 5001 9000 | grow
    "$PY" "$TESTLIB/delete_records.py" t1 6000 || fail "DeleteRecords"
    logtail -f "$P" -o lt.pos >lt.out || fail "logtail"
    same "logtail" <(seq 6001 9000) lt.out
fi
