# SPDX-License-Identifier: Apache-2.0
# timeout: 90
# A position that was acknowledged is there after kill -9, with its metadata; one that was deleted stays deleted; and a group's
# members go on in the same generation when their broker comes back.
requires_python confluent_kafka
klogd_start --override group.initial.rebalance.delay.ms=0
topic t 2
seq 1 100 | produce -t t -p 0
group() { "$PY" "$TESTLIB/group.py" "$@"; }
kcat -b $B -G unused -e t >/dev/null 2>&1 # makes __consumer_offsets
for i in 1 2 3 4 5; do
    eq "commit" NONE "$(group commit tool t 0 $((i * 10)))"
    klogd_kill
    klogd_restart
    wait_for 10 "groups are loaded" eval '[ "$(group state tool)" = Empty ]'
    eq "position after kill -9" $((i * 10)) "$(group position tool t 0)"
done
eq "position of the other partition" -1 "$(group position tool t 1)"

SESSION_MS=40000 "$PY" "$TESTLIB/group_member.py" confluent alive t >got 2>said &
member=$!
cleanup_fn 'kill -9 $member 2>/dev/null'
wait_lines got 100 30
wait_for 10 "the commit" eval '[ "$(group position alive t 0)" = 100 ]'
for i in 1 2 3; do
    klogd_kill
    klogd_restart
    seq $((100 * i + 1)) $((100 * i + 100)) | produce -t t -p 0
    wait_lines got $((100 * i + 100)) 30
done
wait_for 10 "the last commit" eval '[ "$(group position alive t 0)" = 400 ]'
eq "state" Stable "$(group state alive)"
eq "rebalances" 1 "$(grep -c rebalanced said)"
cut -d' ' -f3 got | sort -nu | cmp - <(seq 1 400) || fail "records"
kill $member
wait_gone $member 20
"$PY" -c "
from kgroup import GroupConn, error
c = GroupConn()
print(*(error(e) for e in c.delete_groups('tool', 'alive', 'unused').values()))" | {
    read -r line
    eq "deletion" "NONE NONE NONE" "$line"
}
klogd_kill
klogd_restart
wait_for 10 "groups are loaded" eval '[ "$(group state tool)" = Dead ]'
eq "state after deletion and kill -9" Dead "$(group state alive)"
eq "position after deletion and kill -9" -1 "$(group position tool t 0)"
