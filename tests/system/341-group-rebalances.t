# SPDX-License-Identifier: Apache-2.0
# timeout: 150
# Six members of two client libraries share six partitions; one is killed: a rebalance settles each time, then nothing moves, and
# every record is delivered once.
# https://github.com/spreedly/kaffe/issues/92 https://github.com/aio-libs/aiokafka/issues/727
# https://github.com/apache/kafka/pull/8405 https://github.com/kafka4beam/brod/issues/648
requires kcat
requires_python kafka
klogd_start
topic r6 6
# From the start, where there is no position: a member that is killed may not have committed yet, and who comes after it would
# pass over what is written before it has asked for the end.
MEMBERS=()
for i in 1 2 3 4; do
    kcat -b $B -G storm -u -X session.timeout.ms=6000 -X heartbeat.interval.ms=1000 -X partition.assignment.strategy=range \
        -X auto.offset.reset=earliest -f '%p %o %s\n' r6 >"out.$i" 2>"log.$i" &
    MEMBERS+=($!)
done
for i in 5 6; do
    "$PY" "$TESTLIB/group_member.py" kafka storm r6 >"out.$i" 2>"log.$i" &
    MEMBERS+=($!)
done
cleanup_fn 'kill -9 "${MEMBERS[@]}" 2>/dev/null'
group() { "$PY" "$TESTLIB/group.py" "$@"; }
# shared N: stable, with each partition owned, by N members in all
shared() {
    [ "$(group state storm)" = Stable ] || return 1
    local owners
    owners=$(group owners storm)
    [ "$(cut -d' ' -f2 <<<"$owners" | sort | tr '\n' ' ')" = "0 1 2 3 4 5 " ] &&
        [ "$(cut -d' ' -f3 <<<"$owners" | sort -u | wc -l)" = "$1" ]
}
rebalances() { cat log.[1-6] | grep -c rebalanced; }
wait_for 40 "six members share six partitions" shared 6

seq 1 600 | produce -t r6 -X partitioner=random
delivered() { [ "$(cut -d' ' -f3 out.[1-6] | sort -u | wc -l)" -ge "$1" ]; }
wait_for 20 "600 records" delivered 600
kill -9 "${MEMBERS[1]}"
wait_for 40 "five members share six partitions" shared 5
before=$(rebalances)
seq 601 1200 | produce -t r6 -X partitioner=random
wait_for 20 "1200 records" delivered 1200
eq "rebalances while nothing happened" "$before" "$(rebalances)"
sort -n <(cut -d' ' -f3 out.[1-6]) >got
# What the killed one had not committed yet came again; nothing else did, and nothing is missing.
eq "different records" 1200 "$(sort -u got | wc -l)"
cut -d' ' -f3 out.2 | sort >killed
sort got | uniq -d | comm -23 - killed >strange
eq "delivered twice without a reason" "" "$(head -n5 strange)"
kill "${MEMBERS[@]:2}" "${MEMBERS[0]}"
for p in "${MEMBERS[@]}"; do wait_gone "$p" 20; done
wait_for 10 "the group is empty" eval '[ "$(group state storm)" = Empty ]'
