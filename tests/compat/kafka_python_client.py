# SPDX-License-Identifier: Apache-2.0
"""produce TOPIC CODEC | consume TOPIC, with python3-kafka; see lib.sh."""
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from records import records

B = "127.0.0.1:9092"


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
    if codec != "none" and not getattr(have, "has_" + codec)():
        sys.exit(78)
    c = KafkaConsumer(bootstrap_servers=B)
    tp = TopicPartition(topic, 0)
    c.assign([tp])
    end = c.end_offsets([tp])[tp]
    c.seek_to_beginning(tp)
    while c.position(tp) < end:
        for m in c.poll(5000).get(tp, ()):
            print(m.offset, text(m.key), text(m.value), ",".join("%s=%s" % (k, v.decode()) for k, v in m.headers) or "-")


if __name__ == "__main__":
    {"produce": produce, "consume": consume}[sys.argv[1]](*sys.argv[2:])
