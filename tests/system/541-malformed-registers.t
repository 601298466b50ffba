# SPDX-License-Identifier: Apache-2.0
# Registers that somebody has broken by hand: a broker that starts serves all other topics, says of each in one line what is wrong, and lets
# the logs alone; one that runs goes on as things were. What is put right is served again. Then registers of every kind are set to rubbish
# and back while both run.
# timeout: 300
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
zk() { python3 "$TESTLIB/zk.py" "$@" || fail "zk $*"; }
R=/klog/brokers/topics
for n in 1 2; do broker_start $n; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092" "brokers_of 1"
broken="config huge missing shape state twin1 twin2"
status 0 klog topic create good gone $broken -p 2 -r 2 -b 127.0.0.1:9091 --timeout 60
for t in $broken; do echo "of $t" | kcat -b 127.0.0.1:9091 -P -t "$t" -p 0 -X acks=all || fail "$t takes nothing"; done
all_in_sync() { [ "$(kcat -b 127.0.0.1:9091 -L -J | jq -c '[.topics[] | select(.topic != "gone" and .topic != "missing") | .partitions[].isrs | length] | unique')" = '[2]' ]; }
wait_for 20 "all are in sync" all_in_sync
broker_stop 2

for t in $broken; do zk get $R/$t >"kept.$t"; done
zk get $R/state/partitions/1/state >kept.state.state
zk get /klog/config/topics/config >kept.config.config
zk set $R/shape '{"version":3,'
zk set $R/state/partitions/1/state 'x'
zk set /klog/config/topics/config '{"config":7}'
zk delete $R/missing/partitions/1/state
zk set $R/huge '{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","unfinished":{"from":2000000000,"by":77,"be":1}}'
zk set $R/twin2 "$(cat kept.twin1)"
zk create "$R/no topic" x
python3 "$TESTLIB/zk.py" remove $R/gone || fail "remove"
zk set /klog/config/brokers/2 '{"config":'
broker_start 2
serves() { kcat -b "127.0.0.1:909$1" -L -J | jq -r '[.topics[].topic] | sort | join(" ")'; }
wait_says "what broker 2 serves" "good" "serves 2"
wait_says "what broker 1 serves still" "config gone good huge missing shape state twin1 twin2" "serves 1"
for t in $broken "no topic"; do
    eq "lines about $t" 1 "$(grep -c "ERROR registers: .*; topic $t is not served until" "$T/klogd2.log")"
done
eq "the line about its settings" 1 "$(grep -c 'ERROR register /config/brokers/2 is malformed' "$T/klogd2.log")"
grep -q 'ERROR register /brokers/topics/gone is gone, and no deletion of the topic is noted; the topic stays as it was' "$T/klogd1.log" ||
    fail "broker 1 does not tell of a topic that was taken away"
[ -n "$(cd "$T/b2" && echo gone-0.*-stray/*.log)" ] && [ -d "$T/b2/shape-0" ] && [ -d "$T/b2/state-1" ] && [ -d "$T/b2/twin2-0" ] || fail "a log was put away: $(ls "$T/b2")"
for t in gone $broken; do echo "more" | kcat -b 127.0.0.1:9091 -P -t $t -p 0 -X acks=1 -X message.timeout.ms=10000 || fail "$t on broker 1"; done

# A state that was taken away cannot be put back while brokers run that have seen a later version of it (R15).
broken="config huge shape state twin1 twin2"
for t in $broken; do zk set $R/$t "$(cat "kept.$t")"; done
zk set $R/state/partitions/1/state "$(cat kept.state.state)"
zk set /klog/config/topics/config "$(cat kept.config.config)"
wait_says "what broker 2 serves then" "config good huge shape state twin1 twin2" "serves 2"
wait_for 20 "all are in sync again" all_in_sync
broker_stop 1
reads() { timeout 10 kcat -b 127.0.0.1:9092 -C -t "$1" -p 0 -e -q -o beginning 2>/dev/null | xargs; }
for t in $broken; do wait_says "records of $t on the other replica" "of $t more" "reads $t"; done
broker_start 1
wait_for 20 "all are in sync" all_in_sync

python3 "$TESTLIB/zk.py" fuzz "${SEED:-1}" "${N:-60}" /klog || fail "fuzz"
wait_says "what broker 1 serves at last" "config good huge shape state twin1 twin2" "serves 1"
wait_says "what broker 2 serves at last" "config good huge shape state twin1 twin2" "serves 2"
leads_all() { [ -z "$(kcat -b 127.0.0.1:9091 -L -J | jq '.topics[].partitions[] | select(.leader < 0)')" ]; }
wait_for 30 "everything is led" leads_all
status 0 klog topic create after -r 2 -b 127.0.0.1:9091
echo x | kcat -b 127.0.0.1:9091 -P -t after -X acks=all -X message.timeout.ms=20000 || fail "nothing is taken at last"
