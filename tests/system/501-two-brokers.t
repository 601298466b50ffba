# SPDX-License-Identifier: Apache-2.0
# Two brokers on one ZooKeeper: topics spread over both, either tells of all, and each serves what it leads. The topics are there
# when both have been started anew; a broker of a number that is in use is refused; one topic is deleted while a broker is down.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
broker_start 1 --override advertised.listeners=PLAINTEXT://localhost:9091
broker_start 2
for n in 1 2; do
    wait_says "brokers that $n knows" "127.0.0.1:9092 localhost:9091" "brokers_of $n"
done

status 0 klog topic create a -p 4 -r 1 -b 127.0.0.1:9091
status 0 klog topic create gone -p 2 -r 1 -b 127.0.0.1:9092
want="0 leader 2 replicas 2 isrs 2
1 leader 1 replicas 1 isrs 1
2 leader 2 replicas 2 isrs 2
3 leader 1 replicas 1 isrs 1"
wait_says "partitions that 1 tells" "$want" "partitions_of 1 a"
wait_says "partitions that 2 tells" "$want" "partitions_of 2 a"
eq "directories of 1" "a-1 a-3" "$(cd "$T/b1" && echo a-*)"
eq "directories of 2" "a-0 a-2" "$(cd "$T/b2" && echo a-*)"

for p in 0 1 2 3; do
    echo "v$p" | kcat -b "127.0.0.1:909$((p / 2 + 1))" -P -t a -p $p || fail "partition $p does not take records"
done
eq "what 1 leads to" "v0 v1 v2 v3" "$(kcat -b 127.0.0.1:9091 -C -t a -e -q | sort | xargs)"
eq "what 2 leads to" "v0 v1 v2 v3" "$(kcat -b 127.0.0.1:9092 -C -t a -e -q | sort | xargs)"

# the number 1 is in use
klogd --override broker.id=1 --override listeners=PLAINTEXT://127.0.0.1:9099 --override log.dirs="$T/b9" \
    --override zookeeper.connect=127.0.0.1:2181/klog --override zookeeper.session.timeout.ms=400 >"$T/other.out" 2>&1
eq "exit status of a second broker 1" 5 $?
has "the reason" 'a broker 1 is there already' "$(cat "$T/other.out")"

# a broker that was alone does not bring its topics along
klogd --override listeners=PLAINTEXT://127.0.0.1:9099 --override log.dirs="$D" >"$T/alone.log" 2>&1 19>&- &
alone=$!
wait_for 10 "the broker alone listens" port_open 9099
kill -TERM $alone
wait $alone
klogd --override broker.id=3 --override listeners=PLAINTEXT://127.0.0.1:9099 --override log.dirs="$D" \
    --override zookeeper.connect=127.0.0.1:2181/klog >"$T/other.out" 2>&1
eq "exit status with other registers" 2 $?
has "the reason" 'registers.journal|belongs to cluster' "$(cat "$T/other.out")"
eq "the registers stay" 1 "$(find "$D" -name registers.journal | wc -l)"

broker_kill 2
wait_says "brokers that are left" "localhost:9091" "brokers_of 1"
status 0 klog topic delete gone -b 127.0.0.1:9091
eq "partitions of it that 2 still has" 1 "$(cd "$T/b2" && echo gone-* | wc -w)"
broker_start 2
wait_says "partitions after the restart" "$want" "partitions_of 2 a"
eq "what 2 had" "v0 v1 v2 v3" "$(kcat -b 127.0.0.1:9092 -C -t a -e -q | sort | xargs)"
eq "what is left of the deleted one" "gone-*" "$(cd "$T/b2" && echo gone-*)"
status 0 klog topic create gone -p 2 -r 1 -b 127.0.0.1:9092
echo new | kcat -b 127.0.0.1:9092 -P -t gone -p 0 -X acks=all || fail "the topic made anew does not take records"
eq "the topic made anew" new "$(kcat -b 127.0.0.1:9091 -C -t gone -p 0 -e -q)"
