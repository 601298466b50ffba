# SPDX-License-Identifier: Apache-2.0
"""replicas.py reassign TOPIC P BROKER,... | cancel TOPIC P | list | elect TOPIC P [unclean]
Asks the broker of $BROKER with the requests of Kafka's tools. Prints "ok" or the partition's error code; list prints
"TOPIC-P REPLICAS adding ADDING removing REMOVING", a line each."""
import os
import sys

from kwire import Conn, array, i8, i32, string, uvarint

NO_TAGS = b"\0"


def compact(items):
    return uvarint(0) if items is None else uvarint(len(items) + 1) + b"".join(items)


def compact_string(s):
    return uvarint(len(s) + 1) + s.encode()


def compact_length(r):
    return r.uvarint() - 1


def skip_string(r):
    n = compact_length(r)
    return r.take(n) if n > 0 else b""


def ids(r):
    return [r.i32() for _ in range(compact_length(r))]


def text(numbers):
    return ",".join(str(n) for n in numbers) or "-"


def reassign(c, topic, partition, brokers):
    p = i32(partition) + compact(None if brokers is None else [i32(b) for b in brokers]) + NO_TAGS
    body = i32(30000) + compact([compact_string(topic) + compact([p]) + NO_TAGS]) + NO_TAGS
    r = c.ask(45, 0, body, flexible=True)
    r.take(1)  # tags of the header
    r.i32()
    top = r.i16()
    skip_string(r)
    if top:
        return top
    compact_length(r)
    skip_string(r)
    compact_length(r)
    r.i32()
    return r.i16()


def list_all(c):
    r = c.ask(46, 0, i32(30000) + compact(None) + NO_TAGS, flexible=True)
    r.take(1)
    r.i32()
    assert r.i16() == 0
    skip_string(r)
    for _ in range(compact_length(r)):
        topic = skip_string(r).decode()
        for _ in range(compact_length(r)):
            p = r.i32()
            replicas, adding, removing = ids(r), ids(r), ids(r)
            r.take(1)
            print("%s-%d %s adding %s removing %s" % (topic, p, text(replicas), text(adding), text(removing)))
        r.take(1)


def elect(c, topic, partition, unclean):
    r = c.ask(43, 1, i8(1 if unclean else 0) + array([string(topic) + array([i32(partition)])]) + i32(30000))
    r.i32()
    assert r.i16() == 0
    r.i32()
    r.string()
    r.i32()
    assert r.i32() == partition
    return r.i16()


def main():
    verb, args = sys.argv[1], sys.argv[2:]
    c = Conn(os.environ.get("BROKER", "127.0.0.1:9092"), timeout=60)
    if verb == "list":
        list_all(c)
        return
    topic, partition = args[0], int(args[1])
    if verb == "reassign":
        err = reassign(c, topic, partition, [int(b) for b in args[2].split(",")])
    elif verb == "cancel":
        err = reassign(c, topic, partition, None)
    else:
        err = elect(c, topic, partition, len(args) > 2)
    print(err or "ok")


if __name__ == "__main__":
    main()
