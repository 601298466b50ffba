# SPDX-License-Identifier: Apache-2.0
# Positions that came with a retention of their own (OffsetCommit 2 to 4) go when it is over and their group has no member; they stay as
# long as it has one, however idle, and those without one live for offsets.retention.minutes. What a whole minute does to a group is in
# tests/crash/509-positions-expire.t, which is for `make check-long`.
# https://github.com/streamnative/kop/issues/303 https://github.com/confluentinc/librdkafka/issues/1442
requires kcat
# Nothing is looked for until all groups are there, however long that takes here.
settings=(--override offsets.retention.minutes=1 --override group.initial.rebalance.delay.ms=0)
klogd_start "${settings[@]}"
topic t1
mount_start
G=$M/t1/.groups
seq 10 | grow
group() { "$PY" "$TESTLIB/group.py" "$@"; }
commit_for() { # commit_for GROUP MS: position 10, for so long
    "$PY" -c "
from kgroup import GroupConn
from kwire import array, i32, i64, string
c = GroupConn()
assert c.coordinator('$1') == 0
r = c.ask(8, 2, string('$1') + i32(-1) + string('') + i64($2) + array([string('t1') + array([i32(0) + i64(10) + string('')])]))
assert r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i16())))) == [('t1', [(0, 0)])]" || fail "commit of $1"
}
timeout 20 kcat -b $B -q -G gone -X auto.offset.reset=earliest -e t1 >read
eq "records of the group that left" 10 "$(wc -l <read)"
eq "as/ in a group of its own" 10 "$(wc -l <"$M/t1/as/shell/p0")"
eq "state of its group, where as/ is no member" Empty "$(group state shell)"
left=$(now_ms)
for g in gone shell alive; do commit_for $g 1000; done
commit_for kept -1
kcat -b $B -q -G alive -X auto.offset.reset=earliest t1 >idle.out &
idle=$!
cleanup_fn 'kill $idle 2>/dev/null'
wait_for 20 "the idle member" eval '[ "$(group state alive)" = Stable ]'
past() { [ $(($(now_ms) - left)) -ge 3000 ]; }
wait_for 10 "more than their retention" past
eq "their files" "10 10 10 10" "$(echo $(cat "$G"/{alive,gone,kept,shell}/p0))"
klogd_kill
klogd_start "${settings[@]}" --override offsets.retention.check.interval.ms=100
wait_for 20 "the position of the group that left is gone" eval '[ "$(group position gone t1 0)" = -1 ]'
wait_for 10 "its group is gone" eval '[ "$(group state gone)" = Dead ]'
fails 'No such file' cat "$G/gone/p0"
wait_for 20 "as/ is no member: its position goes, too" eval '[ "$(echo $(ls "$G"))" = "alive kept" ]'
wait_for 20 "the idle member is there" eval '[ "$(group state alive)" = Stable ]'
eq "position of the idle but living group" 10 "$(group position alive t1 0)"
eq "position without a retention of its own" 10 "$(group position kept t1 0)"
eq "their files" "10 10" "$(echo $(cat "$G"/{alive,kept}/p0))"
eq "what the idle member was given" "" "$(cat idle.out)"
klogd_kill
klogd_restart
wait_for 20 "groups are loaded" eval '[ "$(group state alive)" = Stable ]'
eq "position of the living group after a restart" 10 "$(group position alive t1 0)"
eq "position of the group that left, after a restart" -1 "$(group position gone t1 0)"
kill $idle 2>/dev/null
wait_gone $idle
