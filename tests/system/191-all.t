# SPDX-License-Identifier: Apache-2.0
# `all` reads every partition as one stream: merged by time up to the ends seen at the open, as they arrive below follow/. It has no
# size, is never listed, and a read that waits holds no thread and ends at once when it is interrupted.
requires kcat jq
klogd_start
topic t1
topic many 7
topic gone 2
mount_start
A=$M/many
"$PY" - <<'X' || fail "produce"
import random
from kwire import *
random.seed(5)
c = Conn()
for i in range(60):
    for p in random.sample(range(7), 4):
        rows = [b"%d-%d-%d" % (p, i, k) for k in range(random.choice([1, 3, 200]))]
        assert c.produce("many", p, batch([(b"k%d" % p, r) for r in rows], ts=1700000000000 + i * 1000 + p, squeeze=random.choice([None, 6])))[0] == 0
X
cat "$A/json/all" >all.json || fail "json/all"
sort all.json | cmp - <(cat "$A"/json/p* | sort) || fail "every record once"
jq .timestamp <all.json | sort -c -n || fail "by time"
for p in 0 1 2 3 4 5 6; do
    jq -c "select(.partition == $p) | .offset" <all.json | sort -c -n -u || fail "order within p$p"
done
cat "$A/all" | cmp - <(jq -r .value <all.json) || fail "plain"
cat "$A/tsv/all" | cmp - <(jq -r '"\(.key)\t\(.value)"' <all.json) || fail "tsv"
klog cat many/json/all | cmp - all.json || fail "klog cat has the same"
eq "a range of each" 14 "$(wc -l <"$A/-2/all")"
eq "by time" "$(jq -c 'select(.timestamp >= 1700000020000 and .timestamp < 1700000030000) | .offset' <all.json | md5sum)" \
    "$(jq -c .offset <"$A/@1700000020:1700000030/json/all" | md5sum)"
dd if="$A/json/all" bs=777 status=none | cmp - all.json || fail "in small reads"
eq "an empty topic" "" "$(cat "$M/t1/all")"

# ---- what it is ----
eq "a stream" "0 444" "$(stat -c '%s %a' "$A/all")"
has_not "not listed" all "$(ls -A "$A"; ls -A "$A/json")"
fails "Permission denied" bash -c "echo x >>$A/all"
fails "No such file" stat "$A/json/json/all"

# ---- follow ----
cat "$A/follow/json/all" >followed & F=$!
cat "$M/t1/follow/all" >followed.one & G=$!
n=$(wc -l <all.json)
wait_lines followed "$n"
head -n "$n" followed | cmp - all.json || fail "what was there comes first, in order"
for i in 1 2 3; do
    for p in 3 0 6; do
        echo "new-$i-$p" | produce -t many -p $p -X linger.ms=0
        n=$((n + 1))
        wait_lines followed $n
    done
done
eq "then as they arrive" "new-1-3 new-1-0 new-1-6 new-2-3" "$(tail -n 9 followed | head -n 4 | jq -r .value | tr '\n' ' ' | sed 's/ $//')"
echo first | grow
wait_lines followed.one 1
kill $F $G
wait $F $G
threads=$(ls /proc/"$KLOGFS_PID"/task | wc -l)
readers=()
for i in $(seq 1 50); do
    cat "$M/t1/follow/all" >"o$i" &
    readers+=($!)
done
for i in $(seq 1 50); do wait_lines "o$i" 1; done
between "threads with 50 readers" 1 $((threads + 2)) "$(ls /proc/"$KLOGFS_PID"/task | wc -l)"
kill "${readers[@]}"
wait "${readers[@]}"
"$PY" - "$M/t1/follow/all" <<'X' || fail "poll and O_NONBLOCK"
import errno, os, select, subprocess, sys
f = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
p = select.poll()
p.register(f, select.POLLIN)
got = b""
while got != b"first\n":
    assert p.poll(5000) == [(f, select.POLLIN)], "not woken"
    try:
        got += os.read(f, 65536)
    except OSError as e:
        assert e.errno == errno.EAGAIN, e
subprocess.run(["kcat", "-q", "-b", "127.0.0.1:9092", "-P", "-t", "t1", "-p", "0"], input=b"woken\n", check=True)
got = b""
while got != b"woken\n":
    assert p.poll(5000) == [(f, select.POLLIN)], "not woken"
    try:
        got += os.read(f, 65536)
    except OSError as e:
        assert e.errno == errno.EAGAIN, e
X

# ---- the topic goes; the broker goes; the mount goes ----
cat "$M/gone/follow/all" >gone.out & F=$!
echo x | produce -t gone -p 1
wait_lines gone.out 1
status 0 klog topic delete gone
wait $F || fail "the end of a deleted topic"
exec 4<"$M/t1/follow/all"
read -r line <&4
eq "a line" first "$line"
klogd_kill
klogd_restart 4<&-
echo again | grow
timeout 60 cat <&4 >rest & F=$!
wait_lines rest 2 30
eq "goes on after a restart" "woken again" "$(tr '\n' ' ' <rest | sed 's/ $//')"
kill $F
wait $F
exec 4<&-
eq "the mount works" "first woken again" "$(cat "$M/t1/all" | tr '\n' ' ' | sed 's/ $//')"
