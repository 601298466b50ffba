# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# A topic is deleted and made anew under its name. Open files belong to the old one: what was fetched is read, then ESTALE, or end of file
# below follow/; nothing that is written to them gets into the new one. Paths lead to the new one at once.
requires kcat
scene
delete() { "$PY" "$TESTLIB/topic.py" delete t1 || fail "delete"; }
"$PY" - "$P" <<'X' || fail "open files of a deleted topic"
import errno, os, subprocess, sys, threading
from kwire import Conn, batch
P = sys.argv[1]
follow = P.replace("/p0", "/follow/p0")
c = Conn()
def estale(f, *args):
    try:
        r = f(*args)
    except OSError as e:
        assert e.errno == errno.ESTALE, e
        return
    raise SystemExit("%s%r: %r" % (f.__name__, args, r))
old = b"".join(b"old%03d\n" % i for i in range(100))
assert c.produce("t1", 0, batch([b"old%03d" % i for i in range(100)]))[0] == 0
read = os.open(P, os.O_RDONLY)
write = os.open(P, os.O_WRONLY | os.O_APPEND)
tail = os.open(P, os.O_WRONLY | os.O_APPEND)
both = os.open(P, os.O_RDWR | os.O_APPEND)
stream = os.open(follow, os.O_RDONLY)
anyfd = os.open(os.path.dirname(P) + "/any", os.O_WRONLY | os.O_APPEND)
config = os.open(os.path.dirname(P) + "/.config", os.O_WRONLY | os.O_APPEND)
assert os.read(read, 70) == old[:70]
assert os.read(stream, 1 << 20) == old
assert os.write(tail, b"unfinished") == 10
got = []
waits = threading.Thread(target=lambda: got.append(os.read(stream, 1 << 20)))
waits.start()
assert c.delete_topic("t1") == 0
assert c.create_topic("t1")[0] == 0
assert c.produce("t1", 0, batch([b"NEW%03d" % i for i in range(150)]))[0] == 0
new = b"".join(b"NEW%03d\n" % i for i in range(150))
waits.join(20)
assert got == [b""], got
assert os.read(stream, 100) == b""
assert os.pread(read, 1 << 20, 0) == old
assert os.read(read, 1 << 20) == old[70:]
estale(os.read, read, 100)
estale(os.pread, read, 100, 800)
estale(os.fstat, read)
estale(os.write, write, b"writer\n")
estale(os.write, both, b"writer\n")
estale(os.write, anyfd, b"any\n")
estale(os.write, config, b"retention.ms=77777\n")
os.close(tail)
assert open(P, "rb").read() == new
assert os.stat(P).st_size == len(new)
fd = os.open(P, os.O_RDONLY)
assert os.read(fd, 1 << 20) == new
estale(os.read, read, 100)
assert c.list_offset("t1", 0, -1)[2] == 150, "something of the old files got into the new topic"
X
has_not "settings of the new topic" 77777 "$(cat "$M/t1/.config")"

# Each kind of open file alone, so that no other one tells the mount first.
"$PY" - "$M" <<'X' || fail "an open file of a deleted topic, alone"
import errno, os, sys
from kwire import Conn, batch
c = Conn()
for n, (name, flags) in enumerate((("p0", os.O_WRONLY | os.O_APPEND), ("p0", os.O_RDWR | os.O_APPEND), ("p0", os.O_RDONLY),
                                   ("any", os.O_WRONLY | os.O_APPEND))):
    topic = "alone%d" % n
    assert c.create_topic(topic)[0] == 0
    assert c.produce(topic, 0, batch([b"old"]))[0] == 0
    fd = os.open("%s/%s/%s" % (sys.argv[1], topic, name), flags)
    assert c.delete_topic(topic) == 0
    assert c.create_topic(topic)[0] == 0
    assert c.produce(topic, 0, batch([b"new"]))[0] == 0
    try:
        got = os.write(fd, b"x\n") if flags & os.O_APPEND else os.read(fd, 100)
    except OSError as e:
        got = e.errno
    assert got == errno.ESTALE, (name, flags, got)
    os.close(fd)
    assert c.list_offset(topic, 0, -1)[2] == 1, "something of the old file got into the new topic"
    assert open("%s/%s/p0" % (sys.argv[1], topic)).read() == "new\n"
    assert c.delete_topic(topic) == 0
X

# tail -F shows each line of the new topic once; cat under follow/ ends; whoever has the directory open sees the new one.
delete
topic t1
seq -f 'old%03g' 50 | grow
tail -n1 -F "$P" >tailed 2>tail.err &
tail=$!
cat "$M/t1/follow/p0" >followed &
follow=$!
wait_lines tailed 1
wait_lines followed 50
delete
topic t1
seq -f 'new%03g' 70 | grow
wait $follow || fail "cat under follow/"
wait_lines tailed 71
echo later | grow
wait_lines tailed 72
kill $tail
wait $tail
eq "tail -F" "$(echo old050; seq -f 'new%03g' 70; echo later)" "$(cat tailed)"
eq "lines that cat followed" 50 "$(wc -l <followed)"

# An append right after.
for i in $(seq 12); do
    cat "$P" "$M/t1/.status" >/dev/null
    delete
    topic t1
    echo "keep $i" >>"$P" || fail "append $i"
    eq "content $i" "keep $i" "$(cat "$P")"
    echo "more $i" >>"$M/t1/any" || fail "append $i to any"
    eq "offsets $i" 2 "$(end_offset)"
    delete
    fails 'No such file' cat "$P"
    topic t1
    eq "size $i" 0 "$(stat -c %s "$P")"
    echo x | grow
    eq "read $i" x "$(cat "$P")"
done
