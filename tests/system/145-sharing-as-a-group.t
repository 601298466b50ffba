# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# as/G/all and as/G/follow/all are members: partitions are shared with other shells and Kafka's clients, every record is processed, close leaves.
requires kcat
requires_python kafka
klogd_start --override group.initial.rebalance.delay.ms=0
topic t4 4
mount_start
A=$M/t4/as/g
G=$M/t4/.groups/g
fill() { local i; for i in 0 1 2 3; do seq -f "$1-$i-%g" 1 100 >>"$M/t4/p$i"; done; }
fill one
timeout 30 cat "$A/all" >all || fail "cat of all"
eq "every record once" "$(cat "$M"/t4/p* | sort | md5sum)" "$(sort all | md5sum)"
eq "positions" "100 100 100 100" "$(echo $(cat "$G"/p?))"
eq "nothing is left" "" "$(timeout 30 cat "$A/all")"
left() { ! grep -q klogfs "$G/.status"; }
wait_for 10 "close leaves the group" left
echo 7 >"$G/p2" || fail "positions can be moved when all have left"
eq "from there" 93 "$(timeout 30 cat "$A/all" | wc -l)"

# two shells, a kcat and a python3-kafka share what comes
: >s1; : >s2; : >k; : >y
loop='while read -r l; do echo "$l" >>"$2"; done <"$1"'
bash -c "$loop" _ "$A/follow/all" s1 &
S1=$!
bash -c "$loop" _ "$A/follow/all" s2 &
S2=$!
timeout 100 kcat -b $B -q -u -G g t4 >k 2>/dev/null &
KC=$!
timeout 100 "$PY" -u -c "
from kafka import KafkaConsumer
for m in KafkaConsumer('t4', bootstrap_servers='$B', group_id='g'): print(m.value.decode(), flush=True)" >y 2>py.err &
PYC=$!
owners() { [ "$(tail -n +2 "$G/.status" | awk '{ print $5 }' | sort -u | grep -vc '^-$')" = "$1" ]; }
wait_for 40 "four owners" owners 4
fill two
whole() { [ "$(cat s1 s2 k y | grep "^$1" | sort -u | wc -l)" = 400 ]; }
wait_for 30 "everything was processed by somebody" whole two
for f in s1 s2 k y; do grep -q two $f || fail "$f got nothing"; done
kill -9 $S1
wait $S1 2>/dev/null
kill $KC
wait $KC
kill $PYC
wait $PYC 2>/dev/null
wait_for 60 "one owner" owners 1
fill three
wait_for 30 "everything was processed by the last" whole three
kill -9 $S2
wait $S2 2>/dev/null
wait_for 10 "all have left" owners 0

# the mount ends while a member reads: it leaves, and the reader sees the end
bash -c "$loop" _ "$A/follow/all" s1 &
S1=$!
wait_for 20 "it is a member again" owners 1
kill -TERM "$KLOGFS_PID"
wait_gone "$KLOGFS_PID" 20
wait "$KLOGFS_PID"
eq "exit status of klogfs after TERM" 0 $?
KLOGFS_PID=
wait_gone $S1
wait $S1 2>/dev/null
mount_start
eq "nobody is left" "-" "$(tail -n +2 "$G/.status" | awk '{ print $5 }' | sort -u)"
