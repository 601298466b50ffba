# SPDX-License-Identifier: Apache-2.0
# A program that holds a file and watches it by inotify (rsyslog's imfile) is woken by every append, from here and from elsewhere, also
# after records in front were removed and others have looked the name up, which leads them to another node.
scene
seq 1 5000 | grow
"$PY" - "$P" <<'X' || fail "a file held and watched"
import ctypes, os, select, subprocess, sys
P = sys.argv[1]
libc = ctypes.CDLL(None)
def watch(path):
    fd = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(fd, os.fsencode(path), 2) > 0 # IN_MODIFY
    return fd
def woken(fd, what):
    assert select.select([fd], [], [], 20)[0], "not woken by " + what
    while select.select([fd], [], [], 0.3)[0]:
        os.read(fd, 65536)
def elsewhere(line):
    subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", "t1", "-p", "0"], input=line, check=True)
def here(line):
    f = os.open(P, os.O_WRONLY | os.O_APPEND)
    os.write(f, line)
    os.close(f)
held = os.open(P, os.O_RDONLY)
size = os.fstat(held).st_size
assert os.lseek(held, 0, os.SEEK_END) == size
older = watch(P)
want = b""
for i, n in enumerate((1000, 2000, 3000)):
    subprocess.run([sys.executable, os.environ["PYTHONPATH"] + "/delete_records.py", "t1", str(n)], check=True)
    newest = watch(P)
    assert open(P, "rb").readline() == b"%d\n" % (n + 1)
    for f, line in (elsewhere, b"far %d\n" % i), (here, b"near %d\n" % i):
        f(line)
        want += line
        woken(older, "%r in the older file" % line)
        woken(newest, "%r in the newest file" % line)
got = b""
while b := os.read(held, 4096):
    got += b
assert got == want, got
X

# A name that the kernel keeps for those who append leads who reads to what is there.
for i in 3100 3200 3300; do
    echo "more" >>"$P"
    echo "more" >>"$P"
    exec 8<"$P"
    read -r l <&8
    "$PY" "$TESTLIB/delete_records.py" t1 $i || fail "DeleteRecords"
    eq "size" "$(wc -c <"$P")" "$(stat -c %s "$P")"
    eq "first line" $((i + 1)) "$(head -n1 "$P")"
    exec 8<&-
done
