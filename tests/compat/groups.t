# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# What the group coordinator answers in scripted scenarios is what Apache Kafka 4.4 answered in the same; where it is not, and why,
# docs/COMPATIBILITY.md says.
klogd_start --override group.initial.rebalance.delay.ms=0 --override group.min.session.timeout.ms=100 \
    --override group.max.size=4
topic t 3
topic u 1
timeout 150 "$PY" "$SRCDIR/tests/compat/group_scenarios.py" $B >got || fail "the scenarios ended early: $(tail -n3 got)"
diff "$SRCDIR/tests/compat/group_scenarios.expected" got || fail "answers differ from Apache Kafka's (<)"
