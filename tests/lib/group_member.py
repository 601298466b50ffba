# SPDX-License-Identifier: Apache-2.0
"""A member of a consumer group: group_member.py kafka|confluent GROUP TOPIC. Prints "PARTITION OFFSET VALUE" for each record, then
commits; says on standard error when it was rebalanced. Ends when it is killed, or by TERM, then leaving its group.
$SESSION_MS: its session time-out. $CLIENT_ID: its client id."""
import os
import signal
import sys

B = "127.0.0.1:9092"
SESSION_MS = int(os.environ.get("SESSION_MS", "6000"))
CLIENT_ID = os.environ.get("CLIENT_ID", "member")
going = True


def stop(*_):
    global going
    going = False


def tell(partition, offset, value):
    sys.stdout.write("%d %d %s\n" % (partition, offset, value.decode()))
    sys.stdout.flush()


def kafka(group, topic):
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.errors import CommitFailedError

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked): pass
        def on_partitions_assigned(self, parts): print("rebalanced: %s" % sorted(p.partition for p in parts), file=sys.stderr, flush=True)

    c = KafkaConsumer(bootstrap_servers=B, client_id=CLIENT_ID, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
                      session_timeout_ms=SESSION_MS, heartbeat_interval_ms=1000)
    c.subscribe([topic], listener=Listener())
    while going:
        got = c.poll(200)
        for tp, records in got.items():
            for r in records:
                tell(tp.partition, r.offset, r.value)
        if got:
            try:
                c.commit()
            except CommitFailedError:    # rebalanced meanwhile: the next owner does it again
                pass
    c.close(autocommit=False)


def confluent(group, topic):
    from confluent_kafka import Consumer, KafkaException

    def assigned(consumer, parts):
        print("rebalanced: %s" % sorted(p.partition for p in parts), file=sys.stderr, flush=True)

    c = Consumer({"bootstrap.servers": B, "client.id": CLIENT_ID, "group.id": group, "enable.auto.commit": False,
                  "auto.offset.reset": "earliest", "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1000, "partition.assignment.strategy": "range"})
    c.subscribe([topic], on_assign=assigned)
    while going:
        for m in c.consume(100, 0.2):
            if m.error() is None:
                tell(m.partition(), m.offset(), m.value())
                try:
                    c.commit(m, asynchronous=False)
                except KafkaException:
                    break
    c.close()


signal.signal(signal.SIGTERM, stop)
{"kafka": kafka, "confluent": confluent}[sys.argv[1]](*sys.argv[2:])
