# SPDX-License-Identifier: Apache-2.0
# Three brokers, three replicas, acks=all: the leader is killed, another one leads, everything acknowledged is there; the one that
# was killed comes back into the in-sync set; one that is stopped hands over what it led.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
for n in 1 2 3; do broker_start $n --override min.insync.replicas=2 --override replica.lag.time.max.ms=2000; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
status 0 klog topic create r -p 1 -r 3 -b 127.0.0.1:9091
leader() { kcat -b "127.0.0.1:909$1" -L -J -t r 2>/dev/null | jq -r '.topics[0].partitions[0].leader'; }
in_sync() { kcat -b "127.0.0.1:909$1" -L -J -t r 2>/dev/null | jq -r '[.topics[0].partitions[0].isrs[].id] | sort | map(tostring) | join(",")'; }
wait_says "in sync" "1,2,3" "in_sync 1"

put() { echo "$1" | kcat -b "127.0.0.1:909$2" -P -t r -p 0 -X acks=all -X message.timeout.ms=20000 || fail "$1 was not taken"; }
put one 1
old=$(leader 1)
broker_kill "$old"
other=$((old % 3 + 1))
put two $other
new=$(leader $other)
[ "$new" != "$old" ] && [ "$new" -gt 0 ] || fail "leader after $old was killed: $new"
eq "records" "one two" "$(kcat -b 127.0.0.1:909$other -C -t r -e -q | xargs)"

broker_start "$old" --override min.insync.replicas=2 --override replica.lag.time.max.ms=2000
wait_says "in sync again" "1,2,3" "in_sync $other"
broker_stop "$new"
next=$((new % 3 + 1))
put three $next
eq "records after the hand-over" "one two three" "$(kcat -b 127.0.0.1:909$next -C -t r -e -q | xargs)"
eq "hand-over is told" 1 "$(grep -c 'r-0: broker [0-9] leads' "$T/klogd$new.log" | awk '{ print ($1 > 0) }')"
broker_start "$new"
wait_says "in sync at the end" "1,2,3" "in_sync $next"
for n in 1 2 3; do broker_stop $n; done
for f in "$T"/b2/r-0/*.log; do
    same "logs of 1 and 2" "$f" "$T/b1/r-0/${f##*/}"
    same "logs of 3 and 2" "$f" "$T/b3/r-0/${f##*/}"
done
