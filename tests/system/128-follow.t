# SPDX-License-Identifier: Apache-2.0
# Below follow/ a read at the end waits, in milliseconds and without a thread; poll works and O_NONBLOCK gives EAGAIN.
scene
echo a >>"$P"
F=$M/t1/follow/p0
eq "listed names" p0 "$(ls "$M/t1/follow")"
has_not "follow is a way of looking, not an entry" follow "$(ls -A "$M/t1")"
timeout 30 cat "$F" >out &
cat=$!
wait_lines out 1
for i in 1 2 3; do
    echo "r$i" | grow
    wait_lines out $((i + 1))
done
kill $cat
wait $cat 2>/dev/null
eq "what it read" "a r1 r2 r3" "$(tr '\n' ' ' <out | sed 's/ $//')"

threads=$(ls /proc/"$KLOGFS_PID"/task | wc -l)
readers=()
for i in $(seq 1 100); do
    timeout 60 tail -n0 -f "$F" >"o$i" 2>/dev/null &
    readers+=($!)
done
for i in $(seq 1 100); do :; done
"$PY" - "$F" <<'X' || fail "poll and O_NONBLOCK"
import errno, os, select, subprocess, sys
f = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
while True:
    try:
        os.read(f, 65536)
    except OSError as e:
        assert e.errno == errno.EAGAIN, e
        break
p = select.poll()
p.register(f, select.POLLIN)
assert p.poll(100) == [], "readable at the end"
subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", "t1", "-p", "0"], input=b"woken\n", check=True)
assert p.poll(5000) == [(f, select.POLLIN)], "not woken"
assert os.read(f, 65536) == b"woken\n"
X
between "threads with 100 readers, beside the $threads before" 0 $((threads + 4)) "$(ls /proc/"$KLOGFS_PID"/task | wc -l)"
kill "${readers[@]}" 2>/dev/null
wait "${readers[@]}" 2>/dev/null
echo z >>"$P" || fail "the mount goes on"
