# SPDX-License-Identifier: Apache-2.0
# What others append wakes inotify watchers on this mount; the mount's own appends are told once, by the kernel itself.
scene
# A partition that nobody here has written to or read.
topic far
"$PY" - "$M/far/p0" far <<'X' || fail "inotify where nothing was written from here"
import ctypes, os, select, subprocess, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
assert libc.inotify_add_watch(fd, os.fsencode(sys.argv[1]), 2) > 0    # IN_MODIFY
for i in range(3):
    subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", sys.argv[2], "-p", "0"], input=b"far %d\n" % i, check=True)
    assert select.select([fd], [], [], 20)[0], "not woken by record %d" % i
    os.read(fd, 65536)
X
# What is written right after the watch was set is news as well.
topic once
"$PY" - "$M/once/p0" <<'X' || fail "inotify of what came at once"
import ctypes, os, select, sys
from kwire import Conn, batch
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
c = Conn()
assert c.list_offset("once", 0, -1)[2] == 0
assert libc.inotify_add_watch(fd, os.fsencode(sys.argv[1]), 2) > 0    # IN_MODIFY
assert c.produce("once", 0, batch([b"at once"]))[0] == 0
assert select.select([fd], [], [], 20)[0], "not woken"
X
echo first >>"$P"
"$PY" - "$P" <<'X' || fail "inotify"
import ctypes, os, select, subprocess, sys
libc = ctypes.CDLL(None)
IN_MODIFY = 2
fd = libc.inotify_init1(os.O_NONBLOCK)
assert libc.inotify_add_watch(fd, os.fsencode(sys.argv[1]), IN_MODIFY) > 0

def events(seconds):
    if not select.select([fd], [], [], seconds)[0]:
        return 0
    return len(os.read(fd, 65536)) // 16

def settle():
    while events(0.5):
        pass

def grow(line):
    subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", "t1", "-p", "0"], input=line, check=True)

for i in range(3):
    grow(b"far %d\n" % i)
    assert events(5) >= 1, "not woken by record %d" % i
settle()
f = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
os.write(f, b"near\n")
assert events(5) == 1, "own append"
assert events(0.5) == 0, "own append told twice"
os.close(f)
X
printf 'first\nfar 0\nfar 1\nfar 2\nnear\n' | same "content" - "$P"
# The watchers were told the truth: nothing was written to tell them.
eq "end offset" 5 "$(end_offset)"
# ---- views: each node is told once, of what was appended elsewhere, by another path of this mount, and by itself ----
topic seen
"$PY" - "$M/seen" <<'X' || fail "inotify of views"
import ctypes, os, select, struct, subprocess, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
names = ["p0", "json/p0", "tsv/p0", "0/p0"]
watch = {libc.inotify_add_watch(fd, os.fsencode(sys.argv[1] + "/" + n), 2): n for n in names}    # IN_MODIFY
assert len(watch) == 4 and min(watch) > 0

def told(want):
    got = []
    while len(got) < want or select.select([fd], [], [], 0.3)[0]:
        assert select.select([fd], [], [], 20)[0], ("not woken", got)
        b = os.read(fd, 65536)
        got += [watch[struct.unpack_from("i", b, i)[0]] for i in range(0, len(b), 16)]
    return sorted(got)

subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", "seen", "-p", "0"], input=b"far\n", check=True)
assert told(4) == sorted(names), "elsewhere"
for path, line in ("tsv/p0", b"k\tv\n"), ("p0", b"v\n"), ("tsv/any", b"k\tv\n"):
    f = os.open(sys.argv[1] + "/" + path, os.O_WRONLY | os.O_APPEND)
    assert os.write(f, line) == len(line)
    got = told(4)
    assert got == sorted(names), (path, got)
    os.close(f)
X
