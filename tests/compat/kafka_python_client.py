# SPDX-License-Identifier: Apache-2.0
"""The client program of lib.sh, with kafka-python: 2.0.2, which Debian has, and the newest."""
import sys
import time

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

from records import records

B = "127.0.0.1:9092"
OLD = kafka.__version__.startswith("2.0.")


def produce(topic, codec):
    try:
        p = KafkaProducer(bootstrap_servers=B, compression_type=None if codec == "none" else codec, linger_ms=50, acks="all")
    except AssertionError as e:      # the codec's library is not installed
        print(e)
        sys.exit(78)
    sent = [p.send(topic, key=k, value=v, headers=h, partition=0) for k, v, h in records()]
    p.flush()
    assert [f.get(10).offset for f in sent] == list(range(505))


def text(b):
    return "~" if b is None else "<%s>" % b.decode()


def consume(topic, codec):
    from kafka import codec as have
    if codec != "none" and not getattr(have, "has_" + codec, lambda: True)():
        sys.exit(78)
    c = KafkaConsumer(bootstrap_servers=B)
    tp = TopicPartition(topic, 0)
    c.assign([tp])
    end = c.end_offsets([tp])[tp]
    c.seek_to_beginning(tp)
    while c.position(tp) < end:
        for m in c.poll(5000).get(tp, ()):
            print(m.offset, text(m.key), text(m.value), ",".join("%s=%s" % (k, v.decode()) for k, v in m.headers) or "-")


def group(name, topic, n):
    c = KafkaConsumer(topic, bootstrap_servers=B, group_id=name, auto_offset_reset="earliest", enable_auto_commit=False)
    got = []
    while len(got) < int(n):
        got += [(m.partition, m.offset) for ms in c.poll(1000).values() for m in ms]
    c.commit()
    c.close()
    for p, o in sorted(got):
        print(p, o)


def positions(name, topic):
    a = KafkaAdminClient(bootstrap_servers=B)
    offsets = a.list_consumer_group_offsets(name) if OLD else a.list_group_offsets({name: None})[name]
    for tp, o in sorted(offsets.items()):
        assert tp.topic == topic
        print(tp.partition, o.offset)


def times(topic, *ms):
    c = KafkaConsumer(bootstrap_servers=B)
    tp = TopicPartition(topic, 0)
    found = [c.offsets_for_times({tp: int(t)})[tp] for t in ms]
    print(*("end" if f is None else f.offset for f in found))


def topics():
    a = KafkaAdminClient(bootstrap_servers=B)

    def size(): return len(KafkaConsumer(bootstrap_servers=B).partitions_for_topic("made"))
    a.create_topics([NewTopic("made", 2, 1)])
    print("made", size())
    a.create_partitions({"made": NewPartitions(5)})
    print("grown", size())
    a.delete_topics(["made"])
    while "made" in a.list_topics():
        time.sleep(0.05)
    print("gone")


def settings(topic):
    a = KafkaAdminClient(bootstrap_servers=B)

    def look():
        found = a.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        if OLD:
            return {c[0]: c[1] for r in found for x in r.resources for c in x[4]}["retention.ms"]
        return found["topic"][topic]["retention.ms"]["value"]
    print(look())
    a.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "54321"})])
    print(look())


def forget(name):
    a = KafkaAdminClient(bootstrap_servers=B)
    print(a.describe_consumer_groups([name])[0].state if OLD else a.describe_groups([name])[name]["group_state"])
    (a.delete_consumer_groups if OLD else a.delete_groups)([name])
    assert name not in str(a.list_consumer_groups() if OLD else a.list_groups())
    print("gone")


def idempotent(topic):
    if OLD:
        print("it has none")
        sys.exit(78)
    p = KafkaProducer(bootstrap_servers=B, enable_idempotence=True)
    assert [p.send(topic, b"v%d" % i, partition=0).get(10).offset for i in range(3)] == [0, 1, 2]


def version():
    print("kafka-python", kafka.__version__)


if __name__ == "__main__":
    {"produce": produce, "consume": consume, "group": group, "positions": positions, "time": times, "topics": topics,
     "settings": settings, "forget": forget, "idempotent": idempotent, "version": version}[sys.argv[1]](*sys.argv[2:])
