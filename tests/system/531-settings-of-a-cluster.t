# SPDX-License-Identifier: Apache-2.0
# What Kafka's settings of several brokers say: brokers reach each other at a listener of their own; a consumer reads from a replica
# in its rack (KIP-392); the preferred leader leads again by itself; where a topic allows it, one that is out of sync leads; copies of
# replicas keep to a rate.
# timeout: 180
requires kcat jq ss
. "$TESTLIB/cluster.sh"
zookeeper_start
racks=(- A B C)
start() {
    broker_start "$1" --override broker.rack="${racks[$1]}" --override replica.lag.time.max.ms=1500 \
        --override listeners="PLAINTEXT://127.0.0.1:909$1,BETWEEN://127.0.0.1:919$1" --override inter.broker.listener.name=between \
        --override replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector \
        --override leader.imbalance.check.interval.seconds=1
}
status 1 klogd --override log.dirs="$T/none" --override inter.broker.listener.name=NONE
has "no such listener" 'inter.broker.listener.name: NONE is not among listeners' "$OUT"
status 1 klogd --override log.dirs="$T/none" --override replica.selector.class=Nearest
has "no such selector" 'replica.selector.class=Nearest: klogd knows ' "$OUT"
for n in 1 2 3; do start $n; done
all=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
replicas() { BROKER=127.0.0.1:909$1 "$PY" "$TESTLIB/replicas.py" "${@:2}"; }
leader() { partitions_of "$1" "$2" | sed -n 's/^0 leader \([-0-9]*\) .*/\1/p'; }
in_sync() { partitions_of "$1" "$2" | sed 's/.*isrs //'; }

# ---- listeners, racks ----
status 0 klog topic create f -p 1 -r 3 -b 127.0.0.1:9091
wait_says "in sync" "1,2,3" "in_sync 1 f"
l=$(leader 1 f) a=$((l % 3 + 1))
printf '%s\n' a b c | kcat -b $all -P -t f -p 0 -X acks=all || fail "nothing is taken"
followers_at() { ss -Htn state established dport = ":$1" | wc -l; }
[ "$(followers_at "919$l")" -gt 0 ] || fail "nobody follows at the listener between brokers"
eq "who is connected to the other one" 0 "$(followers_at "909$l")"
nearest() { BROKER=127.0.0.1:909$1 "$PY" "$TESTLIB/nearest.py" f "${@:2}"; }
eq "the leader, to one in its own rack" "0 -1 a,b,c" "$(nearest "$l" 0 "${racks[l]}")"
eq "to one in a rack that nobody is in" "0 -1 a,b,c" "$(nearest "$l" 0 Z)"
eq "to one without a rack" "0 -1 a,b,c" "$(nearest "$l" 0 "")"
eq "to one in the rack of a follower" "0 $a -" "$(nearest "$l" 0 "${racks[a]}")"
wait_says "the follower, to one in its rack" "0 -1 a,b,c" "nearest $a 0 ${racks[a]}"
eq "to one without a rack" "6 -1 -" "$(nearest "$a" 0 "")"
eq "beyond the end" "1 -1 -" "$(nearest "$a" 9 "${racks[a]}")"
nearest "$a" 3 "${racks[a]}" 50000 >later &
waits=$!
echo d | kcat -b $all -P -t f -p 0 -X acks=all || fail "nothing is taken"
wait $waits
eq "one that waits at a follower" "0 -1 d" "$(cat later)"
eq "kcat in a rack" "a b c d" "$(kcat -b $all -C -t f -o beginning -e -q -X client.rack="${racks[a]}" | xargs)"

# ---- the preferred leader ----
preferred=$(partitions_of 1 f | sed 's/.*replicas \([0-9]\),.*/\1/')
broker_kill "$preferred"
other=$((preferred % 3 + 1))
led_by_another() { local x; x=$(leader $other f); [ -n "$x" ] && [ "$x" -gt 0 ] && [ "$x" != "$preferred" ]; }
wait_for 20 "another leads" led_by_another
start "$preferred"
wait_says "the preferred one leads again" "$preferred" "leader $other f"

# ---- a rate ----
for t in w x; do
    status 0 klog topic create $t -p 1 -r 1 -b 127.0.0.1:9091
    yes "$(printf '%01000d' 0)" | head -n 3000 | kcat -b $all -P -t $t -p 0 -X acks=all || fail "nothing is taken"
done
w=$(leader 1 w) x=$(leader 1 x)
rate() { status 0 klog config set broker "$1" "$2.replication.throttled.rate=1000000" -b $all; }
to=$((w % 3 + 1))
rate $w leader
status 0 klog config set topic w leader.replication.throttled.replicas="0:$w" -b $all
tx=$((x % 3 + 1))
rate $tx follower
status 0 klog config set topic x follower.replication.throttled.replicas="*" -b $all
for t in w x; do # one after the other: each has to take its time
    begun=$(now_ms)
    eq "other replicas" ok "$(replicas 1 reassign $t 0 "$([ $t = w ] && echo $to || echo $tx)")"
    wait_says "all is copied" "" "replicas 1 list | grep '^$t-'"
    [ $(($(now_ms) - begun)) -ge 1500 ] || fail "3 MB of $t were copied in $(($(now_ms) - begun)) ms at 1 MB/s, one at once"
    eq "records of $t" 3000 "$(kcat -b $all -C -t $t -o beginning -e -q | wc -l)"
done

# ---- unclean elections ----
for t in u v; do
    status 0 klog topic create $t -p 1 -r 2 -b 127.0.0.1:9091
    echo both | kcat -b $all -P -t $t -p 0 -X acks=all || fail "nothing is taken"
    eq "replicas" ok "$(replicas 1 reassign $t 0 1,2)"
    wait_says "in sync" "1,2" "in_sync 3 $t"
done
status 0 klog config set topic u unclean.leader.election.enable=true -b $all
broker_kill 2
for t in u v; do
    wait_says "in sync" "1" "in_sync 3 $t"
    echo lost | kcat -b $all -P -t $t -p 0 -X acks=all || fail "nothing is taken"
done
broker_kill 1
start 2
wait_says "one that is out of sync leads" 2 "leader 3 u"
has "it is told" 'u-0: no replica provably has everything .* records may be lost' "$(cat "$T/klogd2.log")"
eq "where it is not allowed, nobody" -1 "$(leader 3 v)"
status 0 klog config set topic v unclean.leader.election.enable=true -b 127.0.0.1:9092,127.0.0.1:9093
wait_says "now one leads" 2 "leader 3 v"
start 1
for t in u v; do
    wait_says "in sync" "1,2" "in_sync 3 $t"
    echo new | kcat -b $all -P -t $t -p 0 -X acks=all || fail "nothing is taken"
    eq "records" "both new" "$(kcat -b $all -C -t $t -o beginning -e -q | xargs)"
done
for n in 1 2 3; do broker_stop $n; done
for t in u v; do same "logs" "$T/b1/$t-0/00000000000000000000.log" "$T/b2/$t-0/00000000000000000000.log"; done
