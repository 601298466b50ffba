# SPDX-License-Identifier: Apache-2.0
# python3-confluent-kafka writes and reads every codec, headers, null and empty keys and values, as an idempotent producer too.
requires kcat
requires_python confluent_kafka
. "$SRCDIR/tests/compat/lib.sh"
klogd_start
[ -c /dev/fuse ] && [ -x "$BUILDDIR/fuse/klogfs" ] && mount_start
exchange ck "$PY" "$SRCDIR/tests/compat/confluent_client.py"
"$PY" - <<'X' || fail "admin calls"
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic
a = AdminClient({"bootstrap.servers": "127.0.0.1:9092"})
a.create_topics([NewTopic("made", 2, 1, config={"retention.ms": "12345"})])["made"].result(10)
a.create_partitions([NewPartitions("made", 5)])["made"].result(10)
assert len(a.list_topics(timeout=10).topics["made"].partitions) == 5
r = ConfigResource("topic", "made")
c = a.describe_configs([r])[r].result(10)
assert c["retention.ms"].value == "12345" and c["cleanup.policy"].value == "delete"
assert c["cleanup.policy"].is_default and not c["retention.ms"].is_default
a.delete_topics(["made"])["made"].result(10)
assert "made" not in a.list_topics(timeout=10).topics
X
