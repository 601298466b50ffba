# SPDX-License-Identifier: Apache-2.0
# Somebody puts nodes of his own among the registrations in ZooKeeper: brokers go on seeing each other come and go, elect leaders,
# start, and say what they passed over.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
[ -r /usr/share/java/commons-cli.jar ] || skip "needs libcommons-cli-java"
zk() {
    java -cp "$ZOOKEEPER_JAR:/usr/share/java/commons-cli.jar:/usr/share/java/slf4j-api.jar" org.apache.zookeeper.ZooKeeperMain \
        -server 127.0.0.1:2181 "$@" >"$T/zk.out" 2>&1 || fail "zk $*: $(tail -n3 "$T/zk.out")"
}
for n in 1 2; do broker_start $n; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 1"
status 0 klog topic create r -p 2 -r 2 -b 127.0.0.1:9091
leaders() { partitions_of "$1" r | awk '{ print $3 }' | sort | xargs; }
wait_says "leaders" "1 2" "leaders 1"
zk create /klog/brokers/ids/guest x
zk create /klog/brokers/ids/77 x
wait_for 20 "broker 1 passes it over" grep -q '/brokers/ids/guest is not the registration' "$T/klogd1.log"
broker_kill 2
wait_says "broker 1 leads all" "1 1" "leaders 1"
broker_start 2
wait_says "both are there" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 2"
echo one | kcat -b 127.0.0.1:9092 -P -t r -p 0 -X acks=all || fail "not written"
