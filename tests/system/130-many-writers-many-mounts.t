# SPDX-License-Identifier: Apache-2.0
# Twenty writers on two mounts and a Kafka client: every line is there once, whole, and each writer's lines in its order.
# timeout: 120
scene
M2=$T/mnt2
mkdir -p "$M2"
cleanup_fn 'umount "$M2" 2>/dev/null; [ -z "${second:-}" ] || wait_gone $second'
klogfs -f $B "$M2" >>"$T/klogfs2.log" 2>&1 19>&- &
second=$!
wait_for 10 "the second mount" grep -q " $M2 " /proc/self/mounts
writers=()
for i in $(seq 10 29); do
    at=$M
    [ $((i % 2)) = 0 ] || at=$M2
    (for n in $(seq 1 50); do echo "w$i line $n" >>"$at/t1/p0" || exit 1; done) &
    writers+=($!)
done
seq -f 'far %g' 1 1000 | grow &
writers+=($!)
for w in "${writers[@]}"; do
    wait "$w"
    eq "writer" 0 $?
done
wait_for 5 "all lines" eval '[ "$(wc -l <"$P")" = 2000 ]'
eq "distinct lines" 2000 "$(sort -u "$P" | wc -l)"
for i in $(seq 10 29); do
    grep "^w$i " "$P" | cmp - <(seq -f "w$i line %g" 1 50) || fail "order of writer $i"
done
grep '^far' "$P" | cmp - <(seq -f 'far %g' 1 1000) || fail "order of the Kafka client"
same "both mounts" "$P" "$M2/t1/p0"
umount "$M2"
wait_gone $second
second=
