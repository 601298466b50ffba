# SPDX-License-Identifier: Apache-2.0
# Every pread gives the bytes that stand there, warm and cold, while lines are added by this mount and by others, in every codec.
# timeout: 120
klogd_start --override log.segment.bytes=200000
topic t1
mount_start
cat >positions.py <<'X'
import os, random, subprocess, sys
path, rounds, random_seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(random_seed)
want = bytearray()
w, r = os.open(path, os.O_WRONLY | os.O_APPEND), os.open(path, os.O_RDONLY)

def lines():
    longest = random.choice([0, 1, 10, 100, 2000])
    n = min(random.choice([1, 2, 10, 200, 2000]), 200000 // (longest + 1) + 1)
    return b"".join(random.randbytes(random.randint(0, longest)).replace(b"\n", b"x") + b"\n" for _ in range(n))

def append_here(b):
    at = 0
    while at < len(b):
        piece = b[at:at + random.choice([len(b), 4096, 1000])]
        assert os.write(w, piece) == len(piece)
        at += len(piece)
    return b

def append_elsewhere(b):
    b = b"".join(x + b"\n" for x in b.split(b"\n") if x)    # kcat drops empty lines
    codec = random.choice(["none", "gzip", "snappy", "lz4", "zstd"])
    if b:
        subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", "t1", "-p", "0", "-z", codec], input=b, check=True)
    return b

for _ in range(rounds):
    what = random.random()
    if what < 0.25:
        want += append_here(lines())
    elif what < 0.35:
        want += append_elsewhere(lines())
    at = random.choice([0, random.randint(0, len(want)), max(0, len(want) - random.randint(0, 100))])
    n = random.choice([1, 100, 4096, 131072, 1 << 20])
    got = os.pread(r, n, at)
    assert got == bytes(want[at:at + n]), (at, n, len(got), len(want))
    assert os.fstat(r).st_size == len(want), (os.fstat(r).st_size, len(want))
open("want", "wb").write(want)
X
"$PY" positions.py "$P" 150 1 || fail "positions"
same "read through" want "$P"
mount_stop
mount_start
"$PY" - "$P" <<'X' || fail "positions in a fresh mount"
import os, random, sys
want = open("want", "rb").read()
random.seed(2)
for i in range(150):
    if i % 30 == 0:
        r = os.open(sys.argv[1], os.O_RDONLY)
    at, n = random.randint(0, len(want)), random.choice([1, 100, 5000, 200000])
    assert os.pread(r, n, at) == want[at:at + n], (at, n)
X
