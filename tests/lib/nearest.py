# SPDX-License-Identifier: Apache-2.0
"""nearest.py TOPIC OFFSET RACK [MAX_WAIT_MS]
One Fetch (version 11) of partition 0 from the broker of $BROKER by a consumer in that rack. Prints "ERROR PREFERRED-REPLICA VALUE,VALUE"."""
import os
import sys

from kwire import Conn, array, batches, i8, i32, i64, string


def main():
    topic, offset, rack = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    wait_ms = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    c = Conn(os.environ["BROKER"], timeout=60)
    part = i32(0) + i32(-1) + i64(offset) + i64(-1) + i32(1 << 20)
    body = i32(-1) + i32(wait_ms) + i32(1) + i32(1 << 20) + i8(0) + i32(0) + i32(-1)
    r = c.ask(1, 11, body + array([string(topic) + array([part])]) + array([]) + string(rack))
    r.i32()
    assert r.i16() == 0, "error of the whole answer"
    r.i32()
    assert r.i32() == 1 and r.string() == topic and r.i32() == 1 and r.i32() == 0
    err = r.i16()
    r.i64(), r.i64(), r.i64()
    r.array(lambda: (r.i64(), r.i64()))
    nearer, data = r.i32(), r.data() or b""
    values = [record[3] for b in batches(data) for record in b.records()]
    print(err, nearer, ",".join(v.decode() for v in values) or "-")


if __name__ == "__main__":
    main()
