# SPDX-License-Identifier: Apache-2.0
"""What views print, decoded by rules that share nothing with lib/view: JSON by Python's own, TSV as PostgreSQL's COPY reads it.

views.py json|tsv|plain TOPIC PARTITION FILE [FROM TO]: FILE has exactly the records [FROM, TO) of the partition, which are
fetched over the protocol."""
import base64
import json
import sys

from kwire import Conn

COPY_ESCAPES = {"b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v"}


def json_bytes(o, name):
    assert (name in o) != (name + "_base64" in o), o
    if name + "_base64" in o:
        raw = base64.b64decode(o[name + "_base64"], validate=True)
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw
        raise AssertionError("%s is UTF-8 and need not be base64: %r" % (name, o))
    return None if o[name] is None else o[name].encode("utf-8")


def no_float(text):
    raise AssertionError("not a whole number: " + text)


def from_json(line, partition):
    """(offset, timestamp, key, value, headers)"""
    o = json.loads(line.decode("utf-8", "strict"), parse_float=no_float)
    assert o["partition"] == partition, o
    return (o["offset"], o["timestamp"], json_bytes(o, "key"), json_bytes(o, "value"),
            [(json_bytes(h, "key"), json_bytes(h, "value")) for h in o["headers"]])


def copy_field(b):
    if b == b"\\N":
        return None
    out, i = b"", 0
    while i < len(b):
        c = b[i:i + 1]
        if c == b"\\":
            i += 1
            c = COPY_ESCAPES.get(b[i:i + 1].decode("latin-1"), b[i:i + 1])
        out += c
        i += 1
    return out


def from_tsv(line):
    key, value = line.split(b"\t")
    return copy_field(key), copy_field(value)


def lines(data):
    assert data == b"" or data.endswith(b"\n"), data[-20:]
    return data.split(b"\n")[:-1]


def main():
    form, topic, partition, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    low, high = (int(sys.argv[5]), int(sys.argv[6])) if len(sys.argv) > 5 else (0, 1 << 62)
    want = [r for r in Conn().records(topic, partition) if low <= r[0] < high]
    data = open(path, "rb").read()
    if form == "plain":
        assert data == b"".join((r[3] or b"") + b"\n" for r in want), "plain bytes differ"
    elif form == "json":
        got = [from_json(x, partition) for x in lines(data)]
        assert got == [(r[0], r[1], r[2], r[3], list(r[4])) for r in want], (got[:3], want[:3])
    else:
        got = [from_tsv(x) for x in lines(data)]
        assert got == [(r[2], r[3]) for r in want], (got[:3], want[:3])


if __name__ == "__main__":
    main()
