# SPDX-License-Identifier: Apache-2.0
# Records are removed from the front while others hold the file: a log daemon that appends, tail -f, a reader in the middle. Whoever
# opens the file sees what is there now, and all agree on it; open files are not disturbed and are never given other bytes.
requires kcat rsync tar git
scene
remove_to() { "$PY" "$TESTLIB/delete_records.py" t1 "$1" || fail "DeleteRecords to $1"; }
agree() { # agree FIRST LAST: programs that open the file see these lines and nothing else
    seq "$1" "$2" >want
    cat "$P" >got
    same "cat from $1" want got
    local size
    size=$(stat -c %s want)
    eq "stat" "$size" "$(stat -c %s "$P")"
    eq "wc -c" "$size" "$(wc -c <"$P")"
    eq "du -b" "$size" "$(du -b "$P" | cut -f1)"
    eq "blocks" $(((size + 511) / 512)) "$(stat -c %b "$P")"
    tac "$P" | tac >got
    same "tac" want got
    tar cf x.tar -C "$M/t1" p0 || fail "tar"
    tar xOf x.tar >got
    same "tar" want got
    rm -rf copy
    rsync -a "$P" copy/ || fail "rsync"
    same "rsync" want copy/p0
    cp "$P" got
    same "cp" want got
    eq "git hash-object" "$(git hash-object --no-filters want)" "$(git hash-object --no-filters "$P")"
    dd if="$P" of=got bs=1000 iflag=skip_bytes skip=$((size / 2)) 2>dd.err || fail "dd: $(cat dd.err)"
    tail -c $((size - size / 2)) want >half
    same "dd of the second half" half got
    "$PY" - "$P" want <<'X' || fail "mmap, pread"
import mmap, os, sys
want = open(sys.argv[2], "rb").read()
fd = os.open(sys.argv[1], os.O_RDONLY)
m = mmap.mmap(fd, os.fstat(fd).st_size, mmap.MAP_PRIVATE, mmap.PROT_READ)
assert m[:] == want, "mmap"
for at in range(0, len(want), len(want) // 37 + 1):
    assert os.pread(fd, 1000, at) == want[at:at + 1000], at
X
}
seq 1 20000 >>"$P"
exec 7>>"$P" # a log daemon
remove_to 3000
agree 3001 20000 # one that only appends holds nothing
ino=$(stat -c %i "$P")

"$PY" - "$P" 3001 <<'X' >reader.out 2>&1 &
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(fd).st_size
out = os.read(fd, 6000)
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
assert os.fstat(fd).st_size >= size, "the size shrank"
assert os.pread(fd, 600, 0) == out[:600], "what was fetched is gone"
at = len(out)
out2 = b""
while b := os.read(fd, 8192):
    out2 += b
    assert os.pread(fd, len(b), at) == b, "a position changed its content"
    at += len(b)
text = out + out2
i = out.rindex(b"\n") + 1
want = b"".join(b"%d\n" % n for n in range(int(sys.argv[2]), 20006))
cut = want.index(b"9001\n")
assert out2 in (want[cut:], want[len(out):]) or out2.endswith(want[cut:]), (out2[:50], out2[-50:])
assert want.startswith(out), out[:50]
print("done")
X
reader=$!
tail -n1 -F "$P" >tailed 2>tail.err &
tail=$!
wait_for 10 "the reader is in the middle" test -e ready
wait_lines tailed 1
remove_to 9000
agree 9001 20000
eq "inode while it is read by the older first byte" "$ino" "$(stat -c %i "$P")"
seq 20001 20005 >&7
remove_to 12000
agree 12001 20005
eq "inode while it is read by the older first byte" "$ino" "$(stat -c %i "$P")"
wait_lines tailed 6
touch go
wait $reader || fail "reader: $(cat reader.out)"
echo last | grow
wait_lines tailed 7
eq "tail -F" "20000 20001 20002 20003 20004 20005 last" "$(tr '\n' ' ' <tailed | sed 's/ $//')"
eq "complaints of tail" "" "$(cat tail.err)"
kill $tail
wait $tail
"$PY" - "$M" "$ino" <<'X' || fail "the number of a file that nobody holds"
import os, sys
st = os.stat(sys.argv[1] + "/t1/p0")
assert st.st_ino != int(sys.argv[2]), "its first byte moved, and its number did not"
listed = {e.name: e.inode() for e in os.scandir(sys.argv[1] + "/t1")}
assert listed["p0"] == st.st_ino, (listed["p0"], st.st_ino)
X
exec 7>&-

# Positions that are gone are EIO, never other bytes; what was read before a jump is found again where it was read.
topic far
seq 100000 399999 >>"$M/far/p0" # 2,100,000 bytes
"$PY" - "$M/far/p0" <<'X' || fail "positioned reads"
import errno, os, subprocess, sys
def remove_to(n):
    subprocess.run([sys.executable, os.environ["PYTHONPATH"] + "/delete_records.py", "far", str(n)], check=True)
line = lambda n: b"%d\n" % n
fd = os.open(sys.argv[1], os.O_RDONLY)
assert os.fstat(fd).st_size == 2100000
remove_to(250000)
for at in (7, 70000, 700000, 1749000):
    try:
        b = os.pread(fd, 700, at)
        raise SystemExit("%d: %r" % (at, b[:40]))
    except OSError as e:
        assert e.errno == errno.EIO, e
b = os.pread(fd, 700, 1750000)
assert b == b"".join(line(n) for n in range(350000, 350100)), b[:40]
fd2 = os.open(sys.argv[1], os.O_RDONLY)
assert os.read(fd2, 70) == b"".join(line(n) for n in range(350000, 350010))
remove_to(280000)
assert os.pread(fd2, 70, 7 * 45000) == b"".join(line(n) for n in range(395000, 395010))
os.close(fd2)
# a reader that jumps
fd3 = os.open(sys.argv[1], os.O_RDONLY)
assert os.fstat(fd3).st_size == 140000
remove_to(290000)
assert os.read(fd3, 70) == b"".join(line(n) for n in range(390000, 390010))
assert os.lseek(fd3, -21, os.SEEK_CUR) == 49
assert os.read(fd3, 21) == b"".join(line(n) for n in range(390007, 390010))
assert os.pread(fd3, 14, 7) == line(390001) + line(390002)
assert os.pread(fd3, 14, 70000 + 7) == line(390001) + line(390002)
try:
    raise SystemExit(repr(os.pread(fd3, 7, 35000)))
except OSError as e:
    assert e.errno == errno.EIO, e
rest = b""
while b := os.read(fd3, 65536):
    rest += b
assert rest == b"".join(line(n) for n in range(390010, 400000))
X
