# SPDX-License-Identifier: Apache-2.0
# Apache Kafka's own tools on three brokers: its verifiable producer and consumer while a leader is killed and another one is stopped, and what
# moves replicas, elects leaders and sets throttles. Its tools read klog's plans, and klog its.
# timeout: 900
requires kcat jq
. "$SRCDIR/tests/compat/lib.sh"
JARS=$BUILDDIR/tests/clients/maven/jars
[ -d "$JARS" ] || skip "Kafka's tools are not there (Maven not reached)"
. "$TESTLIB/cluster.sh"
zookeeper_start
# shellcheck source=tests/compat/tool_scenarios.sh
eval "$(sed -n 's/timeout 120/timeout 500/; /^tools=/p; /^ARCHIVE=/p; /^tool()/,/^}/p' "$SRCDIR/tests/compat/tool_scenarios.sh")"
all=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093
export KLOG_BROKERS=$all
racks=(- A B C)
start() {
    broker_start "$1" --override broker.rack="${racks[$1]}" --override replica.lag.time.max.ms=2000 --override offsets.topic.num.partitions=3 \
        --override group.initial.rebalance.delay.ms=0 --override auto.leader.rebalance.enable=false --override zookeeper.session.timeout.ms=2000
}
for n in 1 2 3; do start $n; done
wait_says "brokers" 3 "brokers_of 1 | wc -w"
leader() { partitions_of "$1" v | sed -n "s/^$2 leader \([-0-9]*\) .*/\1/p"; }
in_sync() { [ "$(klog topic describe v --json | jq -c '.isr | sort' | sort -u)" = '[1,2,3]' ]; }
results_begin kafka-cluster "Apache Kafka's tools on three brokers 4.4"

# ---- topics ----
tool TopicCommand --bootstrap-server $all --create --topic v --partitions 2 --replication-factor 3 --config min.insync.replicas=2 >said ||
    fail "kafka-topics: $(cat said)"
tool TopicCommand --bootstrap-server $all --describe --topic v >said
eq "replicas of each partition" "3 3" "$(sed -n 's/.*Replicas: \([0-9,]*\).*/\1/p' said | awk -F, '{ print NF }' | xargs)"
wait_for 20 "in sync" in_sync
tool TopicCommand --bootstrap-server $all --describe --under-replicated-partitions >said
eq "under-replicated" "" "$(grep 'Topic: v' said)"
result kafka-topics yes

# ---- the verifiable producer and consumer, a leader killed, another stopped ----
N=4000
printf '%s\n' retries=2147483647 enable.idempotence=true >again.properties # by itself it sends nothing again
config=$(tool VerifiableProducer --help | grep -oE -- '--(command-config|producer.config)' | head -n1)
tool VerifiableConsumer --bootstrap-server $all --topic v --group-id g --reset-policy earliest --max-messages $N --verbose >consumed 2>&1 19>&- &
consumer=$!
tool VerifiableProducer --bootstrap-server $all --topic v --max-messages $N --throughput 200 --acks -1 "$config" again.properties >produced 2>&1 19>&- &
producer=$!
sent() { [ "$(grep -c producer_send_success produced)" -ge "$1" ]; }
wait_for 60 "it produces" sent 500
l=$(leader 1 0)
broker_kill "$l"
o=$((l % 3 + 1))
wait_for 60 "it goes on after kill -9" sent 1500
start "$l"
wait_for 60 "in sync" in_sync
broker_stop "$(leader $l 1)"
for n in 1 2 3; do [ -n "${BROKER_PIDS[n]:-}" ] || o=$n; done
wait_for 60 "it goes on after a stop" sent 2500
start "$o"
wait $producer || fail "kafka-verifiable-producer: $(tail -n2 produced)"
wait $consumer || fail "kafka-verifiable-consumer: $(tail -n2 consumed)"
eq "what was acknowledged" "$N $N" "$(jq -R -r 'fromjson? | select(.name == "tool_data") | "\(.sent) \(.acked)"' produced)"
eq "errors of the producer" 0 "$(grep -c producer_send_error produced)"
jq -R -r 'fromjson? | select(.name == "record_data") | .value' consumed | sort -n >got
seq 0 $((N - 1)) | same "what was consumed, once each" - got
result "kafka-verifiable-producer, -consumer, a leader killed, one stopped" yes

# ---- leaders ----
wait_for 60 "in sync" in_sync
tool LeaderElectionCommand --bootstrap-server $all --election-type preferred --all-topic-partitions >said || fail "kafka-leader-election: $(cat said)"
preferred() { klog topic describe v --json | jq -s 'map(select(.leader == .replicas[0])) | length'; }
wait_says "preferred leaders" 2 preferred
tool LeaderElectionCommand --bootstrap-server $all --election-type preferred --topic v --partition 0 >said 2>&1
has "one that needs none" 'Valid replica already elected for partitions v-0' "$(cat said)"
result kafka-leader-election yes

# ---- replicas ----
tool TopicCommand --bootstrap-server $all --create --topic w --replica-assignment 1:2,1:2 >said || fail "kafka-topics: $(cat said)"
for p in 0 1; do yes "$(printf '%01000d' 0)" | head -n 2000 | kcat -b $all -P -t w -p $p -X acks=all || fail "nothing is taken"; done
reassign() { tool reassign.ReassignPartitionsCommand --bootstrap-server $all "$@" >said 2>&1 || fail "kafka-reassign-partitions $*: $(cat said)"; }
echo '{"version":1,"topics":[{"topic":"w"}]}' >topics.json
reassign --generate --topics-to-move-json-file topics.json --broker-list 2,3
sed -n '/^Proposed/,$p' said | grep '^{' >theirs.json
eq "its proposal" "2,3 2,3" "$(jq -r '.partitions[].replicas | sort | map(tostring) | join(",")' theirs.json | xargs)"
reassign --execute --reassignment-json-file theirs.json --throttle 400000
has "it has begun" 'Successfully started partition reassignments for w-0,w-1' "$(cat said)"
eq "the rate" 400000 "$(klog config get broker 3 --json | jq -r 'select(.key == "follower.replication.throttled.rate").value')"
reassign --list
has "what is going on" 'w-[01]: replicas: .* adding: 3' "$(cat said)"
done_of() {
    tool reassign.ReassignPartitionsCommand --bootstrap-server $all --verify --reassignment-json-file "$1" >said 2>&1
    [ "$(grep -c 'Reassignment of partition w-[01] is completed' said)" = 2 ]
}
wait_for 60 "it is done" done_of theirs.json
eq "no rate is left" 9223372036854775807 "$(klog config get broker 3 --json | jq -r 'select(.key == "follower.replication.throttled.rate").value')"
eq "no list is left" "" "$(klog config get topic w --json | jq -r 'select(.key == "follower.replication.throttled.replicas").value')"
klog reassign plan --drain 3 --topic w >ours.json 2>/dev/null || fail "klog reassign plan"
reassign --execute --reassignment-json-file ours.json
wait_for 60 "klog's plan is done" done_of ours.json
eq "nothing at 3" "" "$(klog topic describe w --json | jq 'select(.replicas | index(3))')"
status 0 klog reassign run theirs.json
wait_for 60 "klog has done its plan" done_of theirs.json
kill -STOP "${BROKER_PIDS[1]}"
echo '{"version":1,"partitions":[{"topic":"w","partition":0,"replicas":[1,2]}]}' >stuck.json
KLOG_BROKERS=127.0.0.1:9092,127.0.0.1:9093 all=127.0.0.1:9092,127.0.0.1:9093
before=$(klog topic describe w --json | jq -c 'select(.partition == 0).replicas')
klog reassign run stuck.json --no-wait >said 2>&1
reassign --cancel --reassignment-json-file theirs.json
kill -CONT "${BROKER_PIDS[1]}"
now() { klog topic describe w --json | jq -c 'select(.partition == 0).replicas'; }
wait_says "the replicas before" "$before" now
result kafka-reassign-partitions yes

# ---- settings ----
tool ConfigCommand --bootstrap-server $all --entity-type brokers --entity-name 2 --alter --add-config leader.replication.throttled.rate=5000 >said ||
    fail "kafka-configs: $(cat said)"
tool ConfigCommand --bootstrap-server $all --entity-type brokers --entity-name 2 --describe >said
has "the setting" 'leader.replication.throttled.rate=5000' "$(cat said)"
tool ConfigCommand --bootstrap-server $all --entity-type topics --entity-name w --alter --add-config unclean.leader.election.enable=true >said ||
    fail "kafka-configs: $(cat said)"
tool ConfigCommand --bootstrap-server $all --entity-type topics --entity-name w --describe >said
has "the setting" 'unclean.leader.election.enable=true' "$(cat said)"
result kafka-configs yes
results_end
