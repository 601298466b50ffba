# SPDX-License-Identifier: Apache-2.0
# What Kafka changes on a running broker changes here, at once and without a restart, and is kept over one; what it does not is
# refused with 42, as there.
requires kcat
klogd_start --override log.cleaner.backoff.ms=86400000 --override log.cleaner.io.max.bytes.per.second=1 --override num.io.threads=4 --override num.network.threads=2
cat >set.py <<'X'
import sys
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
r = c.ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=4, name="1", configs=[
    dict(name=k, op=0 if v else 1, value=v or None) for k, v in (a.split("=", 1) for a in sys.argv[1:])])])
print(r["results"][0]["error"])
X
set_() { "$PY" set.py "$@"; }
view() { $KC -t cp -p 0 -o beginning -e -f '%o:%k '; }
views() { [ "$(view)" = "$1" ]; }
threads() { grep -lx 'klogd-io/[0-9]*' /proc/"$KLOGD_PID"/task/*/comm 2>/dev/null | wc -l; }
has_threads() { [ "$(threads)" = "$1" ]; }

# it sleeps for a day when the topic is made: 50 ms are looked at while it sleeps
topic cp 1 cleanup.policy=compact segment.ms=100 min.cleanable.dirty.ratio=0.01
for i in $(seq 20); do echo "a:$i"; done | $K -P -K: -t cp -p 0 || fail "produce"
sleep 0.2 # segment.ms
echo "b:1" | $K -P -K: -t cp -p 0 || fail "produce"
eq "backoff" 0 "$(set_ log.cleaner.backoff.ms=50)"
wait_for 30 "the cleaner wakes at once" views "19:a 20:b "

# 1 byte a second: a pass over this takes days, and goes on when it may be faster
topic big 1 cleanup.policy=compact segment.bytes=150000 min.cleanable.dirty.ratio=0.01
"$PY" -c 'for i in range(4000): print("k%d:%s" % (i % 10, "x" * 200))' | $K -P -X batch.num.messages=1000 -X batch.size=60000 -K: -t big -p 0 || fail "produce"
first_of() { [ "$($KC -t big -p 0 -o beginning -c1 -e -f '%o')" -gt "$1" ]; }
eq "speed" 0 "$(set_ log.cleaner.io.max.bytes.per.second=1e9)"
wait_for 30 "the pass goes on" first_of 1000

# 60,000 keys are more than fit into 1 MiB, 34,952; with more memory one pass does
pass_over() { # TOPIC: it is compacted from now on
    topic "$1" 1 segment.bytes=500000 min.cleanable.dirty.ratio=0.01
    "$PY" -c 'for i in range(120000): print("key%d:v" % (i // 2))' | $K -P -X batch.num.messages=1000 -X batch.size=60000 -K: -t "$1" -p 0 || fail "produce"
    "$PY" -c 'import sys; from kmsg import MsgConn
r = MsgConn("127.0.0.1:9092").ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=2, name=sys.argv[1], configs=[dict(name="cleanup.policy", op=0, value="compact")])])
assert r["results"][0]["error"] == 0, r' "$1" || fail "compact $1"
    wait_for 30 "a pass over $1" grep -q "$1-0: cleaned up to offset" "$KLOGD_LOG"
    grep "$1-0: cleaned up to offset" "$KLOGD_LOG" | head -1
}
eq "memory" 0 "$(set_ log.cleaner.dedupe.buffer.size=1048576)"
has "little memory" 'the map of keys was full' "$(pass_over many)"
eq "more memory" 0 "$(set_ log.cleaner.dedupe.buffer.size=67108864)"
has_not "all fit" 'the map of keys was full' "$(pass_over more)"

# connections: those that are there stay, no more come; then they may again
"$PY" - <<'X' || fail "max.connections"
import socket
from kmsg import MsgConn
def alter(c, value):
    r = c.ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=4, name="1", configs=[dict(name="max.connections", op=0, value=value)])])
    assert r["results"][0]["error"] == 0, r
def is_closed():
    s = socket.create_connection(("127.0.0.1", 9092))
    s.settimeout(60)
    try:
        s.sendall(b"\0\0\0\x0e\0\x12\0\0\0\0\0\1\0\4test")
        return s.recv(1) == b""
    except ConnectionResetError:
        return True
a, b = MsgConn("127.0.0.1:9092"), MsgConn("127.0.0.1:9092")
b.ask_msg("DescribeCluster", 1, kind=1)
alter(a, "1")
assert is_closed()
assert b.ask_msg("DescribeCluster", 1, kind=1)["error"] == 0
alter(a, "100")
assert not is_closed()
X

# threads: at most twice as many at once, at least half, and what is asked for is there
eq "at first" 4 "$(threads)"
eq "far too many, far too few" "42 42" "$(echo $(set_ num.io.threads=9) $(set_ num.io.threads=1))"
eq "more" 0 "$(set_ num.io.threads=8)"
wait_for 30 "8 threads" has_threads 8
eq "fewer" "0 0 0" "$(echo $(set_ num.io.threads=4) $(set_ num.io.threads=2) $(set_ num.io.threads=1))"
wait_for 30 "1 thread" has_threads 1
eq "it works" 0 "$(echo c:1 | $K -P -K: -t cp -p 0 >&2; echo $?)"
eq "more again" 0 "$(set_ num.io.threads=2)"
wait_for 30 "2 threads" has_threads 2

# threads of connections: those of one that goes get their answers and are closed, new ones are served by the others
net_threads() { grep -lx 'klogd-net' /proc/"$KLOGD_PID"/task/*/comm 2>/dev/null | wc -l; }
eq "at first" 2 "$(net_threads)"
eq "far too many" 42 "$(set_ num.network.threads=5)"
topic idle
"$PY" - <<'X' || fail "num.network.threads"
from kmsg import MsgConn
from kwire import array, i8, i32, i64, string
def alter(c, n):
    r = c.ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=4, name="1", configs=[dict(name="num.network.threads", op=0, value=str(n))])])
    assert r["results"][0]["error"] == 0, (n, r)
def ask(c): return c.ask_msg("DescribeCluster", 1, kind=1)["error"]
def lives(c):
    try:
        return ask(c) == 0
    except (EOFError, OSError, AssertionError):
        return False
old = [MsgConn("127.0.0.1:9092") for _ in range(4)]
assert [ask(c) for c in old] == [0] * 4
alter(old[0], 4)
new = [MsgConn("127.0.0.1:9092") for _ in range(8)]
assert [ask(c) for c in old + new] == [0] * 12
waiting = new[-4:]  # with a fetch that waits, and has its answer whatever becomes of the threads
for c in waiting:
    c.corr_sent = c.send(1, 4, i32(-1) + i32(2000) + i32(1) + i32(1000) + i8(0) + array([string("idle") + array([i32(0) + i64(0) + i32(1000)])]))
alter(old[0], 2)
for c in waiting:
    assert c.fetched(c.reply(c.corr_sent)) == (0, 0, 0, b"")
c = next(c for c in old + new if lives(c))
alter(c, 1)
rest = [c for c in old + new if lives(c)]
assert 0 < len(rest) < 12, len(rest)
again = [MsgConn("127.0.0.1:9092") for _ in range(3)]
assert [ask(c) for c in again] == [0] * 3
alter(again[0], 2)
X
eq "they are kept" 4 "$(net_threads)"

# units that Kafka reads once
for k in log.retention.hours=5 log.retention.minutes=5 log.roll.hours=5 listeners=PLAINTEXT://:9095 log.cleaner.enable=false log.retention.check.interval.ms=5; do
    eq "$k" 42 "$(set_ "$k")"
done
eq "of a finer unit" "0 0" "$(echo $(set_ log.retention.ms=5000000) $(set_ log.roll.ms=5000000))"
eq "away with what cannot be set" 0 "$(set_ log.retention.hours=)"

eq "kept over a restart" 0 "$(set_ max.connections=77)"
klogd_stop
klogd_restart
eq "threads" 2 "$(threads)"
"$PY" - <<'X' || fail "described"
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
want = {"max.connections": "77", "log.cleaner.backoff.ms": "50", "num.io.threads": "2", "log.cleaner.dedupe.buffer.size": "67108864", "log.retention.hours": "168"}
r = c.ask_msg("DescribeConfigs", 3, resources=[dict(kind=4, name="1", keys=sorted(want))])["results"][0]
assert {e["name"]: e["value"] for e in r["configs"]} == want, r
assert {e["name"] for e in r["configs"] if e["read_only"]} == {"log.retention.hours"}, r
X
