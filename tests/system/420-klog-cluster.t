# SPDX-License-Identifier: Apache-2.0
# klog cluster: a ZooKeeper and brokers in one directory, started, stopped, killed and looked at; its exit statuses and JSON are for scripts.
# timeout: 300
requires jq java kcat
[ -e /usr/share/java/zookeeper.jar ] || skip "needs libzookeeper-java"
requires_klogd
C=$T/cluster
cleanup_fn '[ ! -d $C ] || klog cluster stop --dir "$C"; cat "$C"/*/*.log >"$T/cluster.log"'
cluster() { klog cluster "$1" --dir "$C" "${@:2}"; }
state() { cluster status --json | jq -r 'select((.broker // 0) == '"$1"').state'; }

status 1 klog cluster status --dir "$C"
has "nothing is there" "there is no cluster in $C" "$OUT"
status 1 klog cluster stop --dir "$C"
status 2 klog cluster start --dir "$C" --brokers 0
status 2 klog cluster start --dir "$C" --rack A,,B
status 2 klog cluster kill --dir "$C"
status 2 klog cluster kill --dir "$C" two
[ ! -e "$C" ] || fail "a wrong call left something"

# Where it is named by a path that is not absolute, with a '/' at its end.
first_start() (cd "$T" && klog cluster start --dir cluster/ --brokers 1 --rack A,B --json >start.json)
wait_for 60 "it is started" first_start # a ZooKeeper on a busy machine may not answer in time
eq "what start shows" 'zookeeper null 127.0.0.1:2181 null serves
klogd 1 127.0.0.1:9092 A serves' "$(jq -r '"\(.process) \(.broker) \(.address) \(.rack) \(.state)"' "$T/start.json")"
status 0 klog cluster status --dir "$C"
has "for people" '^klogd +1 +127.0.0.1:9092 +A +[0-9]+ +serves +0 +0 +0$' "$OUT"
status 0 klog topic create orders -p 2
echo one | produce -t orders -p 0
eq "partitions" "2 2 0" "$(cluster status --json | jq -r 'select(.broker == 1) | "\(.leads) \(.replicas) \(.out_of_sync)"')"
pid=$(cluster status --json | jq 'select(.broker == 1).pid')
zookeeper=$(cluster status --json | jq 'select(.process == "zookeeper").pid')

# start once more changes nothing
echo '# mine' >>"$C/broker-1/klogd.properties"
wait_for 60 "all runs" klog cluster start --dir "$C"
eq "the same processes" "$zookeeper $pid" "$(cluster status --json | jq .pid | paste -sd' ')"
eq "the settings are the user's" '# mine' "$(tail -n1 "$C/broker-1/klogd.properties")"

# kill -9, and back
status 1 klog cluster kill --dir "$C" 7
has "no such broker" "has no broker 7" "$OUT"
status 0 klog cluster kill --dir "$C" 1
gone "$pid" || fail "broker 1 lives"
status 1 klog cluster status --dir "$C"
eq "its state" stopped "$(state 1)"
status 1 klog cluster kill --dir "$C" 1
has "it is dead already" "broker 1 does not run" "$OUT"
wait_for 60 "broker 1 is back" klog cluster start-broker --dir "$C" 1
eq "its state" serves "$(state 1)"
wait_for 60 "broker 1 runs" klog cluster start-broker --dir "$C" 1
eq "what was written" one "$(consume orders)"

# a broker that cannot start is told with its own words
cluster kill 1
sed -i 's/^broker.rack=.*/nosuchkey=1/' "$C/broker-1/klogd.properties"
status 1 klog cluster start-broker --dir "$C" 1
has "why" 'broker 1 did not start: klogd: .*nosuchkey' "$OUT"
sed -i '/nosuchkey/d' "$C/broker-1/klogd.properties"
wait_for 60 "all is back" klog cluster start --dir "$C"

status 0 klog cluster stop --dir "$C"
gone "$zookeeper" || fail "ZooKeeper lives"
eq "processes" "" "$(stray_processes)"
status 0 klog cluster stop --dir "$C"
status 1 klog cluster status --dir "$C"
wait_for 60 "all runs" klog cluster start --dir "$C"
eq "what was written" one "$(consume orders)"
