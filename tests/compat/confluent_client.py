# SPDX-License-Identifier: Apache-2.0
"""The client program of lib.sh, with confluent-kafka: 1.7, which Debian has, and the newest."""
import sys
import time

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from records import records

B = "127.0.0.1:9092"
OLD = confluent_kafka.version()[0].startswith("1.")


def produce(topic, codec):
    p = Producer({"bootstrap.servers": B, "compression.type": codec, "linger.ms": 50, "enable.idempotence": True})
    offsets = []

    def done(err, m):
        assert err is None, err
        offsets.append(m.offset())
    for k, v, h in records():
        p.produce(topic, key=k, value=v, headers=h, partition=0, on_delivery=done)
    assert p.flush(20) == 0
    assert offsets == list(range(505)), offsets[:10]


def text(b):
    return "~" if b is None else "<%s>" % b.decode()


def consume(topic, codec):
    c = Consumer({"bootstrap.servers": B, "group.id": "unused", "enable.auto.commit": False, "check.crcs": True})
    end = c.get_watermark_offsets(TopicPartition(topic, 0), 10)[1]
    c.assign([TopicPartition(topic, 0, 0)])
    n = 0
    while n < end:
        m = c.poll(10)
        assert m is not None and m.error() is None, m and m.error()
        headers = ",".join("%s=%s" % (k, v.decode()) for k, v in m.headers() or ())
        print(m.offset(), text(m.key()), text(m.value()), headers or "-")
        n = m.offset() + 1
    c.close()


def group(name, topic, n):
    c = Consumer({"bootstrap.servers": B, "group.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    c.subscribe([topic])
    got = []
    while len(got) < int(n):
        m = c.poll(10)
        assert m is not None and m.error() is None, m and m.error()
        got.append((m.partition(), m.offset()))
    c.commit(asynchronous=False)
    c.close()
    for p, o in sorted(got):
        print(p, o)


def positions(name, topic):
    c = Consumer({"bootstrap.servers": B, "group.id": name})
    for tp in c.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], 10):
        print(tp.partition, tp.offset)
    c.close()


def times(topic, *ms):
    c = Consumer({"bootstrap.servers": B, "group.id": "unused"})
    found = [c.offsets_for_times([TopicPartition(topic, 0, int(t))], 10)[0].offset for t in ms]
    print(*("end" if f < 0 else f for f in found))
    c.close()


def topics():
    a = AdminClient({"bootstrap.servers": B})

    def size(): return len(a.list_topics(timeout=10).topics["made"].partitions)
    a.create_topics([NewTopic("made", 2, 1)])["made"].result(10)
    print("made", size())
    a.create_partitions([NewPartitions("made", 5)])["made"].result(10)
    print("grown", size())
    a.delete_topics(["made"])["made"].result(10)
    while "made" in a.list_topics(timeout=10).topics:
        time.sleep(0.05)
    print("gone")


def settings(topic):
    a = AdminClient({"bootstrap.servers": B})

    def look():
        r = ConfigResource("topic", topic)
        entries = a.describe_configs([r])[r].result(10)
        assert entries["cleanup.policy"].is_default and not entries["retention.ms"].is_default
        return entries["retention.ms"].value
    print(look())
    changed = ConfigResource("topic", topic, set_config={"retention.ms": "54321"})
    a.alter_configs([changed])[changed].result(10)
    print(look())


def forget(name):
    if OLD:
        print("it has no such call")
        sys.exit(78)
    a = AdminClient({"bootstrap.servers": B})
    print(a.describe_consumer_groups([name])[name].result(10).state.name.capitalize())
    a.delete_consumer_groups([name])[name].result(10)
    assert name not in [g.group_id for g in a.list_consumer_groups().result(10).valid]
    print("gone")


def idempotent(topic):
    p = Producer({"bootstrap.servers": B, "enable.idempotence": True})
    for i in range(3):
        p.produce(topic, b"v%d" % i, partition=0)
        assert p.flush(20) == 0


def version():
    print("confluent-kafka", confluent_kafka.version()[0] if OLD else confluent_kafka.__version__)


if __name__ == "__main__":
    {"produce": produce, "consume": consume, "group": group, "positions": positions, "time": times, "topics": topics,
     "settings": settings, "forget": forget, "idempotent": idempotent, "version": version}[sys.argv[1]](*sys.argv[2:])
