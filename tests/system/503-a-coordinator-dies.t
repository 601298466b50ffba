# SPDX-License-Identifier: Apache-2.0
# Three brokers: the coordinator of a group is killed, and the next one knows the group's positions: nothing is read twice, nothing
# is left out. So does the first one, when it is started anew. The topic of the positions was made by one broker alone and has got
# its replicas since.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
more=(--override replica.lag.time.max.ms=2000 --override offsets.topic.num.partitions=1
    --override offsets.topic.replication.factor=3 --override group.initial.rebalance.delay.ms=0)
broker_start 1 "${more[@]}"
status 0 klog topic create g -p 1 -r 1 -b 127.0.0.1:9091
echo x | kcat -b 127.0.0.1:9091 -P -t g -p 0 || fail "nothing is taken"
eq "a group of one broker" x "$(timeout 30 kcat -b 127.0.0.1:9091 -G one -X auto.offset.reset=earliest -e -q g 2>/dev/null)"
eq "replicas of positions, one broker" "0 leader 1 replicas 1 isrs 1" "$(partitions_of 1 __consumer_offsets)"
for n in 2 3; do broker_start $n "${more[@]}"; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
status 0 klog topic create t -p 1 -r 3 -b 127.0.0.1:9091
brokers=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093
put() { seq "$1" "$2" | kcat -b $brokers -P -t t -p 0 -X acks=all -X message.timeout.ms=20000 || fail "$1..$2 were not taken"; }
# what the group has not read yet, until nothing more comes
get() { timeout 60 kcat -b $brokers -G g -X auto.offset.reset=earliest -X session.timeout.ms=6000 -e -q t 2>/dev/null | xargs; }
coordinator() { kcat -b "127.0.0.1:909$1" -L -J -t __consumer_offsets 2>/dev/null | jq -r '.topics[0].partitions[0].leader'; }
in_sync() { kcat -b "127.0.0.1:909$1" -L -J -t __consumer_offsets 2>/dev/null | jq -r '[.topics[0].partitions[0].isrs[].id] | sort | map(tostring) | join(",")'; }

put 1 5
eq "first reading" "1 2 3 4 5" "$(get)"
wait_says "replicas of the positions" "1,2,3" "in_sync 1"
first=$(coordinator 1)
broker_kill "$first"
other=$((first % 3 + 1))
put 6 8
eq "after the coordinator was killed" "6 7 8" "$(get)"
[ "$(coordinator $other)" != "$first" ] || fail "the dead broker is still the coordinator"

broker_start "$first" "${more[@]}"
wait_says "replicas of the positions" "1,2,3" "in_sync $other"
second=$(coordinator $other)
broker_stop "$second"
put 9 9
eq "after the coordinator was stopped" "9" "$(get)"
