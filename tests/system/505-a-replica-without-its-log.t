# SPDX-License-Identifier: Apache-2.0
# A follower loses its log while it counts as in sync, and must go on counting since fewer than min.insync.replicas would be left: it
# says so in the register after its start (R11), copies what the others have, and may lead again.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
[ -r /usr/share/java/commons-cli.jar ] || skip "needs libcommons-cli-java"
for n in 1 2 3; do broker_start $n --override min.insync.replicas=3; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
status 0 klog topic create r -p 1 -r 3 -b 127.0.0.1:9091
register() {
    java -cp "$ZOOKEEPER_JAR:/usr/share/java/commons-cli.jar:/usr/share/java/slf4j-api.jar" org.apache.zookeeper.ZooKeeperMain \
        -server 127.0.0.1:2181 get /klog/brokers/topics/r/partitions/0/state 2>/dev/null | grep '^{'
}
may_lead() { [ "$(register | jq -r --argjson n "$1" '.isr_be[.isr | index($n)]')" -gt 0 ]; } # in which broker epoch it had all; 0: it has not
echo one | kcat -b 127.0.0.1:9091 -P -t r -p 0 -X acks=all || fail "the record was not taken"
l=$(register | jq .leader)
f=$((l % 3 + 1))
may_lead $f || fail "broker $f is in sync and may not lead"
broker_stop $f
rm -r "$T/b$f/r-0"
broker_start $f --override min.insync.replicas=3
wait_for 20 "broker $f says that its replica is damaged" grep -q 'r-0: the replica here is damaged' "$T/klogd$f.log"
wait_for 20 "it copies the record" test -s "$T/b$f/r-0/00000000000000000000.log"
wait_for 20 "broker $f may lead again" may_lead $f
eq "members" "1 2 3" "$(register | jq -r '.isr | sort | map(tostring) | join(" ")')"

broker_kill $((f % 3 + 1))
broker_stop "$l"
wait_for 20 "it is handed the partition" grep -q "r-0: broker $f leads" "$T/klogd$l.log"
eq "records" one "$(kcat -b "127.0.0.1:909$f" -C -t r -e -q)"
