# SPDX-License-Identifier: Apache-2.0
# ZooKeeper does not answer for longer than a session lasts: acks=all goes on with the in-sync set as it was, and the log says so
# once. When it answers again every session has expired; the brokers register anew, and a topic can be made. So can one that takes
# several multis, which is then deleted.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
for n in 1 2; do broker_start $n --override min.insync.replicas=2; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 1"
status 0 klog topic create r -p 2 -r 2 -b 127.0.0.1:9091
wait_says "partitions" "0 leader 1 replicas 1,2 isrs 1,2
1 leader 2 replicas 2,1 isrs 1,2" "partitions_of 1 r"

said() { grep -c "registers: not reached" "$T/klogd$1.log"; }
kill -STOP "$ZOOKEEPER_PID"
for n in 1 2; do wait_says "that ZooKeeper is away" 1 "said $n"; done
n=0 end=$(($(now_ms) + 1500)) # a session lasts 1000 ms
while [ "$(now_ms)" -lt $end ]; do
    for p in 0 1; do
        echo "away" | kcat -b 127.0.0.1:9091 -P -t r -p $p -X acks=all -X message.timeout.ms=10000 || fail "nothing is taken while ZooKeeper is away"
        n=$((n + 1))
    done
done
eq "how much was taken" $n "$(kcat -b 127.0.0.1:9092 -C -t r -e -q | grep -c away)"
kill -CONT "$ZOOKEEPER_PID"
anew() { grep -c "registered anew" "$T/klogd$1.log"; }
for b in 1 2; do
    wait_says "registered anew" 1 "anew $b"
    eq "how often it was said" 1 "$(said $b)"
done
for p in 0 1; do
    echo "back$p" | kcat -b 127.0.0.1:9091 -P -t r -p $p -X acks=all -X message.timeout.ms=20000 || fail "nothing is taken afterwards"
done
eq "all of it" $((n + 2)) "$(kcat -b 127.0.0.1:9091 -C -t r -e -q | wc -l)"

wait_says "brokers afterwards" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 1"
many=$(printf 'm%.0s' {1..200}) # a long name makes large changes
count() { partitions_of "$1" "$many" | grep -c "replicas"; }
status 0 klog topic create "$many" -p 400 -r 1 -b 127.0.0.1:9092 --timeout 60
wait_says "partitions of the large one" 400 "count 1"
status 0 klog topic alter "$many" -p 800 -b 127.0.0.1:9091 --timeout 60
wait_says "partitions of the grown one" 800 "count 2"
# A topic more is no reason to read the registers of the others: both read all 800 states once for each that was made.
received() {
    exec 8<>/dev/tcp/127.0.0.1/2181
    printf srvr >&8
    timeout 2 cat <&8 | sed -n 's/^Received: //p'
    exec 8>&-
}
tries=0
few_requests() { # what the large one still has to do passes
    local before
    tries=$((tries + 1))
    before=$(received)
    klog topic create "one$tries" -r 2 -b 127.0.0.1:9091 && [ $(($(received) - before)) -lt 400 ] && klog topic delete "one$tries" -b 127.0.0.1:9091
}
wait_for 20 "a topic is made without reading all others" few_requests
status 0 klog topic delete "$many" -b 127.0.0.1:9091 --timeout 60
eq "topics" r "$(klog topic list -q -b 127.0.0.1:9091 | grep -v "^one")"
left() { (cd "$T/b1" && echo mmm*) && (cd "$T/b2" && echo mmm*); }
wait_says "directories of it" "mmm*
mmm*" left
