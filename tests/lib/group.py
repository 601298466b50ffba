# SPDX-License-Identifier: Apache-2.0
"""Asks a broker about groups, for test scripts.

    group.py state GROUP              its state
    group.py owners GROUP             a line for each partition that a member has: TOPIC PARTITION MEMBER
    group.py position GROUP TOPIC PARTITION
    group.py commit GROUP TOPIC PARTITION OFFSET
    group.py history GROUP            what __consumer_offsets says of it, in order:
                                          position TOPIC PARTITION OFFSET | group GENERATION MEMBERS [TOPIC PARTITION MEMBER]..."""
import sys

from kgroup import GroupConn, assigned, error
from kwire import Reader

TOPIC = "__consumer_offsets"


def read_value(b):
    r = Reader(b)
    version = r.i16()
    kind, generation, _, _ = r.string(), r.i32(), r.string(), r.string()
    if version >= 2:
        r.i64()

    def member():
        m = r.string()
        if version >= 3:
            r.string()
        r.string(), r.string(), r.i32(), r.i32(), r.data()
        return m, r.data()
    return generation, r.array(member)


def history(c, group):
    """[("position", topic, partition, offset or None)] and [("group", generation, [(member, assignment)]) or ("group", None)]"""
    out = []
    for p in range(c.metadata([TOPIC])[TOPIC][1]):
        for _, _, key, value, _ in c.records(TOPIC, p):
            r = Reader(key)
            version, who = r.i16(), r.string()
            if who != group:
                continue
            if version <= 1:
                topic, partition = r.string(), r.i32()
                out.append(("position", topic, partition, None if value is None else int.from_bytes(value[2:10], "big")))
            elif version == 2:
                out.append(("group",) + ((None,) if value is None else read_value(value)))
    return out


def main(what, group, *more):
    c = GroupConn()
    if what == "state":
        code, state = c.describe(group)[:2]
        print(state if code == 0 else error(code))
    elif what == "owners":
        for m in c.describe(group)[4]:
            for topic, partition in assigned(m[5]):
                print(topic, partition, m[0])
    elif what == "position":
        print(c.positions(group, {more[0]: [int(more[1])]})[1][more[0], int(more[1])][0])
    elif what == "commit":
        print(error(c.commit(group, {more[0]: [(int(more[1]), int(more[2]))]})[more[0], int(more[1])]))
    elif what == "history":
        for h in history(c, group):
            if h[0] == "group" and h[1] is not None:
                print("group", h[1], len(h[2]), *("%s %d %s" % (t, p, m) for m, a in h[2] for t, p in assigned(a)))
            else:
                print(*h)


if __name__ == "__main__":
    main(*sys.argv[1:])
