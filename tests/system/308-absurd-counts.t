# SPDX-License-Identifier: Apache-2.0
# Counts and lengths inside a valid frame are checked against the frame: the connection ends or the batch is refused, memory stays
# flat, others are served. Then two thousand mutations of good requests, ten thousand in check-long.
# https://github.com/apache/kafka/pull/577 https://github.com/robot-head/crabka/pull/379
# https://github.com/kafka-protocol-rs/kafka-protocol-rs/pull/156
# timeout: 600
klogd_start
topic t1
before=$(rss_kb "$KLOGD_PID")
refused() { has "$1" '^(EOF|RST)$|^corr=[0-9]+ len=[0-9]+ .*002a' "$(raw "$2")"; }
refused "Metadata v1 with 2^31-1 topics" 0000000f00030001000000030001787fffffff
refused "Metadata v1 with -2 topics" 0000000f0003000100000003000178fffffffe
refused "ApiVersions v3 with a huge string" 00000011001200030000000100017800ffffffff0f
refused "client id longer than the frame" 0000000c00030001000000037fff7878
for o in count=2147483647 count=-1 count=0 count=2 magic=1 magic=0 magic=3; do
    has "$o" '^corr=9 len=[0-9]+ 0000000100027431000000010000000000(57|02)ffffffffffffffff' "$(raw -n 1 "$(mkprod 1 t1 $o)")"
done
has "a bomb of 100 MiB" '^corr=9 len=[0-9]+ 00000001000274310000000100000000000aff' "$(raw -q 20 -n 1 "@"<(mkprod 1 t1 bomb=100))"
between "growth of memory in kB" -100000 131072 $(($(rss_kb "$KLOGD_PID") - before))
eq "stored" 0 "$(end_offset)"
"$PY" - ${FUZZ_ROUNDS:-2000} <<'X' || fail "mutations"
import random, sys
from kwire import *
seed = random.randrange(1 << 32)
print("seed", seed)
rnd = random.Random(seed)
def frame(key, version, body, flexible=False):
    return i16(key) + i16(version) + i32(1) + string("m") + (b"\0" if flexible else b"") + body
b = batch([b"x", (b"k", b"v", [(b"h", None)])])
good = [
    frame(18, 0, b""), frame(18, 3, b"\x05test\x021\0", True), frame(3, 1, array([string("t1")])), frame(3, 4, array([string("t1")]) + i8(0)),
    frame(3, 9, uvarint(2) + uvarint(3) + b"t1\0" + b"\0\0\0\0", True),
    frame(0, 7, Conn.produce_body("mut", 0, b)), frame(0, 3, Conn.produce_body("mut", 0, b)),
    frame(1, 4, i32(-1) + i32(0) + i32(1) + i32(1000) + i8(0) + array([string("t1") + array([i32(0) + i64(0) + i32(1000)])])),
    frame(2, 1, i32(-1) + array([string("t1") + array([i32(0) + i64(-1)])])),
    frame(10, 0, string("g")), frame(22, 0, string(None) + i32(1000)),
    frame(32, 1, array([i8(2) + string("t1") + i32(-1)]) + i8(0)),
    frame(21, 0, array([string("mut") + array([i32(0) + i64(0)])]) + i32(100)),
    frame(60, 0, b"\0\0", True),
]
def mutate(f):
    f = bytearray(f)
    for _ in range(rnd.choice((1, 1, 1, 2, 5))):
        what, at = rnd.randrange(5), rnd.randrange(8, max(len(f), 9))
        if at >= len(f):
            break
        if what == 0: f[at] = rnd.randrange(256)
        elif what == 1: f[at] ^= 1 << rnd.randrange(8)
        elif what == 2: f[at:at + 4] = rnd.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"))
        elif what == 3: del f[at:]
        else: f[at:at] = bytes(rnd.randrange(256) for _ in range(rnd.randrange(1, 9)))
    return bytes(f)
# A mutated request of these may rightly wait long: Fetch, CreateTopics, ..., Produce. No other may.
WAITS = (b"\0\x01", b"\0\x13", b"\0\x0b", b"\0\x0e", b"\0\x15", b"\0\0")
c = None
alone = Conn()
for i in range(int(sys.argv[1])):
    if c is None:
        c = Conn(timeout=10)
    f = mutate(rnd.choice(good))
    try:
        c.s.sendall(i32(len(f)) + f)
        # One ApiVersions behind it: either its answer comes, or the connection ends.
        probe = c.send(18, 0, b"", corr=77777)
        c.s.settimeout(0.02 if f[:2] in WAITS else 20)
        while int.from_bytes(c.frame()[:4], "big") != probe:
            pass
    except (EOFError, BrokenPipeError, ConnectionResetError):
        c.close()
        c = None
    except TimeoutError:
        assert f[:2] in WAITS, ("no answer", f.hex())
        c.close()
        c = None
    if i % 500 == 0:
        assert alone.metadata(["t1"])["t1"] == (0, 1)
X
gone "$KLOGD_PID" && fail "klogd died"
echo ok | grow
eq "stored" ok "$(consume | tail -n1)"
