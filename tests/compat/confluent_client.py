# SPDX-License-Identifier: Apache-2.0
"""produce TOPIC CODEC | consume TOPIC, with python3-confluent-kafka; see lib.sh."""
import sys

from confluent_kafka import Consumer, Producer, TopicPartition

from records import records

B = "127.0.0.1:9092"


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


if __name__ == "__main__":
    {"produce": produce, "consume": consume}[sys.argv[1]](*sys.argv[2:])
