# SPDX-License-Identifier: Apache-2.0
# mkdir makes a topic, touch of a partition grows it, other mounts see both within a second; nothing else makes anything.
scene
M2=$T/mnt2
mkdir -p "$M2"
cleanup_fn 'umount "$M2" 2>/dev/null; [ -z "${second:-}" ] || wait_gone $second'
klogfs -f $B "$M2" >>"$T/klogfs2.log" 2>&1 19>&- &
second=$!
wait_for 10 "the second mount" grep -q " $M2 " /proc/self/mounts
mkdir "$M/orders" || fail "mkdir"
eq "partitions" p0 "$(ls "$M/orders")"
wait_for 5 "the other mount sees the topic" test -e "$M2/orders/p0"
touch "$M/orders/p5" || fail "touch of p5"
eq "partitions" "p0 p1 p2 p3 p4 p5" "$(ls "$M/orders" | tr '\n' ' ' | sed 's/ $//')"
wait_for 5 "the other mount sees p5" test -e "$M2/orders/p5"
eq "what the broker says" 6 "$("$PY" -c "from kwire import Conn; print(Conn().metadata(['orders'])['orders'][1])")"
echo one >>"$M/orders/p5"
wait_for 5 "the other mount reads it" eval '[ "$(cat "$M2/orders/p5")" = one ]'
eq "other partitions" "" "$(cat "$M/orders/p0" "$M/orders/p4")"
fails 'Operation not permitted' mkdir "$M/orders/sub"
fails 'Operation not permitted|Permission denied' touch "$M/file"
fails 'Operation not permitted' touch "$M/orders/q1"
fails 'Operation not permitted' rmdir "$M/orders"
eq "topics" "orders t1" "$("$PY" "$TESTLIB/topic.py" list | tr '\n' ' ' | sed 's/ $//')"
umount "$M2"
wait_gone $second
second=
