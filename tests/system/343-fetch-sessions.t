# SPDX-License-Identifier: Apache-2.0
# timeout: 90
# Fetch sessions are not kept, and no answer looks as if they were: each has session id 0 and all partitions that were asked for, the
# empty ones with their high watermark; after a seek every client gets the record it asked for.
# https://github.com/robot-head/crabka/pull/208 https://github.com/dpkp/kafka-python/issues/2575
# https://github.com/platformatic/kafka/pull/321 https://github.com/apache/kafka/pull/7970
requires kcat
klogd_start
topic fs 8
for p in 0 1 2 3 4 5 6 7; do seq -f "$p:%g" 200 | produce -t fs -p $p; done
topic m8 8
seq 5 | produce -t m8 -p 3

"$PY" - <<'X' || fail "see above"
from kwire import Conn, array, i8, i16, i32, i64, string
c = Conn()


def fetch(topic, offsets, session=0, epoch=-1, forgotten=None, wait_ms=0):
    """(error, session, {partition: (error, high watermark, bytes)})"""
    r = c.ask(1, 11, i32(-1) + i32(wait_ms) + i32(1) + i32(1 << 20) + i8(0) + i32(session) + i32(epoch)
              + array([string(topic) + array([i32(p) + i32(-1) + i64(o) + i64(-1) + i32(1 << 20) for p, o in offsets.items()])])
              + array([] if forgotten is None else [string(topic) + array([i32(p) for p in forgotten])]) + string(""))
    r.i32()
    error, session = r.i16(), r.i32()
    out = {}

    def partition():
        p, err, hw = r.i32(), r.i16(), r.i64()
        r.i64(), r.i64(), r.array(lambda: (r.i64(), r.i64())), r.i32()
        out[p] = err, hw, len(r.data())
    r.array(lambda: (r.string(), r.array(partition)))
    return error, session, out


ends = {p: 5 if p == 3 else 0 for p in range(8)}
# a client that wants a session, twice, as if it had one the second time; and one that forgets
for session, epoch, forgotten in (0, 0, None), (0, -1, None), (5, 0, None), (5, -1, [1, 2]), (0, 0, [7]):
    error, id, got = fetch("m8", ends, session, epoch, forgotten)
    assert (error, id) == (0, 0), (error, id)
    assert got == {p: (0, ends[p], 0) for p in range(8)}, got
for session, epoch in (5, 1), (0, 1):
    assert fetch("m8", {}, session, epoch) == (70, 0, {})
    assert fetch("m8", ends, session, epoch) == (70, 0, {})
# one record among empty partitions does not leave the others out; fewer partitions are just those
error, id, got = fetch("m8", {**ends, 3: 4}, 0, 0)
assert (error, id, sorted(got)) == (0, 0, list(range(8))) and got[3][2] > 0 and got[2] == (0, 0, 0), got
assert sorted(fetch("m8", {1: 0, 3: 5}, 0, 0)[2]) == [1, 3]
# what waits and ends with nothing, too
assert fetch("m8", ends, 0, 0, None, 50)[2] == {p: (0, ends[p], 0) for p in range(8)}
X

seeks=100
"$PY" - $seeks <<'X' || fail "seeks of python3-confluent-kafka"
import random, sys
try: from confluent_kafka import Consumer, TopicPartition
except ImportError: sys.exit(0)
random.seed(1)
c = Consumer({"bootstrap.servers": "127.0.0.1:9092", "group.id": "s", "enable.auto.commit": False, "fetch.wait.max.ms": 10})
c.assign([TopicPartition("fs", p, 0) for p in range(8)])
for i in range(int(sys.argv[1])):
    p, o = random.randrange(8), random.randrange(200)
    c.seek(TopicPartition("fs", p, o))
    while True:
        m = c.poll(10)
        assert m is not None, "nothing came after seek %d" % i
        if m.error() is None and m.partition() == p:
            break
    assert (m.offset(), m.value()) == (o, b"%d:%d" % (p, o + 1)), (p, o, m.offset(), m.value())
c.close()
X
"$PY" - $seeks <<'X' || fail "seeks of python3-kafka"
import random, sys
try: from kafka import KafkaConsumer, TopicPartition
except ImportError: sys.exit(0)
random.seed(2)
c = KafkaConsumer(bootstrap_servers="127.0.0.1:9092", fetch_max_wait_ms=10)
parts = [TopicPartition("fs", p) for p in range(8)]
c.assign(parts)
for tp in parts:
    c.seek(tp, 0)
for i in range(int(sys.argv[1])):
    tp, o = random.choice(parts), random.randrange(200)
    c.seek(tp, o)
    got = []
    while not got:
        got = c.poll(10000).get(tp, [])
    assert (got[0].offset, got[0].value) == (o, b"%d:%d" % (tp.partition, o + 1)), (tp, o, got[0])
c.close()
X
