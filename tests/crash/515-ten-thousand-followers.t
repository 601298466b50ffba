# SPDX-License-Identifier: Apache-2.0
# Ten thousand readers that wait on one mount, half of them of json/follow/: no thread of klogfs is theirs, each costs little memory,
# the plain file is read and appended to beside them, and one line wakes all of them.
# timeout: 300
requires_fuse
ulimit -n 12000 2>/dev/null || skip "needs 12,000 descriptors (ulimit -n)"
[ "$(ulimit -u)" = unlimited ] || [ "$(ulimit -u)" -gt 12000 ] || skip "needs 12,000 threads (ulimit -u)"
klogd_start
topic t1
mount_start
cat "$P"
cat >followers.py <<'X'
import os, sys, threading
threading.stack_size(64 * 1024)
N = 10000
got, lock, waiting = {}, threading.Lock(), [0]

def read(i):
    f = os.open(os.path.join(sys.argv[1], "json/follow/p0" if i % 2 else "follow/p0"), os.O_RDONLY)
    with lock:
        waiting[0] += 1
        if waiting[0] == N:
            open("waiting", "w").close()
    b = os.read(f, 4096)
    with lock:
        got[i] = b

threads = [threading.Thread(target=read, args=(i,)) for i in range(N)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert all(got[i] == b"woken\n" for i in range(0, N, 2))
assert len({got[i] for i in range(1, N, 2)}) == 1 and b'"value":"woken"' in got[1]
X
threads() { find "/proc/$KLOGFS_PID/task" -mindepth 1 -maxdepth 1 | wc -l; }
waits() { awk '$1 == "Threads:" { print $2 }' "/proc/$F/status"; }
were=$(threads)
before=$(rss_kb "$KLOGFS_PID")
"$PY" followers.py "$M/t1" >followers.out 2>&1 & F=$!
wait_for 200 "all wait" test -e waiting -o ! -d "/proc/$F"
eq "readers" 10001 "$(waits)"
eq "threads of klogfs" "$were" "$(threads)"
between "kB of memory each" 0 8 $((($(rss_kb "$KLOGFS_PID") - before) / 10000))
eq "a reader beside them" "" "$(cat "$P")"
echo woken >>"$P" || fail "a writer beside them"
wait $F || fail "$(tail -n 3 followers.out)"
eq "threads of klogfs at the end" "$were" "$(threads)"
