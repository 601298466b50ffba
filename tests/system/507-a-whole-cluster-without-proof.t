# SPDX-License-Identifier: Apache-2.0
# Under flush.policy=async all three brokers are killed at once: none can prove that it has everything. Once all are back, each says how
# long its log is, and the one with the longest leads; while one is missing nobody does.
requires kcat
. "$TESTLIB/cluster.sh"
zookeeper_start
start() { broker_start "$1" --override min.insync.replicas=2; }
for n in 1 2 3; do start $n; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
status 0 klog topic create r -p 1 -r 3 -b 127.0.0.1:9091 --config flush.policy=async
echo one | kcat -b 127.0.0.1:9091 -P -t r -p 0 -X acks=all || fail "the record was not taken"
leader() { partitions_of "$1" r | sed 's/.*leader \(-*[0-9]*\) .*/\1/'; }
[ "$(leader 1)" -gt 0 ] || fail "leader: $(leader 1)"
# in sync all three, so that all three are asked
in_sync() { partitions_of "$1" r | sed 's/.*isrs //'; }
wait_says "in sync" "1,2,3" "in_sync 1"
for n in 1 2 3; do broker_kill $n; done
start 1
start 2
wait_says "brokers without one" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 1"
eq "lost, as far as two can tell" 0 "$(cat "$T"/klogd*.log | grep -c 'records may be lost')"
start 3
wait_for 20 "somebody leads with what it has" grep -qs 'r-0: no replica provably has everything' "$T/klogd1.log" "$T/klogd2.log" "$T/klogd3.log"
wait_says "in sync again" "1,2,3" "in_sync 1"
eq "records" one "$(kcat -b 127.0.0.1:9092 -C -t r -e -q)"
echo two | kcat -b 127.0.0.1:9093 -P -t r -p 0 -X acks=all -X message.timeout.ms=20000 || fail "the second record was not taken"
eq "records in the end" "one two" "$(kcat -b 127.0.0.1:9091 -C -t r -e -q | xargs)"
