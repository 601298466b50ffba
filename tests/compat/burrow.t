# SPDX-License-Identifier: Apache-2.0
# Burrow reads the positions of groups out of __consumer_offsets itself, in Kafka's formats, and asks for ends with ListOffsets 0.
# timeout: 90
requires Burrow kcat curl jq java
[ -e /usr/share/java/zookeeper.jar ] || skip "needs libzookeeper-java: Burrow does not start without a ZooKeeper"
requires_python kafka
klogd_start --override group.initial.rebalance.delay.ms=0 --override offsets.topic.num.partitions=3
topic orders 2
"$PY" -c "from kgroup import GroupConn; raise SystemExit(GroupConn('$B').coordinator('any'))" || fail "the offsets topic" # Burrow ends without it
seq 1 100 | $K -P -t orders -p 0 || fail "produce"
seq 1 40 | $K -P -t orders -p 1 || fail "produce"
mkdir -p run zk
printf 'tickTime=2000\ndataDir=%s\nclientPort=2181\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n' "$PWD/zk" >zoo.cfg
java -cp /usr/share/java/zookeeper.jar -Xmx64m -XX:+UseSerialGC -Dzookeeper.jmx.log4j.disable=true \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$PWD/zoo.cfg" >zookeeper.out 2>&1 & zookeeper=$!
zookeeper_serves() { echo srvr | nc -w 2 127.0.0.1 2181 | grep -q ^Mode; }
wait_for 40 "ZooKeeper serves" zookeeper_serves
cat >burrow.toml <<X
[general]
pidfile="$PWD/run/burrow.pid"
[logging]
filename="$PWD/burrow.log"
level="debug"
[zookeeper]
servers=["127.0.0.1:2181"]
timeout=6
root-path="/burrow"
[client-profile.k]
client-id="burrow"
kafka-version="2.0.0"
[cluster.local]
class-name="kafka"
servers=["$B"]
client-profile="k"
topic-refresh=2
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
servers=["$B"]
client-profile="k"
offsets-topic="__consumer_offsets"
start-latest=false
[httpserver.default]
address="127.0.0.1:8000"
[storage.default]
class-name="inmemory"
workers=2
intervals=10
min-distance=0
[evaluator.default]
class-name="caching"
expire-cache=1
X
Burrow --config-dir "$PWD" >burrow.out 2>&1 & pid=$!
get() { curl -s "http://127.0.0.1:8000/v3/kafka/local/$1"; }
wait_for 20 "Burrow answers" eval '[ "$(get topic | jq -r .error)" = false ]'
"$PY" - <<'X' || fail "commit"
from kafka import KafkaConsumer, TopicPartition, OffsetAndMetadata
c = KafkaConsumer(bootstrap_servers="127.0.0.1:9092", group_id="billing", enable_auto_commit=False)
tps = [TopicPartition("orders", p) for p in (0, 1)]
c.assign(tps)
for at in (10, 20, 30):
    c.commit({tps[0]: OffsetAndMetadata(at, "note %d" % at), tps[1]: OffsetAndMetadata(at, "")})
c.close()
X
has_group() { [ "$(get "consumer/$1" | jq -r .error)" = false ]; }
wait_for 20 "Burrow knows the group" has_group billing
offsets() { get "consumer/$1" | jq -c '[.topics.orders[].offsets | map(select(. != null)) | map([.offset, .lag])]'; }
seen() { [ "$(offsets billing)" = "[[[10,90],[20,80],[30,70]],[[10,30],[20,20],[30,10]]]" ]; }
wait_for 10 "three commits a partition, with their lags" seen
eq "lag" '[80,["orders",0,70]]' "$(get consumer/billing/lag | jq -c '.status | [.totallag, [.maxlag.topic, .maxlag.partition, .maxlag.current_lag]]')"

# A live member. (Burrow 1.2.1 knows the group's own record only as Kafka wrote it before 2.4, so it tells no owner.)
kcat -b $B -q -G live -X auto.offset.reset=earliest -X auto.commit.interval.ms=100 orders >read & member=$!
caught_up() { [ "$(get consumer/live | jq -c '[.topics.orders[]."current-lag"]')" = '[0,0]' ]; }
wait_for 20 "the member has read both partitions" caught_up
kill $member
wait $member
eq "groups" '["billing","live"]' "$(get consumer | jq -c '.consumers | sort')"
kill $pid $zookeeper
wait_for 10 "Burrow and ZooKeeper end" eval "gone $pid && gone $zookeeper"
