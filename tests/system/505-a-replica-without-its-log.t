# SPDX-License-Identifier: Apache-2.0
# A follower loses its log while it counts as in sync, and must go on counting since fewer than min.insync.replicas would be left: the
# register says after its start that it has nothing (R11), so that nobody hands it the partition; then it copies what the others
# have, and counts as complete again.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
for n in 1 2 3; do broker_start $n --override min.insync.replicas=3; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
status 0 klog topic create r -p 1 -r 3 -b 127.0.0.1:9091
leader() { partitions_of 1 r | sed 's/.*leader \([0-9]*\) .*/\1/'; }
echo one | kcat -b 127.0.0.1:9091 -P -t r -p 0 -X acks=all || fail "the record was not taken"
l=$(leader)
f=$((l % 3 + 1))
other=$((f % 3 + 1))
broker_stop $f
rm -r "$T/b$f/r-0"
broker_kill $other # so that the follower without its log is the only one that could be handed the partition
broker_start $f --override min.insync.replicas=3
has "what is missing is told" "none of the log directories" "$(cat "$T/klogd$f.log")"
wait_for 20 "it copies the record" test -s "$T/b$f/r-0/00000000000000000000.log"
broker_stop "$l"
eq "to whom it was handed" 0 "$(grep -c "r-0: broker $f leads" "$T/klogd$l.log")"
broker_start "$l" --override min.insync.replicas=3
broker_start $other --override min.insync.replicas=3
echo two | kcat -b "127.0.0.1:909$l" -P -t r -p 0 -X acks=all -X message.timeout.ms=30000 || fail "the second record was not taken"
eq "records" "one two" "$(kcat -b "127.0.0.1:909$f" -C -t r -e -q | xargs)"
for n in 1 2 3; do broker_stop $n; done
for n in 2 3; do same "logs of 1 and $n" "$T/b1/r-0/00000000000000000000.log" "$T/b$n/r-0/00000000000000000000.log"; done
