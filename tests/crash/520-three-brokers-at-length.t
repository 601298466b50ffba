# SPDX-License-Identifier: Apache-2.0
# The long forms of what was reported of clusters in the field. KILLS=20 kills of the leader, then of all; a broker cut off from ZooKeeper for
# three sessions; the broker that is named as the controller stands still meanwhile; the in-sync set under load after a change of leader; TOPICS=500
# of ten partitions each. What takes how long is printed.
# https://github.com/cloudamqp/lavinmq/pull/2002 https://github.com/confluentinc/librdkafka/issues/948 https://github.com/pinterest/memq/pull/55
# https://github.com/apache/kafka/pull/5101 https://github.com/apache/fluss/issues/3698 https://github.com/apache/kafka/pull/3765
# timeout: 1800
requires jq kcat
. "$TESTLIB/cluster.sh"
zookeeper_start
[ -r /usr/share/java/commons-cli.jar ] || skip "needs libcommons-cli-java"
"$PY" "$TESTLIB/relay.py" 2182 2181 2>relay.err 19>&- &
RELAY=$!
cleanup_fn 'kill -CONT $RELAY; kill -KILL $RELAY; wait $RELAY 2>/dev/null'
wait_for 10 "the relay listens" port_open 2182
more=(--override replica.lag.time.max.ms=5000 --override min.insync.replicas=2 --override auto.leader.rebalance.enable=false)
start() {
    local way=()
    [ "$1" != 1 ] || way=(--override zookeeper.connect=127.0.0.1:2182/klog) # only broker 1 goes through the relay
    broker_start "$1" "${more[@]}" "${way[@]}"
}
for n in 1 2 3; do start $n; done
all=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093
export KLOG_BROKERS=$all
registered() { [ "$(brokers_of "$1" | wc -w)" = 3 ]; }
wait_for 20 "brokers" registered 1
replicas() { BROKER=127.0.0.1:909$1 "$PY" "$TESTLIB/replicas.py" "${@:2}"; }
leader() { partitions_of "$1" z | sed -n 's/^0 leader \([-0-9]*\) .*/\1/p'; }
in_sync() { partitions_of "$1" z | sed 's/.*isrs //'; }
led_by_another() { local l; l=$(leader "$2"); [ -n "$l" ] && [ "$l" -gt 0 ] && [ "$l" != "$1" ]; }
register_version() {
    java -cp "$ZOOKEEPER_JAR:/usr/share/java/commons-cli.jar:/usr/share/java/slf4j-api.jar" org.apache.zookeeper.ZooKeeperMain \
        -server 127.0.0.1:2181 get -s /klog/brokers/topics/z/partitions/0/state 2>/dev/null | sed -n 's/^dataVersion = //p'
}
n=0 writers=
write() { # that many lines more, by a producer of their own
    seq -f "line %g" $((n + 1)) $((n + $1)) | kcat -E -P -b $all -t z -p 0 -X acks=all -X enable.idempotence=true -X message.timeout.ms=300000 \
        -X linger.ms=5 >>kcat.log 2>&1 19>&- &
    writers+=" $!"
    n=$((n + $1))
}
written() {
    local w
    for w in $writers; do wait "$w" || fail "a producer ends with $?: $(tail -n3 kcat.log)"; done
    writers=
}
all_there() {
    kcat -C -b $all -t z -o beginning -e -q | sort -t' ' -k2n >got
    seq -f "line %g" $n | cmp - got || fail "$1: what is there is not what was written"
}
status 0 klog topic create z -p 1 -r 3
wait_says "in sync" "1,2,3" "in_sync 1"

# ---- kills (C31) ----
for turn in $(seq "${KILLS:-20}"); do
    write 200
    at=$((RANDOM % 3 + 1))
    l=$(leader $at)
    [ -n "$l" ] && [ "$l" -gt 0 ] || l=$at
    broker_kill "$l"
    write 200
    wait_for 30 "another leads in turn $turn" led_by_another "$l" $((l % 3 + 1))
    start "$l"
    wait_for 60 "in sync after turn $turn" says "1,2,3" "in_sync $l"
done
write 200
for b in 1 2 3; do broker_kill $b; done
for b in 1 2 3; do start $b; done
written
all_there "after the kills"

# ---- cut off from ZooKeeper (C33) ----
wait_for 30 "brokers" registered 1
wait_for 60 "in sync" says "1,2,3" "in_sync 1"
[ "$(leader 1)" = 1 ] || eq "1 leads" ok "$(replicas 1 reassign z 0 1,2,3)"
[ "$(leader 1)" = 1 ] || eq "1 leads" ok "$(replicas 1 elect z 0)"
wait_for 20 "1 leads" says 1 "leader 2"
kill -STOP $RELAY
begun=$(now_ms)
write 500
wait_for 7 "another leads" led_by_another 1 2 # a session and 5 s
echo "cut off from ZooKeeper: led by another after $(($(now_ms) - begun)) ms"
gone_of_sync() { [[ $(in_sync 2) != *1* ]]; }
wait_for 30 "1 is in sync no more" gone_of_sync
write 500
kill -CONT $RELAY
wait_for 15 "1 is registered again" registered 2
wait_for 15 "1 is in sync again" says "1,2,3" "in_sync 2"
eq "1 leads nothing by itself" "" "$(partitions_of 1 z | grep 'leader 1 ')"
written
all_there "after the cut"

# ---- the one that Metadata names as the controller stands still (C34) ----
controller() { kcat -b "127.0.0.1:909$1" -L -J 2>/dev/null | jq .controllerid; }
c=$(controller 2)
a=$((c % 3 + 1)) b=$((a % 3 + 1))
kill -STOP "${BROKER_PIDS[c]}"
another() { local x; x=$(controller "$1"); [ -n "$x" ] && [ "$x" != "$c" ]; }
for x in $a $b; do wait_for 20 "$x names another" another "$x"; done
wait_for 20 "it leads nothing" led_by_another "$c" "$a"
KLOG_BROKERS=127.0.0.1:909$a,127.0.0.1:909$b
status 0 klog topic create y -p 2 -r 2
eq "the leader moves" ok "$(replicas "$a" reassign z 0 $b,$a,$c)"
replicas "$a" elect z 0 >/dev/null
write 300
kill -CONT "${BROKER_PIDS[c]}"
KLOG_BROKERS=$all
wait_for 30 "brokers" registered "$c"
wait_for 60 "in sync" says "1,2,3" "in_sync $c"
for t in y z; do
    for x in $b $c; do eq "$t as $x and $a tell it" "$(partitions_of "$a" $t)" "$(partitions_of "$x" $t)"; done
done
written
all_there "after the standstill"

# ---- the in-sync set does not flap (C35) ----
l=$(leader 1)
eq "another shall lead" ok "$(replicas 1 reassign z 0 $((l % 3 + 1)),$(((l + 1) % 3 + 1)),"$l")"
replicas 1 elect z 0 >/dev/null
wait_for 20 "it leads" led_by_another "$l" 1
wait_for 20 "in sync" says "1,2,3" "in_sync 1"
v=$(register_version)
for turn in $(seq "${SECONDS_OF_LOAD:-60}"); do
    yes "$(printf '%01000d' 0)" | head -n 20000 | kcat -b $all -P -t z -p 0 -X acks=all -X linger.ms=5 || fail "20 MB are not taken"
    eq "in sync under load" "1,2,3" "$(in_sync 1)"
done
for turn in $(seq 20); do echo slow | kcat -b $all -P -t z -p 0 -X acks=all || fail "one is not taken"; done
eq "writes of the register" "$v" "$(register_version)"
status 0 klog topic delete z --timeout 60

# ---- thousands of partitions (C37) ----
begun=$(now_ms)
T5=${TOPICS:-500}
seq -f 'm%g' "$T5" | xargs -n 20 klog topic create -p 10 -r 3 --timeout 120 >made 2>&1 || fail "topics: $(tail -n3 made)"
echo "$T5 topics of 10 partitions made in $(($(now_ms) - begun)) ms"
leaders() { kcat -b "127.0.0.1:909$1" -L -J 2>/dev/null | jq '[.topics[].partitions[] | select(.leader > 0)] | length'; }
wait_for 120 "all are led" says $((10 * T5 + 2)) "leaders 2"
c=$(controller 2)
a=$((c % 3 + 1))
broker_kill "$c"
begun=$(now_ms)
dead_leads() { kcat -b "127.0.0.1:909$a" -L -J 2>/dev/null | jq "[.topics[].partitions[] | select(.leader == $c or .leader < 0)] | length"; }
wait_for 60 "all are led again" says 0 dead_leads
echo "all led again $(($(now_ms) - begun)) ms after kill -9 (session 1000 ms)"
start "$c"
begun=$(now_ms)
broker_stop "$c"
start "$c"
echo "a clean restart takes $(($(now_ms) - begun)) ms"
begun=$(now_ms)
kcat -b 127.0.0.1:9091 -L >listing || fail "Metadata"
echo "Metadata takes $(($(now_ms) - begun)) ms"
for x in $(seq 100); do kcat -b 127.0.0.1:9092 -L >/dev/null 2>&1 19>&- & done
begun=$(now_ms)
echo during | kcat -b $all -P -t y -p 0 -X acks=all || fail "nothing is taken beside 100 listings"
echo "a record beside 100 listings takes $(($(now_ms) - begun)) ms"
for j in $(jobs -p); do [ "$j" = $RELAY ] || [ "$j" = "$ZOOKEEPER_PID" ] || [[ " ${BROKER_PIDS[*]} " = *" $j "* ]] || wait "$j"; done
