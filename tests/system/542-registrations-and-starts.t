# SPDX-License-Identifier: Apache-2.0
# A broker's registration in the hands of others. It is taken away, overwritten, and its epoch changed: the broker is back each time. A
# second process of the same number is refused while the first lives, with a status of its own; takes its place when the first was away too
# long, and the first ends then with the same status. A klogd that finds no ZooKeeper waits, says so once, can be stopped, and serves when
# there is one.
# timeout: 300
requires kcat jq
. "$TESTLIB/cluster.sh"
zk() { python3 "$TESTLIB/zk.py" "$@" || fail "zk $*"; }
ended() { gone "${BROKER_PIDS[$1]}"; }
# exit_status N STATUS
exit_status() {
    wait_for 20 "broker $1 ends" ended "$1"
    wait "${BROKER_PIDS[$1]}"
    eq "exit status of broker $1" "$2" $?
    unset "BROKER_PIDS[$1]"
}
waits() { grep -q "waiting for it, nothing is served until it does" "$T/klogd$1.log"; }
zookeeper_start
kill -KILL "$ZOOKEEPER_PID"
wait "$ZOOKEEPER_PID" 2>/dev/null
ZOOKEEPER_PID=
for n in 1 2 3; do broker_spawn $n; done
for n in 1 2 3; do wait_for 20 "broker $n waits" waits $n; done
port_open 9091 && fail "it takes connections already"
kill -TERM "${BROKER_PIDS[3]}"
exit_status 3 0
zookeeper_start
for n in 1 2; do wait_for 20 "broker $n listens" port_open 909$n; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 1"
for n in 1 2; do eq "how often it was said" 1 "$(grep -c "waiting for it" "$T/klogd$n.log")"; done
status 0 klog topic create r -p 2 -r 2 -b 127.0.0.1:9091

anew() { grep -c "registered anew" "$T/klogd1.log"; }
zk delete /klog/brokers/ids/1
wait_says "registered again" 1 anew
zk set /klog/brokers/ids/1 rubbish
wait_says "registered again" 2 anew
zk set /klog/klog/broker_epoch/1 "$(python3 "$TESTLIB/zk.py" get /klog/klog/broker_epoch/1)"
wait_says "registered again" 3 anew
wait_says "brokers afterwards" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 2"
led() { [ "$(kcat -b 127.0.0.1:9092 -L -J | jq '[.topics[].partitions[] | select(.leader > 0 and (.isrs | length) == 2)] | length')" = 2 ]; }
wait_for 20 "all is led and in sync" led
for p in 0 1; do echo "x$p" | kcat -b 127.0.0.1:9092 -P -t r -p $p -X acks=all || fail "nothing is taken"; done
eq "what there is" "x0 x1" "$(kcat -b 127.0.0.1:9091 -C -t r -e -q | sort | xargs)"

# broker 3 of this script is another process with the number 1
broker_spawn 3 --override broker.id=1
exit_status 3 5
grep -q "klogd: a broker 1 is there already: give this one another broker.id" "$T/klogd3.log" || fail "not told: $(tail -n1 "$T/klogd3.log")"
rm -rf "$T/b3"
kill -STOP "${BROKER_PIDS[1]}"
broker_start 3 --override broker.id=1
kill -CONT "${BROKER_PIDS[1]}"
exit_status 1 5
grep -q "another broker has registered as 1: this one stops" "$T/klogd1.log" || fail "not told: $(tail -n3 "$T/klogd1.log")"
wait_says "brokers at last" "127.0.0.1:9092 127.0.0.1:9093" "brokers_of 2"
