# SPDX-License-Identifier: Apache-2.0
"""The records of lib.sh, for the Python clients. And for lib.sh itself:

    records.py timed TOPIC      ten records in each of two partitions, written at the 1st to the 10th second of 1970
    records.py idempotent FILE  this segment is of one idempotent producer, which counted right"""
import sys

from kwire import Conn, batch, batches


def records():
    yield b"k1", b"v1", [("h", b"1"), ("h", b"2")]
    yield None, b"v2", []
    yield b"", b"v3", []
    yield b"k4", b"", []
    yield b"k5", None, []
    for i in range(5, 505):
        yield b"b", b"bulk %d of five hundred, alike enough to shrink" % i, []


def timed(topic):
    c = Conn()
    for p in 0, 1:
        for i in range(10):
            assert c.produce(topic, p, batch([b"v%d" % i], ts=1000 * (i + 1))) == (0, i)


def idempotent(path):
    b = batches(open(path, "rb").read())
    assert len(b) >= 2 and len({x.pid for x in b}) == 1 and b[0].pid >= 0, [(x.pid, x.seq) for x in b]
    assert [x.seq for x in b] == [x.base for x in b], [(x.base, x.seq) for x in b]


if __name__ == "__main__":
    {"timed": timed, "idempotent": idempotent}[sys.argv[1]](sys.argv[2])
