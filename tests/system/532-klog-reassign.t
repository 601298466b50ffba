# SPDX-License-Identifier: Apache-2.0
# klog reassign and klog leader elect: a broker comes while others run and gets its share, partitions are moved at a rate that is taken
# away afterwards, a move is taken back, a broker is emptied and goes. Records are the same before and after.
# timeout: 180
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
racks=(- A B A B)
start() { broker_start "$1" --override broker.rack="${racks[$1]}" --override replica.lag.time.max.ms=1500 --override auto.leader.rebalance.enable=false; }
all=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094
export KLOG_BROKERS=$all
for n in 1 2 3; do start $n; done
wait_says "brokers" 3 "brokers_of 1 | wc -w"
status 0 klog topic create t -p 6 -r 2
for p in 0 1 2 3 4 5; do
    yes "$(printf '%0500d' $p)" | head -n 2000 | kcat -b $all -P -t t -p $p -X acks=all || fail "nothing is taken"
done
replicas_of() { klog topic describe "$@" --json | jq -r '.replicas[]' | sort | uniq -c | awk '{ print $2 ":" $1 }' | xargs; }
racks_of() { klog topic describe "$1" --json | jq -c '[.replicas[] | if . % 2 == 1 then "A" else "B" end] | sort' | sort -u; }
bytes() { kcat -b $all -C -t t -p "$1" -o beginning -e -q | md5sum; }
for p in 0 1 2 3 4 5; do bytes $p; done >before
eq "two racks, one of which has one broker" '["A","B"]' "$(racks_of t)"
status 0 klog reassign status
eq "nothing is going on" "" "$OUT"

# ---- what cannot be ----
status 2 klog reassign plan --drain x
status 1 klog reassign plan --add 9
has "who is not there" 'there is no broker 9' "$OUT"
status 1 klog reassign plan --topic t --replication-factor 4
has "too few" 't partition 0: there are too few brokers for its replicas' "$OUT"
bad() { # TEXT PATTERN
    echo "$1" >bad.json
    status 1 klog reassign run bad.json
    has "what is wrong with $1" "$2" "$OUT"
}
bad '{"version":2,"partitions":[]}' 'its version is not 1'
bad '{' 'it is no JSON'
bad '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[]}]}' '1 to 32 brokers'
bad '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["/x"]}]}' 'log_dirs'
bad '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]},{"topic":"t","partition":0,"replicas":[2]}]}' 'twice'
bad '{"version":1,"partitions":[{"topic":"t","partition":9,"replicas":[1]}]}' 'there is no partition 9 of topic t'
bad '{"version":1,"partitions":[{"topic":"none","partition":0,"replicas":[1]}]}' 'there is no partition 0 of topic none'
bad '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,7]}]}' 'names broker 7, which is not there'
eq "nothing has begun" "" "$(klog reassign status)"

# ---- a broker comes, and gets its share ----
start 4
wait_says "brokers" 4 "brokers_of 1 | wc -w"
status 0 klog reassign plan --add 4
klog reassign plan --add 4 >plan.json 2>said || fail "no plan"
has "what it says of the plan" '^klog reassign plan: 3 of 6 partitions change, 3 replicas are copied: 3\.[0-9] MB$' "$(cat said)"
klog reassign run plan.json --throttle 1000000 --json >done.json 2>run.err 19>&- &
run=$!
rate() { klog config get broker "$1" --json | jq -r 'select(.key == "follower.replication.throttled.rate").value'; }
list() { klog config get topic t --json | jq -r 'select(.key == "follower.replication.throttled.replicas").value'; }
wait_says "the rate" 1000000 "rate 4"
wait_says "who keeps to it" "$(jq -r '[.partitions[].partition | "\(.):4"] | join(",")' plan.json)" list
going() { klog reassign status plan.json --json | jq -c .adding | sort -u; }
wait_says "what is going on" "[4]" going
wait $run || fail "run: $(cat run.err)"
eq "all done" "3 true" "$(jq -s -r '"\(length) \(all(.done))"' done.json)"
has "each has its share" ' 2:3 .*4:3' " $(replicas_of t)"
eq "racks" '["A","B"]' "$(racks_of t)"
eq "no rate is left" 9223372036854775807 "$(rate 4)"
eq "no list is left" "" "$(list)"
klog reassign plan --add 4 --topic t 2>said >again
has "and no further plan moves any" ', 0 replicas are copied' "$(cat said)"

# ---- one that does not move is taken back ----
kill -STOP "${BROKER_PIDS[4]}"
klog topic describe t --json | jq -s -c '{version: 1, partitions: [map(select(.replicas | index(4) | not))[0] | {topic, partition, replicas: [.replicas[0], 4]}]}' >stuck.json
p=$(jq '.partitions[0].partition' stuck.json)
was=$(klog topic describe t --json | jq -c "select(.partition == $p).replicas")
status 0 klog reassign run stuck.json --no-wait --timeout 60
eq "what is going on" "[4]" "$(klog reassign status --json --timeout 1 | jq -c .adding)"
kill -CONT "${BROKER_PIDS[4]}"
status 0 klog reassign cancel --timeout 60
now() { klog topic describe t --json | jq -c "select(.partition == $p).replicas"; }
[ "$(now)" = "$was" ] || eq "it was done before it was cancelled" "$(jq -c '.partitions[0].replicas' stuck.json)" "$(now)"

# ---- a broker is emptied ----
klog reassign plan --drain 2 >plan.json 2>/dev/null || fail "no plan"
status 0 klog reassign run - <plan.json
has_not "where replicas are" '2:' "$(replicas_of)"
eq "nothing is going on" "" "$(klog reassign status)"
left() { (cd "$T/b2" && echo t-*); }
wait_says "directories at 2" "t-*" left
broker_stop 2
for p in 0 1 2 3 4 5; do bytes $p; done | same "records" before -

# ---- leaders ----
KLOG_BROKERS=127.0.0.1:9091,127.0.0.1:9093,127.0.0.1:9094
broker_stop 4
start 4
preferred() { klog topic describe t --json | jq -s 'map(select(.leader == .replicas[0])) | length'; }
in_sync() { klog topic describe t --json | jq -s 'map(select((.isr | length) == 2)) | length'; }
wait_says "in sync" 6 in_sync
[ "$(preferred)" -lt 6 ] || fail "broker 4 was no leader"
status 0 klog leader elect
wait_says "preferred leaders" 6 preferred
status 0 klog leader elect t:0,1
status 2 klog leader elect --unclean
status 1 klog leader elect none
status 2 klog leader elect t:x
