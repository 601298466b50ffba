# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
# Apache Kafka 4.4 itself answers the scenarios as the expected files say. ANSWERS=DIRECTORY keeps what it answered.
requires java kcat
JARS=$BUILDDIR/tests/clients/maven/jars
[ -d "$JARS" ] || skip "Apache Kafka is not there (Maven not reached)"
compat=$SRCDIR/tests/compat
. "$compat/apache_kafka.sh"
kafka_start group.min.session.timeout.ms=100 group.max.size=4
(. "$compat/tool_scenarios.sh") >tool_scenarios
"$PY" "$TESTLIB/topic.py" delete t
topic t 3
topic u 1
for what in group_versions group_scenarios; do
    timeout 200 "$PY" "$compat/$what.py" $B >$what || fail "$what.py ended early: $(tail -n3 $what)"
done
kafka_stop
for what in tool_scenarios group_versions group_scenarios; do
    [ -z "${ANSWERS:-}" ] || cp $what "$ANSWERS/$what.kafka"
    "$PY" "$compat/compare.py" "$compat/$what.expected" /dev/null $what || bad=1
done
[ -z "${bad:-}" ] || fail "Apache Kafka answers otherwise than the expected files say"
