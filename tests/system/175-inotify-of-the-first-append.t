# SPDX-License-Identifier: Apache-2.0
# The first append from elsewhere after a mount wakes who watches the file by inotify, whether it grew before the watcher looked or not.
requires kcat
klogd_start
topic t1
seq 10 | grow
cat >watcher.py <<'X'
import ctypes, os, select, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
path, kind = sys.argv[1:]
fd = os.open(path, os.O_RDONLY)
if kind == "read":
    while os.read(fd, 65536):
        pass
i = libc.inotify_init1(0)
assert libc.inotify_add_watch(i, path.encode(), 2) >= 0  # IN_MODIFY
if kind == "stat":
    os.stat(path)
if kind == "watch-then-read":
    while os.read(fd, 65536):
        pass
before = os.fstat(fd).st_size
open("ready", "w").close()
assert select.select([i], [], [], 50)[0], "no event"
os.read(i, 4096)
assert os.fstat(fd).st_size > before, "the size is the old one"
print("woken")
X
for kind in read stat watch-then-read; do
    mount_start
    rm -f ready woken
    "$PY" watcher.py $P $kind >woken & W=$!
    wait_for 10 "the watcher" test -e ready
    echo "from elsewhere" | grow
    wait $W || fail "$kind: nobody was woken"
    eq "$kind" woken "$(cat woken)"
    mount_stop
done
# While a stream waits, and after somebody else has seen the new size
mount_start
timeout 50 cat $M/t1/follow/p0 >followed & F=$!
wait_for 10 "the stream" test -s followed
rm -f ready
"$PY" watcher.py $P read >woken & W=$!
wait_for 10 "the watcher" test -e ready
echo "once more" | grow
wait $W || fail "beside a stream: nobody was woken"
kill $F
wait $F 2>/dev/null || :
