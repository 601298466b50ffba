# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# Apache Kafka's own tools say about klogd what they say about Apache Kafka; where they do not, tool_scenarios.differences has the reason.
requires java kcat
JARS=$BUILDDIR/tests/clients/maven/jars
[ -d "$JARS" ] || skip "Kafka's tools are not there (Maven not reached)"
compat=$SRCDIR/tests/compat
klogd_start --override group.initial.rebalance.delay.ms=0 --override offsets.retention.check.interval.ms=7200000
(. "$compat/tool_scenarios.sh") >got
[ -z "${ANSWERS:-}" ] || cp got "$ANSWERS/tool_scenarios.klogd"
"$PY" "$compat/compare.py" "$compat/tool_scenarios.expected" "$compat/tool_scenarios.differences" got \
    "$BUILDDIR/tests/compat/results/kafka-tools.tsv" "Apache Kafka's tools 4.4" || fail "the tools say other things than about Apache Kafka"
