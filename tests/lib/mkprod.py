# SPDX-License-Identifier: Apache-2.0
"""mkprod.py ACKS TOPIC [badcrc | count=N | bomb=MiB | magic=N | value=TEXT]
Prints the hex of one Produce v3 request with correlation id 9 and one batch, whose single value is "raw"."""
import sys

from kwire import Conn, batch, i16, i32, string


def main():
    acks, topic = int(sys.argv[1]), sys.argv[2]
    opts = dict((o.split("=", 1) + [""])[:2] for o in sys.argv[3:])
    value = opts.get("value", "raw").encode()
    kw = {}
    if "bomb" in opts:
        value, kw["squeeze"] = bytes(int(opts["bomb"]) << 20), 9
    if "count" in opts:
        n = int(opts["count"])
        kw.update(count=n, last_delta=max(min(n - 1, 2**31 - 1), -2**31))
    if "magic" in opts:
        kw["magic"] = int(opts["magic"])
    b = batch([value], bad_crc="badcrc" in opts, **kw)
    f = i16(0) + i16(3) + i32(9) + string("x") + Conn.produce_body(topic, 0, b, acks, 5000)
    print((i32(len(f)) + f).hex())


if __name__ == "__main__":
    main()
