#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""clients.py produce BROKERS PROC PARTITIONS RATE FILE   an idempotent producer with acks=all (librdkafka's), until its input ends
clients.py poll BROKERS READER PARTITIONS FILE            a reader of all partitions, from their beginning

Each writes to FILE what it does and is told, in the form that history.c reads. Nothing is judged here."""
import random
import sys
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

TOPIC = "chaos"
ended = threading.Event()


def until_the_end():
    sys.stdin.read()
    ended.set()


def produce(brokers, proc, partitions, rate, out):
    proc, rnd = int(proc), random.Random(int(proc))
    settings = {"bootstrap.servers": brokers, "enable.idempotence": True, "acks": "all", "linger.ms": 2, "message.timeout.ms": 120000,
                "reconnect.backoff.max.ms": 500, "request.timeout.ms": 5000, "compression.type": rnd.choice(("none", "lz4", "zstd", "gzip"))}
    n, waiting = 0, [0]
    p = Producer(settings)

    def told(this, err, m):
        waiting[0] -= 1
        if err is None:
            out.write("ok %d %d %d %d\n" % (proc, this, m.offset(), time.monotonic_ns()))
        else:                                     # it may be there or not
            out.write("info %d %d %d\n" % (proc, this, time.monotonic_ns()))

    while not ended.is_set() or waiting[0]:
        p.poll(0.01)
        for _ in range(rnd.randrange(1, 2 + 2 * int(rate) // 100)):
            if ended.is_set() or waiting[0] > 2000:
                break
            this, part = n, rnd.randrange(int(partitions))
            n += 1
            value = b"%d-%d-%s" % (proc, this, b"x" * rnd.choice((0, 10, 100, 1000)))
            out.write("send %d %d %d %d\n" % (proc, part, this, time.monotonic_ns()))
            waiting[0] += 1
            p.produce(TOPIC, value, partition=part, callback=lambda err, m, this=this: told(this, err, m))
    p.flush()


def poll(brokers, reader, partitions, out):
    c = Consumer({"bootstrap.servers": brokers, "group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error",
                  "reconnect.backoff.max.ms": 500, "fetch.wait.max.ms": 100, "check.crcs": True})
    c.assign([TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in range(int(partitions))])
    while not ended.is_set():
        out.flush()                               # it is looked at whether all has been read
        for m in c.consume(500, 0.1):
            if m.error() is None:
                proc, n = m.value().split(b"-")[:2]
                out.write("poll %s 1 %d %d %d %d %d\n" % (reader, m.partition(), m.offset(), int(proc), int(n), time.monotonic_ns()))
            elif m.error().code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                raise SystemExit("reader %s, partition %d: %s" % (reader, m.partition(), m.error()))
    c.close()


def main(what, *arguments):
    threading.Thread(target=until_the_end, daemon=True).start()
    with open(arguments[-1], "w") as out:
        {"produce": produce, "poll": poll}[what](*arguments[:-1], out)


main(*sys.argv[1:])
