# SPDX-License-Identifier: Apache-2.0
# klog group lists, describes, resets and deletes; while a group has members its positions stay as they are.
requires jq kcat
klogd_start --override group.initial.rebalance.delay.ms=0
topic t1 2
topic t2
"$PY" -c "
from kwire import Conn, batch
c = Conn()
for i in range(10):
    assert c.produce('t1', 0, batch([b'x'], ts=1700000000000 + i * 1000)) == (0, i)
for i in range(4):
    assert c.produce('t1', 1, batch([b'x'], ts=1700000000000)) == (0, i)
assert c.produce('t2', 0, batch([b'x'], ts=1700000000000)) == (0, 0)"
rows() { jq -r "[$1] | map(tostring) | join(\" \")"; }
offsets() { klog group describe "$1" --json 2>/dev/null | rows .topic,.partition,.current_offset,.log_end_offset,.lag; }

eq "no groups" "" "$(klog group list)"
fails "there is no group 'g'" klog group describe g
fails "there is no such group" klog group delete g
status 0 klog group delete g --if-exists
fails "no positions; name a topic" klog group reset g --all-topics --to-latest --execute

# without --execute nothing happens; with it a group comes into being
status 0 klog group reset g -t t1 --to-earliest
has "what would be done" '^g +t1 +0 +0$' "$OUT"
has "that nothing was done" 'nothing was changed; --execute does it' "$OUT"
eq "still no group" "" "$(klog group list)"
status 0 klog group reset g -t t1 -t t2 --to-latest --execute
eq "at the ends" 't1 0 10 10 0
t1 1 4 4 0
t2 0 1 1 0' "$(offsets g)"
eq "the list" g "$(klog group list)"
eq "the list with states" 'g Empty' "$(klog group list --state --json | rows .group,.state)"

# every goal
reset() { klog group reset g --json --execute "$@" 2>"$T/said" | rows .topic,.partition,.current_offset,.new_offset; }
eq "back by three" 't1 0 10 7' "$(reset -t t1:0 --shift-by -3)"
eq "on by two" 't1 0 7 9
t1 1 4 4
t2 0 1 1' "$(reset --all-topics --shift-by 2)"
has "what lies outside" 't1 partition 1: offset 6 is outside of the log; 4 is taken' "$(cat "$T/said")"
eq "an offset" 't1 0 9 3
t1 1 4 3' "$(reset -t t1:0,1 --to-offset 3)"
eq "an offset that is not there" 't2 0 1 1' "$(reset -t t2 --to-offset 50)"
eq "a time" 't1 0 3 5
t1 1 3 4' "$(reset -t t1 --to-datetime 2023-11-14T22:13:25Z)"
eq "a duration" 't1 0 5 10' "$(reset -t t1:0 --by-duration PT1H)"
eq "the start" 't2 0 1 0' "$(reset -t t2 --to-earliest)"
eq "here" 't2 0 0 0' "$(reset -t t2 --to-current)"
eq "all of it" 't1 0 10 10 0
t1 1 4 4 0
t2 0 0 1 1' "$(offsets g)"
fails 'topic t1 has no partition 7' klog group reset g -t t1:0,7 --to-offset 0 --execute
fails 'nosuch: there is no such topic' klog group reset g -t nosuch --to-offset 0 --execute
fails 't2 partition 0: the group has no position there' klog group reset new -t t2 --shift-by 1 --execute

# a member reads
kcat -b $B -q -u -G g -X auto.offset.reset=earliest t2 >"$T/got" 2>/dev/null 19>&- &
reader=$!
wait_lines "$T/got" 1
has "columns" '^GROUP +TOPIC +PARTITION +CURRENT-OFFSET +LOG-END-OFFSET +LAG +CONSUMER-ID +HOST +CLIENT-ID$' "$(klog group describe g)"
eq "the reader's partition" 't2 0 true rdkafka' "$(klog group describe g --json | jq -c 'select(.topic == "t2")' | rows '.topic,.partition,(.consumer_id | startswith("rdkafka-")),.client_id')"
eq "members" 'rdkafka 1 t2:0' "$(klog group describe g --members --json | rows .client_id,.partitions,.assignment)"
eq "state" 'g 127.0.0.1:9092 (1) range Stable 1' "$(klog group describe g --state --json | rows .group,.coordinator,.assignment_strategy,.state,.members)"
has "columns of state" '^GROUP +COORDINATOR \(ID\) +ASSIGNMENT-STRATEGY +STATE +#MEMBERS$' "$(klog group describe g --state)"
has "columns of members" '^GROUP +CONSUMER-ID +HOST +CLIENT-ID +#PARTITIONS$' "$(klog group describe g --members)"
before=$(offsets g | grep ^t1)
fails 'group g has 1 members \(its state is Stable\)' klog group reset g --all-topics --to-earliest --execute
fails 'group g has members; stop them first' klog group delete g
eq "positions after refusals" "$before" "$(offsets g | grep ^t1)"
kill $reader
wait $reader
no_members() { klog group describe g 2>&1 >/dev/null | grep -q 'no active members'; }
wait_for 10 "the reader has left" no_members
eq "the reader's last word" 't2 0 1 1 0' "$(offsets g | grep ^t2)"

klogd_kill
klogd_restart
eq "after a crash" 't2 0 1 1 0' "$(offsets g | grep ^t2)"
eq "deleted" 'g deleted' "$(klog group delete g)"
eq "gone" "" "$(klog group list)"
