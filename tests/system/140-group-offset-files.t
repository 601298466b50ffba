# SPDX-License-Identifier: Apache-2.0
# .groups/G/pN is the committed offset: read, written in every form, made and deleted; the same number that Kafka's clients see.
klogd_start
topic t1 2
mount_start
G=$M/t1/.groups
sees() { # sees PARTITION: the position that a Kafka client sees
    "$PY" -c "
import sys
from kafka import KafkaConsumer, TopicPartition
c = KafkaConsumer(bootstrap_servers='$B', group_id='billing', enable_auto_commit=False)
print(c.committed(TopicPartition('t1', $1)))
c.close()"
}
requires_python kafka
requires getfattr
seq 1 1000 >>"$P"
eq "no groups yet" "" "$(ls -A "$G")"
eq "a group that is not there" 1 "$(cat "$G/billing/p0" >/dev/null 2>&1; echo $?)"
fails 'No such file' cat "$G/billing/p0"
[ ! -e "$G/billing" ] || fail "looking must not make a group"

# mkdir: at the start
mkdir "$G/billing" || fail "mkdir of a group"
eq "the group" billing "$(ls -A "$G")"
eq "its files" ".status p0 p1" "$(echo $(ls -A "$G/billing"))"
eq "its position" 0 "$(cat "$G/billing/p0")"
eq "bytes of a position" '0000000 0 \n' "$(od -A d -c "$G/billing/p1" | head -n1 | tr -s ' ')"
eq "seen by Kafka's client" 0 "$(sees 0)"
fails 'File exists' mkdir "$G/billing"
fails 'Invalid argument' mkdir "$G/bad name"
fails 'Operation not permitted' mkdir "$G/billing/p7x"

# every form of a start
put() { echo "$1" >"$G/billing/p0" || fail "writing $1"; eq "after $1" "$2" "$(cat "$G/billing/p0")"; }
put 0 0
put 417 417
eq "size" 4 "$(stat -c %s "$G/billing/p0")"
eq "seen by Kafka's client" 417 "$(sees 0)"
put end 1000
put start 0
put -100 900
put -5000 0
put +10 10
put +5000 1000
put @0 0
put @-1h 0
put @2100-01-01 1000
put "@$(($(date +%s) + 86400))" 1000
printf 33 >"$G/billing/p0" || fail "without a newline"
eq "without a newline" 33 "$(cat "$G/billing/p0")"
echo 34 >>"$G/billing/p0" || fail "with O_APPEND"
eq "with O_APPEND" 34 "$(cat "$G/billing/p0")"
for bad in x -x 1:2 :5 5: '' ' ' 1.5 0x10 '1 2' 99999999999999999999 @ @x start5; do
    fails 'Invalid argument' bash -c 'echo "$1" >"$2"' _ "$bad" "$G/billing/p0"
done
eq "after refused writes" 34 "$(cat "$G/billing/p0")"

# what Kafka's clients commit shows, with its time and lag
touch -d '2020-01-01' "$G/billing/p0" 2>/dev/null && fail "a time of one's own"
before=$(date +%s)
put 40 40
between "mtime" "$before" "$(date +%s)" "$(stat -c %Y "$G/billing/p0")"
"$PY" -c "
from kafka import KafkaConsumer, TopicPartition, OffsetAndMetadata
c = KafkaConsumer(bootstrap_servers='$B', group_id='billing', enable_auto_commit=False)
p = TopicPartition('t1', 0)
c.assign([p])
try: o = OffsetAndMetadata(123, '')
except TypeError: o = OffsetAndMetadata(123, '', -1)
c.commit({p: o})
c.close()" || fail "a commit of Kafka's client"
eq "what it committed" 123 "$(cat "$G/billing/p0")"
eq "lag" 877 "$(getfattr --only-values -n user.klog.lag "$G/billing/p0")"
eq "all attributes" user.klog.lag "$(getfattr "$G/billing/p0" | grep '^user')"
eq ".status" "PARTITION POSITION END LAG MEMBER
0 123 1000 877 -
1 0 0 0 -" "$(tr -s ' ' <"$G/billing/.status")"

# rm, touch, rmdir
rm "$G/billing/p0" || fail "rm of a position"
fails 'No such file' cat "$G/billing/p0"
eq "gone for Kafka's client" None "$(sees 0)"
eq "what is left" ".status p1" "$(echo $(ls -A "$G/billing"))"
echo 5 >"$G/billing/p0" || fail "a position made anew"
eq "made anew" 5 "$(cat "$G/billing/p0")"
fails 'Operation not permitted' bash -c 'echo 5 >"$1"' _ "$G/billing/p9"
fails 'Operation not permitted' bash -c 'echo 5 >"$1"' _ "$G/billing/else"
status 0 rm "$G/billing/.status" # as rm -r does; it goes with the group, and not before
eq "what is left" ".status p0 p1" "$(echo $(ls -A "$G/billing"))"
fails 'Operation not permitted' mv "$G/billing/p0" "$G/billing/p1"
rmdir "$G/billing" || fail "rmdir of a group"
[ ! -e "$G/billing" ] || fail "the group is still there"
eq "no groups" "" "$(ls -A "$G")"
fails 'No such file' rmdir "$G/billing"
eq "the topic is as it was" 1000 "$(wc -l <"$P")"
