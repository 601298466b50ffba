# SPDX-License-Identifier: Apache-2.0
# A partition gets other replicas while it is written to: the new ones copy it, the old ones let go of it, and a replica that waits
# for a dead broker can be taken back. The preferred leader leads again when it is asked for; without any member in sync that is
# there, an unclean election makes another one lead.
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
more=(--override replica.lag.time.max.ms=1500)
for n in 1 2 3; do broker_start $n "${more[@]}"; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
replicas() { BROKER=127.0.0.1:909$1 "$PY" "$TESTLIB/replicas.py" "${@:2}"; }
all=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093
put() { echo "$1" | kcat -b $all -P -t t -p 0 -X acks=all -X message.timeout.ms=20000 || fail "$1 was not taken"; }
got() { kcat -b $all -C -t t -e -q | xargs; }

status 0 klog topic create t -p 1 -r 1 -b 127.0.0.1:9091
put a
from=$(partitions_of 1 t | sed 's/.*replicas \([0-9]*\) .*/\1/')
x=$((from % 3 + 1)) y=$((x % 3 + 1))
sorted=$(printf '%s\n' $x $y | sort | xargs | tr ' ' ,)

eq "a broker that is not there" 39 "$(replicas 1 reassign t 0 $x,9)"
eq "one named twice" 39 "$(replicas 1 reassign t 0 $x,$x)"
eq "no such partition" 3 "$(replicas 1 reassign t 7 $x)"
eq "nothing to take back" 85 "$(replicas 1 cancel t 0)"
eq "other replicas" ok "$(replicas 1 reassign t 0 $x,$y)"
put b
for n in 1 2 3; do wait_says "the new replicas, by $n" "0 leader $x replicas $x,$y isrs $sorted" "partitions_of $n t"; done
gone_from() { (cd "$T/b$1" && echo t-*); }
wait_says "directories of the one before" "t-*" "gone_from $from"
eq "nothing is going on" "" "$(replicas 1 list)"
eq "records" "a b" "$(got)"

broker_kill "$from"
wait_says "brokers that are left" 2 "brokers_of $x | wc -w"
eq "one that is dead" 39 "$(replicas $x reassign t 0 $x,$from)"
broker_start "$from" "${more[@]}"
wait_says "all brokers" 3 "brokers_of $x | wc -w"
kill -STOP "${BROKER_PIDS[$from]}"
eq "one that does not move" ok "$(replicas $x reassign t 0 $x,$from)"
wait_says "what is going on" "t-0 $x,$from,$y adding $from removing $y" "replicas $x list"
eq "taken back" ok "$(replicas $y cancel t 0)"
wait_says "the replicas before" "0 leader $x replicas $x,$y isrs $sorted" "partitions_of $x t"
kill -CONT "${BROKER_PIDS[$from]}"
wait_says "all brokers" 3 "brokers_of $x | wc -w"

eq "the preferred one leads" 84 "$(replicas $x elect t 0)"
broker_stop "$x"
put c
wait_says "the other one leads" "0 leader $y replicas $x,$y isrs $y" "partitions_of $y t"
broker_start "$x" "${more[@]}"
wait_says "in sync again" "0 leader $y replicas $x,$y isrs $sorted" "partitions_of $y t"
eq "an election" ok "$(replicas $from elect t 0)"
wait_says "the preferred one leads again" "0 leader $x replicas $x,$y isrs $sorted" "partitions_of $y t"
eq "records" "a b c" "$(got)"

broker_kill "$y"
wait_says "in sync without it" "0 leader $x replicas $x,$y isrs $x" "partitions_of $x t"
broker_kill "$x"
broker_start "$y" "${more[@]}"
wait_says "no leader" "0 leader -1 replicas $x,$y isrs " "partitions_of $y t"
eq "a clean election" 80 "$(replicas $y elect t 0)"
eq "an unclean one" ok "$(replicas $y elect t 0 unclean)"
wait_says "a leader" "0 leader $y replicas $x,$y isrs $y" "partitions_of $y t"
eq "records" "a b c" "$(got)"
broker_start "$x" "${more[@]}"
wait_says "both" "0 leader $y replicas $x,$y isrs $sorted" "partitions_of $y t"
