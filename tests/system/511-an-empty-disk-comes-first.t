# SPDX-License-Identifier: Apache-2.0
# All brokers are killed, one comes back with an empty disk, before the others and twice: it leads nothing, nobody is told that it
# does, and nothing that was acknowledged is lost when the others come.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
for n in 1 2 3; do broker_start $n --override min.insync.replicas=2; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
status 0 klog topic create r -p 3 -r 3 -b 127.0.0.1:9091
for p in 0 1 2; do seq 1 100 | kcat -b 127.0.0.1:9091 -P -t r -p $p -X acks=all || fail "partition $p was not written"; done
in_sync="0 1,2,3 1 1,2,3 2 1,2,3"
isrs() { partitions_of "$1" r | awk '{ print $1, $7 }' | xargs; }
leaders() { partitions_of "$1" r | awk '{ print $3 }' | xargs; }
wait_says "in sync" "$in_sync" "isrs 1"

for n in 1 2 3; do broker_kill $n; done
rm -r "$T/b1"
broker_start 1 --override min.insync.replicas=2
owns_up() { [ "$(grep -c 'replica here is damaged' "$T/klogd1.log")" -ge 3 ]; }
wait_for 20 "broker 1 says that it lost its replicas" owns_up
broker_kill 1
broker_start 1 --override min.insync.replicas=2
wait_says "nobody leads" "-1 -1 -1" "leaders 1"
for n in 2 3; do broker_start $n --override min.insync.replicas=2; done
wait_says "in sync again" "$in_sync" "isrs 2"
for p in 0 1 2; do
    eq "records of partition $p" "$(seq 1 100 | xargs)" "$(timeout 20 kcat -b 127.0.0.1:9092 -C -t r -p $p -o beginning -e -q | xargs)"
done
for n in 1 2 3; do broker_stop $n; done
for p in 0 1 2; do
    same "logs of 1 and 2" "$T/b1/r-$p/00000000000000000000.log" "$T/b2/r-$p/00000000000000000000.log"
    same "logs of 3 and 2" "$T/b3/r-$p/00000000000000000000.log" "$T/b2/r-$p/00000000000000000000.log"
done
