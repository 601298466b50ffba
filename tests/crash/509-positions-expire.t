# SPDX-License-Identifier: Apache-2.0
# Positions live for offsets.retention.minutes after their group has lost its last member, and as long as it has one, however idle.
# https://github.com/streamnative/kop/issues/303 https://github.com/confluentinc/librdkafka/issues/1442
# https://github.com/mailgun/kafka-pixy/issues/19 https://github.com/bsm/sarama-cluster/issues/124
# timeout: 240
requires kcat
klogd_start --override offsets.retention.minutes=1 --override offsets.retention.check.interval.ms=1000 \
    --override group.initial.rebalance.delay.ms=0
topic t1
mount_start
G=$M/t1/.groups
seq 10 | grow
group() { "$PY" "$TESTLIB/group.py" "$@"; }
left=$SECONDS
timeout 20 kcat -b $B -q -G gone -X auto.offset.reset=earliest -e t1 >/dev/null
eq "as/ in a group of its own" 10 "$(wc -l <"$M/t1/as/shell/p0")"
kcat -b $B -q -G alive -X auto.offset.reset=earliest t1 >idle.out &
idle=$!
cleanup_fn 'kill $idle 2>/dev/null'
wait_for 20 "the idle member's commit" eval '[ "$(group position alive t1 0)" = 10 ]'
eq "position of the group that left" 10 "$(group position gone t1 0)"
eq "its file, and the others'" "10 10 10" "$(echo $(cat "$G"/{alive,gone,shell}/p0))"
wait_for 90 "the position of the group that left is gone" eval '[ "$(group position gone t1 0)" = -1 ]'
[ $((SECONDS - left)) -ge 59 ] || fail "it lived for less than a minute"
wait_for 10 "its group is gone" eval '[ "$(group state gone)" = Dead ]'
fails 'No such file' cat "$G/gone/p0"
wait_for 20 "as/ is no member: its position goes, too" eval '[ "$(ls "$G")" = alive ]'
past() { [ $((SECONDS - left)) -ge 70 ]; }
wait_for 90 "more than the retention" past
eq "position of the idle but living group" 10 "$(group position alive t1 0)"
eq "its file" 10 "$(cat "$G/alive/p0")"
klogd_kill
klogd_restart
wait_for 20 "groups are loaded" eval '[ "$(group state alive)" = Stable ]'
eq "position of the living group after a restart" 10 "$(group position alive t1 0)"
eq "position of the group that left, after a restart" -1 "$(group position gone t1 0)"
kill $idle 2>/dev/null
wait_gone $idle
