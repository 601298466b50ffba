# SPDX-License-Identifier: Apache-2.0
# What was reported of clusters in the field, on one of three brokers: logs that parted are cut by epoch; a topic is deleted and made anew while
# a broker is down; a known producer stays known to the next leader; two of three are gone; who is out of sync never leads by itself.
# timeout: 180
# https://github.com/apache/kafka/pull/2743 https://github.com/apache/kafka/pull/4882 https://github.com/linkedin/kafka/pull/337
# https://github.com/apache/kafka/pull/15230 https://github.com/apache/kafka/pull/1664 https://github.com/redpanda-data/redpanda/issues/22670
# https://github.com/cloudamqp/lavinmq/pull/2002 https://github.com/apache/kafka/pull/9533
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
more=(--override replica.lag.time.max.ms=1500 --override min.insync.replicas=2 --override offsets.topic.num.partitions=1
    --override offsets.topic.replication.factor=3 --override auto.leader.rebalance.enable=false --override group.initial.rebalance.delay.ms=0)
for n in 1 2 3; do broker_start $n "${more[@]}"; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
all=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093
leader() { partitions_of "$1" "$2" | sed -n 's/^0 leader \([-0-9]*\) .*/\1/p'; }
in_sync() { partitions_of "$1" "$2" | sed 's/.*isrs //'; }
others() { printf '%s\n' 1 2 3 | grep -v "$1" | xargs; }
led_by_another() { local l; l=$(leader "$2" "$3"); [ -n "$l" ] && [ "$l" -gt 0 ] && [ "$l" != "$1" ]; }

# ---- a producer and its sequences, over two changes of the leader (C20) ----
cat >steps.py <<'X'
import sys
from kwire import Conn, batch
c = Conn("127.0.0.1:909" + sys.argv[1])
n = int(sys.argv[2])
if n == 0:
    open("pid", "w").write(str(c.init_producer_id()[1]))
PID = int(open("pid").read())
def one(seq, pid=PID): return batch([b"s%d" % seq], pid=pid, epoch=0, seq=seq, ts=1000000)
for s in range(max(0, n - 5), n):
    assert c.produce("ip", 0, one(s)) == (0, s), ("a repeat of what another leader took", s)
if n:
    assert c.produce("ip", 0, one(n + 1))[0] == 45, "a gap"
for s in range(n, n + 6):
    assert c.produce("ip", 0, one(s)) == (0, s), s
assert c.list_offset("ip", 0, -1)[2] == n + 6
X
status 0 klog topic create ip -p 1 -r 3 -b 127.0.0.1:9091
wait_says "in sync" "1,2,3" "in_sync 1 ip"
l=$(leader 1 ip)
"$PY" steps.py "$l" 0 || fail "the first leader"
broker_kill "$l"
read -r a _ <<<"$(others "$l")"
wait_for 20 "another leads" led_by_another "$l" "$a" ip
m=$(leader "$a" ip)
"$PY" steps.py "$m" 6 || fail "after kill -9 of the leader"
broker_start "$l" "${more[@]}"
wait_says "in sync" "1,2,3" "in_sync $m ip"
broker_stop "$m"
wait_for 20 "another leads" led_by_another "$m" "$l" ip
"$PY" steps.py "$(leader "$l" ip)" 12 || fail "after a hand-over"
broker_start "$m" "${more[@]}"

# ---- a topic deleted and made anew while a broker is down (C36) ----
status 0 klog topic create z -p 1 -r 3 -b 127.0.0.1:9091
seq 100 | kcat -b $all -P -t z -p 0 -X acks=all || fail "nothing is taken"
timeout 30 kcat -b $all -G g -X auto.offset.reset=earliest -e -q z >read 2>/dev/null
seq 100 | same "what a group reads" read -
wait_says "in sync" "1,2,3" "in_sync 1 z"
broker_kill 3
status 0 klog topic delete z -b 127.0.0.1:9091 --timeout 10
no_topic() { ! klog topic list -q -b "127.0.0.1:909$1" | grep -qx z; }
for n in 1 2; do wait_for 5 "broker $n has it no more" no_topic $n; done
wait_says "brokers without it" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 1"
status 0 klog topic create z -p 1 -r 2 -b 127.0.0.1:9091
seq 900 905 | kcat -b 127.0.0.1:9091,127.0.0.1:9092 -P -t z -p 0 -X acks=all || fail "the new one takes nothing"
broker_start 3 "${more[@]}"
wait_says "no directory is left of the old one" "z-*" '(cd "$T/b3" && echo z-*)'
replicas() { BROKER=127.0.0.1:909$1 "$PY" "$TESTLIB/replicas.py" "${@:2}"; }
wait_says "all brokers" 3 "brokers_of 1 | wc -w"
eq "a third replica" ok "$(replicas 1 reassign z 0 3,1,2)"
wait_says "in sync" "1,2,3" "in_sync 3 z"
seq 900 905 >new
for n in 1 2 3; do
    kcat -b "127.0.0.1:909$n" -C -t z -o beginning -e -q >read 2>/dev/null
    same "records of the new one" new read
done
timeout 30 kcat -b $all -G g -X auto.offset.reset=earliest -e -q z >read 2>/dev/null
same "a group has no position in the new one" new read

# ---- logs that parted (C32): 1's own records are of an epoch that the others never saw ----
replicas 1 elect z 0 >/dev/null
status 0 klog topic create d -p 1 -r 3 -b 127.0.0.1:9091
l=$(leader 1 d)
read -r a b <<<"$(others "$l")"
wait_says "in sync" "1,2,3" "in_sync $l d"
seq 10 | kcat -b $all -P -t d -p 0 -X acks=all || fail "nothing is taken"
broker_kill "$a"
broker_kill "$b"
seq -f "lost %g" 50 | kcat -b "127.0.0.1:909$l" -P -t d -p 0 -X acks=1 || fail "acks=1 is not taken"
# two of three are gone: acks=all is refused, what is committed is read (C31)
"$PY" - "$l" <<'X' || fail "two of three are gone"
import sys
from kwire import Conn, batch
c = Conn("127.0.0.1:909" + sys.argv[1])
err = c.produce("d", 0, batch([b"lost too"]), timeout_ms=100)[0]
assert err in (19, 20, 7), err
X
seq 10 >good
kcat -b "127.0.0.1:909$l" -C -t d -o beginning -c 10 -q >read
same "what is committed" good read
broker_kill "$l"
broker_start "$a" "${more[@]}"
broker_start "$b" "${more[@]}"
wait_for 20 "another leads" led_by_another "$l" "$a" d
m=$(leader "$a" d)
seq 11 40 | tee -a good | kcat -b "127.0.0.1:909$a,127.0.0.1:909$b" -P -t d -p 0 -X acks=all -X message.timeout.ms=20000 || fail "30 are not taken"
wait_says "in sync" "$(printf '%s\n' "$a" "$b" | sort | paste -sd,)" "in_sync $m d"
broker_kill "$m"
o=$((a + b - m))
broker_start "$l" "${more[@]}"
wait_for 20 "the third leads" led_by_another "$m" "$o" d
seq 41 60 | tee -a good | kcat -b $all -P -t d -p 0 -X acks=all -X message.timeout.ms=20000 || fail "20 are not taken"
broker_start "$m" "${more[@]}"
wait_says "in sync" "1,2,3" "in_sync $o d"
kcat -b $all -C -t d -o beginning -e -q >read
same "records" good read
"$PY" - "$o" <<'X' || fail "epochs"
import sys
from kmsg import MsgConn
c = MsgConn("127.0.0.1:909" + sys.argv[1])
now = c.ask_msg("Metadata", 12, topics=[{"name": "d"}])["topics"][0]["partitions"][0]["epoch"]
def ask(current):
    t = c.ask_msg("OffsetForLeaderEpoch", 4, replica=-1, topics=[{"name": "d", "partitions": [{"partition": 0, "current": current, "epoch": 0}]}])
    return t["topics"][0]["partitions"][0]["error"]
assert (ask(now), ask(now - 1), ask(now + 1)) == (0, 74, 75), (ask(now), ask(now - 1), ask(now + 1))
X

# ---- who is out of sync does not lead by itself (C31) ----
broker_kill "$m"
wait_says "in sync without it" "$(printf '%s\n' "$l" "$o" | sort | paste -sd,)" "in_sync $o d"
echo 61 | tee -a good | kcat -b $all -P -t d -p 0 -X acks=all -X message.timeout.ms=20000 || fail "61 is not taken"
broker_kill "$l"
broker_kill "$o"
broker_start "$m" "${more[@]}"
wait_says "no leader" "-1" "leader $m d"
for n in $l $o; do broker_start "$n" "${more[@]}"; done
wait_says "in sync" "1,2,3" "in_sync $l d"
kcat -b $all -C -t d -o beginning -e -q >read
same "records" good read
for n in 1 2 3; do broker_stop $n; done
for t in d ip z; do
    for f in "$T"/b2/$t-0/*.log; do
        same "logs of 1 and 2" "$f" "$T/b1/$t-0/${f##*/}"
        same "logs of 3 and 2" "$f" "$T/b3/$t-0/${f##*/}"
    done
done
