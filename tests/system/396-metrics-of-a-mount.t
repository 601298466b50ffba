# SPDX-License-Identifier: Apache-2.0
# What klogfs tells those who watch it: operations, errors, bytes, open files and readers that wait, exactly as programs used
# the mount; and whether it serves.
requires curl
requires_fuse
U=http://127.0.0.1:9645
mkdir -p "$M" other
status 1 klogfs -f "$B" "$M" -o http.listener=9645
has "a wrong address" 'http.listener: "9645" is not HOST:PORT, as 127.0.0.1:9644' "$OUT"
klogd_start
topic t1
topic t2
status 1 klogfs -f "$B" other -o http.listener=127.0.0.1:9092
case $OUT in *'built without libmicrohttpd'*) skip "built without libmicrohttpd" ;; esac
has "an address in use" 'http.listener: 127.0.0.1:9092: Address already in use; stop what listens there or choose another port' "$OUT"
has_not "nothing is mounted" " $PWD/other " "$(cat /proc/mounts)"

mount_start -o http.listener=127.0.0.1:9645
value() { "$PY" "$TESTLIB/scrape.py" $U/metrics "$@" | paste -sd' '; }
is() { [ "$(value "$2")" = "$1" ]; }
n() { echo "klogfs_operation_seconds_count{operation=\"$1\"}"; }
e() { echo "klogfs_operation_errors_total{operation=\"$1\",errno=\"$2\"}"; }
eq "alive, ready" "ok ok" "$(curl -s $U/healthz) $(curl -s $U/readyz)"
eq "nothing yet" "1 - - - 0 0 0 0 0" "$(value "$(n init)" "$(n open)" "$(n read)" "$(n write)" klogfs_{read_bytes_total,written_bytes_total,open_files,open_directories,blocked_reads})"

# one after the other: what a program did is what is counted, before it goes on
cat >use.py <<'X2'
import os, subprocess, sys
m, url, lib = sys.argv[1:]
def value(*series):
    return subprocess.run([sys.executable, lib + "/scrape.py", url, *series], check=True, capture_output=True, text=True).stdout.split()
def eq(what, expected, *series):
    got = value(*series)
    assert got == expected.split(), (what, expected, got)
n = lambda op: 'klogfs_operation_seconds_count{operation="%s"}' % op
e = lambda op, errno: 'klogfs_operation_errors_total{operation="%s",errno="%s"}' % (op, errno)
w = os.open(m + "/t1/p0", os.O_WRONLY | os.O_APPEND)
eq("opened", "1 1 0", n("open"), "klogfs_open_files", "klogfs_open_directories")
assert os.write(w, b"hello\n") == 6 and os.write(w, b"you\n") == 4
eq("written", "2 10 2", n("write"), "klogfs_written_bytes_total", 'klogfs_broker_requests_total{request="Produce"}')
r = os.open(m + "/t1/p0", os.O_RDONLY)
assert os.read(r, 100) == b"hello\nyou\n" and os.read(r, 100) == b"" and os.pread(r, 3, 2) == b"llo"
eq("read", "3 13 2", n("read"), "klogfs_read_bytes_total", "klogfs_open_files")
d = os.open(m + "/t1", os.O_RDONLY | os.O_DIRECTORY)
eq("a directory", "1 2", "klogfs_open_directories", "klogfs_open_files")
for f in (w, r, d):
    os.close(f)
def fails(errno, f, *args):
    try:
        f(*args)
    except OSError as x:
        assert x.errno == errno, x
    else:
        assert False, f
import errno
for i in range(2):
    fails(errno.EPERM, os.rename, m + "/t1/p0", m + "/t1/p1")
fails(errno.ENOENT, os.stat, m + "/t1/nothing-of-that-name")
eq("errors", "2 2 -", e("rename", "EPERM"), n("rename"), e("write", "EPERM"))
assert int(value(e("lookup", "ENOENT"))[0]) >= 2
# long answers go to the kernel from another thread
w = os.open(m + "/t2/p0", os.O_WRONLY | os.O_APPEND)
text = b"x" * 1023 + b"\n"
for i in range(4):
    assert os.write(w, text * 1024) == 1048576
os.close(w)
r = os.open(m + "/t2/p0", os.O_RDONLY)
before = int(value("klogfs_read_bytes_total")[0])
got = 0
while piece := os.read(r, 1048576):
    got += len(piece)
assert got == 4 * 1048576, got
eq("long", str(before + got), "klogfs_read_bytes_total")
os.close(r)
X2
"$PY" use.py "$M" $U/metrics "$TESTLIB" || fail "use.py"
wait_for 10 "all is closed" is 0 klogfs_open_files
wait_for 10 "directories too" is 0 klogfs_open_directories
eq "none waits" 0 "$(value klogfs_blocked_reads)"

# readers that wait
before=$(value klogfs_read_bytes_total)
cat "$M/t1/follow/p0" >f1 2>f1.err 19>&- & readers=$!
cat "$M/t1/follow/p0" >f2 2>f2.err 19>&- & readers="$readers $!"
cleanup_fn 'kill $readers 2>/dev/null'
wait_for 15 "two wait" is 2 klogfs_blocked_reads
eq "both have read and wait" "$((before + 20)) 2" "$(value klogfs_read_bytes_total klogfs_open_files)"
echo more >>"$M/t1/p0"
got_all() { [ "$(stat -c %s f1)$(stat -c %s f2)" = 1515 ]; }
wait_for 15 "both have it" got_all
wait_for 15 "and wait again" is 2 klogfs_blocked_reads
kill $readers
wait $readers
readers=
wait_for 15 "nobody waits" is 0 klogfs_blocked_reads
eq "interrupted" 2 "$(value "$(e read EINTR)")"
wait_for 15 "nothing is open" is 0 klogfs_open_files

# a broker that does not answer
kill -STOP "$KLOGD_PID"
cleanup_fn 'kill -CONT "$KLOGD_PID" 2>/dev/null'
(echo lost >>"$M/t1/p0") 2>/dev/null 19>&- &
appends=$!
stat "$M/a-topic-that-nobody-knows" >/dev/null 2>&1 19>&- &
asks=$!
says() { [ "$(curl -s $U/readyz)" = "$1" ]; }
wait_for 30 "not ready" says "no broker answers"
eq "alive all the same" "ok 503 1" "$(curl -s $U/healthz) $(curl -s -o /dev/null -w '%{http_code}' $U/readyz) $(value klogfs_brokers_missed)"
kill -CONT "$KLOGD_PID"
wait_for 30 "ready" says ok
wait $appends $asks

if command -v promtool >/dev/null; then
    curl -s $U/metrics | promtool check metrics || fail "promtool"
fi
eq "no such page" "404 200" "$(curl -s -o /dev/null -w '%{http_code}' $U/x) $(curl -s -o /dev/null -w '%{http_code}' $U/)"
# it ends with the mount
mount_stop
fails 'Failed to connect|Connection refused|Couldn.t connect' curl -sS $U/healthz
has_not "sanitizers" 'ERROR|runtime error' "$(cat "$KLOGFS_LOG")"
