# SPDX-License-Identifier: Apache-2.0
# No descriptors for a while: whatever has to open a file answers an error or waits, no log directory is given up for it, what was
# acknowledged is there, and all goes on when there are descriptors again. Clients alone cannot bring that about: they get only as
# many connections as the log leaves over.
# timeout: 120
klogd_start
topic small 1 segment.bytes=3000
topic kept 1 segment.bytes=3000 retention.bytes=9000
topic keys 1 segment.bytes=3000 cleanup.policy=compact
"$PY" - "$KLOGD_PID" <<'X' || fail "out of descriptors"
import os, resource, sys
from kwire import *
pid = int(sys.argv[1])
soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
topics = "small", "kept", "keys"
conns = {t: Conn(timeout=30) for t in topics}
acked = {t: [] for t in topics}
seen = set()
def write(n, timeout_ms):
    for i in range(n):
        for t in topics:
            key = b"k%d" % (i % 3) if t == "keys" else None
            value = os.urandom(350).hex().encode()
            b = batch([(key, value, [])])
            code, offset = conns[t].produce(t, 0, b, timeout_ms=timeout_ms)
            seen.add(code)
            if code == 0:
                acked[t].append((offset, value))
write(10, 10000)
assert seen == {0}, seen
for _ in range(3):
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (10, hard))
    write(4, 200) # a segment is full within these
    # reading what is open goes on, and what is not open is an error or waits
    conns["small"].fetch("small", 0, 0)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    for t in topics:   # the retriable ones pass
        for _ in range(100):
            code, offset = conns[t].produce(t, 0, batch([(b"k", b"after", [])]), timeout_ms=10000)
            if code == 0:
                break
        assert code == 0, (t, code)
assert seen - {0} and seen <= {0, 7, 56}, seen
for t in topics:
    stored = {r[0]: r[3] for r in conns[t].records(t, 0, conns[t].list_offset(t, 0, -2)[2])}
    assert stored and (t != "small" or len(stored) >= len(acked[t]))
    for offset, value in acked[t]:
        assert t != "small" and offset not in stored or stored[offset] == value, (t, offset)
X
gone "$KLOGD_PID" && fail "klogd ended"
has_not "log" 'log directory .* failed|no log directory is left' "$(cat "$KLOGD_LOG")"
klogd_stop
status 0 "$BUILDDIR/src/klog" verify "$D"

# As many connections as anybody likes do not take what the log needs.
klogd_few() { (ulimit -n 150; exec "$BUILDDIR/daemon/klogd" --override listeners=PLAINTEXT://127.0.0.1:9092 --override log.dirs="$D") >>"$KLOGD_LOG" 2>&1 19>&- & KLOGD_PID=$!; }
klogd_few
wait_for 15 "klogd listens" klogd_up
"$PY" - "$KLOGD_PID" <<'X' || fail "many connections"
import os, socket, sys
from kwire import *
c = Conn(timeout=30)
assert c.create_topic("more", 1, configs=[("segment.bytes", "3000")])[0] == 0
held = []
for i in range(300):
    try:
        held.append(socket.create_connection(("127.0.0.1", 9092), timeout=10))
    except OSError:
        pass
    code, offset = c.produce("more", 0, batch([os.urandom(700)]))
    assert (code, offset) == (0, i), (code, offset, i)
used = len(os.listdir("/proc/%s/fd" % sys.argv[1]))
assert used <= 150 - 150 // 8, used # an eighth is left for the work
for s in held:
    s.close()
X
has "log" 'connections are all that the limit of descriptors leaves room for' "$(cat "$KLOGD_LOG")"
has_not "log" 'log directory .* failed|Too many open files' "$(tail -n 5 "$KLOGD_LOG")"
klogd_stop
