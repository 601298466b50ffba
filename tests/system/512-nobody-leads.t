# SPDX-License-Identifier: Apache-2.0
# Under flush.policy=async, two brokers are killed and one comes back: it cannot prove that it has everything, so it does not lead, and
# says so to clients although the register still names it. When the other one is there, too, the records are read again.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
for n in 1 2; do broker_start $n --override flush.policy=async; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 1"
status 0 klog topic create r -p 2 -r 2 -b 127.0.0.1:9091
for p in 0 1; do seq 1 100 | kcat -b 127.0.0.1:9091 -P -t r -p $p -X acks=all || fail "partition $p was not written"; done
wait_says "led and in sync" "0 1,2 1 1,2" "partitions_of 1 r | awk '{ print \$1, \$7 }' | xargs"
for n in 1 2; do broker_kill $n; done
broker_start 1 --override flush.policy=async
wait_says "nobody leads" "-1 -1" "partitions_of 1 r | awk '{ print \$3 }' | xargs"
