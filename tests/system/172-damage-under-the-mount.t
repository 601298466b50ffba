# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A batch in an old segment is damaged in one way after the other, with and without the caches beside it: the mount gives what stands before it,
# then EIO and no later than at once (the time-out of this mount is longer than the test), and everything behind it stays at its place.
klogd_start
topic t1 segment.bytes=2048
"$PY" - <<'X' || fail "produce"
from kwire import Conn, batch
c = Conn()
for j in range(1, 10):
    for k in range(5):
        assert c.produce("t1", 0, batch([b"%d%d%03d" % (j, k, i) for i in range(10)]))[0] == 0
X
klogd_stop
cp -a "$D" good
segments=("$D"/t1-0/*.log)
second=$(basename "${segments[1]}" .log) third=$(basename "${segments[2]}" .log)
cat >damage.py <<'X'
import sys
kind, path = sys.argv[1:]
b = bytearray(open(path, "rb").read())
at, n = 0, 0
starts = []
while at < len(b):
    starts.append(at)
    at += 12 + int.from_bytes(b[at + 8:at + 12], "big")
s = starts[3]  # the fourth batch: lines 141 to 150 of the file
if kind == "value":
    b[s + 75] ^= 1
elif kind == "record-length":
    b[s + 61] ^= 64
elif kind == "magic":
    b[s + 16] ^= 1
elif kind == "length":
    b[s + 9] ^= 1
elif kind == "count":
    b[s + 60] ^= 4
elif kind == "zeros":
    b[s:s + 100] = bytes(100)
open(path, "wb").write(b)
X
cat >look.py <<'X'
import errno, os, sys
topic, group, behind = sys.argv[1:]
want = b"".join(b"%d%d%03d\n" % (j, k, i) for j in range(1, 10) for k in range(5) for i in range(10))
first, after = 140 * 6, 150 * 6  # the damaged batch has [first, after)


def read_on(path, flags=0):
    fd, out = os.open(path, os.O_RDONLY | flags), b""
    try:
        while True:
            b = os.read(fd, 131072)
            if not b:
                return out, 0
            out += b
    except OSError as e:
        return out, e.errno
    finally:
        os.close(fd)


for name in ("p0", "follow/p0", "as/%s/p0" % group):
    got = read_on("%s/%s" % (topic, name), os.O_NONBLOCK)
    assert got == (want[:first], errno.EIO), (name, len(got[0]), got[1])
fd = os.open(topic + "/p0", os.O_RDONLY)
size = os.fstat(fd).st_size
assert behind == "moved" or size == len(want), size
wrong = []
for at in range(0, size, 6):
    back = len(want) - (size - at)  # counted from the end
    right = want[at:at + 6] if at < first else want[back:back + 6] if back >= after else errno.EIO
    try:
        got = os.pread(fd, 6, at)
    except OSError as e:
        got = e.errno
    if got != right:
        wrong.append((at, right, got))
assert not wrong, (len(wrong), wrong[:3])
X
n=0
for caches in kept "text gone" "all gone"; do
    for kind in value record-length magic length count zeros; do
        rm -rf "$D"
        cp -a good "$D"
        "$PY" damage.py $kind "$D/t1-0/$second.log" || fail "damage.py"
        behind=there
        case $caches in
        "text gone") rm "$D/t1-0/$second.text" "$D/t1-0/$third.text" ;;
        "all gone")
            rm -f "$D/clean-shutdown" "$D/t1-0/partition.checkpoint" "$D"/t1-0/*.text "$D"/t1-0/*index
            [ $kind = value ] || behind=moved # how much text was there is not known any more
            ;;
        esac
        klogd_start
        mount_start -o timeout=300
        OUT=$(timeout 50 "$PY" look.py $M/t1 g$((n++)) $behind 2>&1) || fail "$kind, caches $caches: $OUT"
        mount_stop
        klogd_stop
    done
done
