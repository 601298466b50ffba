# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The newest confluent-kafka of PyPI, as confluent.t does it with Debian's.
requires kcat
python=$BUILDDIR/tests/clients/pypi/bin/python
"$python" -c 'import confluent_kafka' 2>/dev/null || skip "confluent-kafka is not there (PyPI not reached)"
. "$SRCDIR/tests/compat/lib.sh"
klogd_start --override group.initial.rebalance.delay.ms=0
client=("$python" "$SRCDIR/tests/compat/confluent_client.py")
results_begin confluent-newest "$("${client[@]}" version)"
exchange client "${client[@]}"
features "${client[@]}"

# It asks where the epoch of its last record ended (KIP-320), which Debian's does not: records come while it is away, at a position
# whose epoch the log no longer has. That is no truncation; taken for one, reset=latest skips them.
topic idle
seq -f old%g 10 | grow idle
cat >idle.py <<'X'
import sys
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
admin = AdminClient({"bootstrap.servers": "127.0.0.1:9092"})
c = Consumer({"bootstrap.servers": "127.0.0.1:9092", "group.id": "idle", "auto.offset.reset": "latest", "enable.auto.commit": False,
              "topic.metadata.refresh.interval.ms": 300, "reconnect.backoff.max.ms": 300})
c.assign([TopicPartition("idle", 0, 0)])
while True:
    m = c.poll(0.2)
    if m is None or m.error():
        continue
    print(m.value().decode(), flush=True)
    if m.offset() == 9:
        for f in admin.delete_records([TopicPartition("idle", 0, 10)]).values():
            f.result()
X
"$python" idle.py >idle.out 2>idle.err 19>&- &
reader=$!
wait_lines idle.out 10
starts_at_10() { [ "$(start_offset idle)" = 10 ]; }
wait_for 10 "the records are removed" starts_at_10
klogd_kill
klogd_restart
seq -f new%g 10 | grow idle
wait_lines idle.out 20 20
kill $reader
wait_gone $reader
eq "what an idle consumer read" "$(seq -f old%g 10; seq -f new%g 10)" "$(cat idle.out)"
