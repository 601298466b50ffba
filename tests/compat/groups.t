# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# What the group coordinator answers in scripted scenarios, and to every version of each request, is what Apache Kafka 4.4 answered to the same;
# where it is not, the files of differences have the reason.
klogd_start --override group.initial.rebalance.delay.ms=0 --override group.min.session.timeout.ms=100 \
    --override group.max.size=4
topic t 3
topic u 1
compat=$SRCDIR/tests/compat
for what in group_versions group_scenarios; do
    timeout 150 "$PY" "$compat/$what.py" $B >got || fail "$what.py ended early: $(tail -n3 got)"
    [ -z "${ANSWERS:-}" ] || cp got "$ANSWERS/$what.klogd"
    "$PY" "$compat/compare.py" "$compat/$what.expected" "$compat/$what.differences" got || fail "answers differ from Apache Kafka's"
done
