# SPDX-License-Identifier: Apache-2.0
"""The group APIs of Kafka's wire protocol for tests, on top of kwire.py; versions as old clients use them, and JoinGroup 9."""
import select

from kwire import Conn, Reader, array, data, i8, i16, i32, i64, string, uvarint

JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, LIST, COMMIT, FETCH, DELETE, OFFSET_DELETE = 11, 12, 13, 14, 15, 16, 8, 9, 42, 47
ERRORS = {0: "NONE", -1: "UNKNOWN_SERVER_ERROR", 3: "UNKNOWN_TOPIC_OR_PARTITION", 12: "OFFSET_METADATA_TOO_LARGE",
          14: "COORDINATOR_LOAD_IN_PROGRESS", 15: "COORDINATOR_NOT_AVAILABLE", 16: "NOT_COORDINATOR",
          22: "ILLEGAL_GENERATION", 23: "INCONSISTENT_GROUP_PROTOCOL", 24: "INVALID_GROUP_ID", 25: "UNKNOWN_MEMBER_ID",
          26: "INVALID_SESSION_TIMEOUT", 27: "REBALANCE_IN_PROGRESS", 28: "INVALID_COMMIT_OFFSET_SIZE", 42: "INVALID_REQUEST",
          68: "NON_EMPTY_GROUP", 69: "GROUP_ID_NOT_FOUND", 79: "MEMBER_ID_REQUIRED", 81: "GROUP_MAX_SIZE_REACHED",
          82: "FENCED_INSTANCE_ID", 86: "GROUP_SUBSCRIBED_TO_TOPIC"}


def error(code):
    return ERRORS.get(code, "error %d" % code)


def subscription(topics):
    """The metadata of a consumer that wants these topics (version 0)."""
    return i16(0) + array([string(t) for t in topics]) + i32(-1)


def assignment(parts):
    """{topic: [partition, ...]} as a leader hands it out (version 0)."""
    return i16(0) + array([string(t) + array([i32(p) for p in ps]) for t, ps in sorted(parts.items())]) + i32(-1)


def assigned(b):
    """The inverse: [(topic, partition), ...]."""
    if not b:
        return []
    r = Reader(b)
    r.i16()
    return sorted((t, p) for t, ps in r.array(lambda: (r.string(), r.array(r.i32))) for p in ps)


# ---- flexible versions ----
def cstring(s): return b"\0" if s is None else uvarint(len(s.encode()) + 1) + s.encode()
def cdata(b): return uvarint(len(b) + 1) + b
def carray(items): return uvarint(len(items) + 1) + b"".join(items)


class FlexReader(Reader):
    def string(self):
        n = self.uvarint() - 1
        return None if n < 0 else self.take(n).decode()

    def data(self): return self.take(self.uvarint() - 1)
    def array(self, one): return [one() for _ in range(self.uvarint() - 1)]

    def tags(self):
        assert self.uvarint() == 0


class Joined:
    def __init__(self, code, generation, protocol, leader, member_id, members, skip=False):
        self.code, self.generation, self.protocol, self.leader = code, generation, protocol, leader
        self.member_id, self.members, self.skip = member_id, members, skip


class GroupConn(Conn):
    """One member's connection. Requests that may wait have a send_ and a got_ half."""

    def waits(self, seconds=0.2):
        """Nothing has been answered, and nothing comes for a while."""
        return not self.buf and not select.select([self.s], [], [], seconds)[0]

    def answer(self, flexible=False):
        b = self.frame()
        r = (FlexReader if flexible else Reader)(b)
        r.i32()
        if flexible:
            r.tags()
        return r

    def until_loaded(self, group=None):
        """Until there is a coordinator, and it has loaded what it knows, of this group too."""
        while self.coordinator("g") != 0 or (group is not None and self.describe(group)[0] != 0):
            pass

    # ---- membership ----
    def send_join(self, group, member_id="", instance=None, protocols=(("range", b"m"),), session_ms=10000, rebalance_ms=60000,
                  kind="consumer", version=5, client="test"):
        if version >= 6:
            body = (cstring(group) + i32(session_ms) + i32(rebalance_ms) + cstring(member_id) + cstring(instance) + cstring(kind)
                    + carray([cstring(n) + cdata(m) + b"\0" for n, m in protocols])
                    + (cstring(None) if version >= 8 else b"") + b"\0")
            return self.send(JOIN, version, body, client=client, flexible=True)
        body = (string(group) + i32(session_ms) + (i32(rebalance_ms) if version >= 1 else b"") + string(member_id)
                + (string(instance) if version >= 5 else b"") + string(kind) + array([string(n) + data(m) for n, m in protocols]))
        return self.send(JOIN, version, body, client=client)

    def got_join(self, version=5):
        r = self.answer(version >= 6)
        if version >= 2:
            r.i32()
        code, generation = r.i16(), r.i32()
        if version >= 7:
            r.string()
        protocol, leader = r.string(), r.string()
        skip = bool(r.i8()) if version >= 9 else False
        member_id = r.string()

        def member():
            m = r.string(), r.string() if version >= 5 else None, r.data()
            if version >= 6:
                r.tags()
            return m
        return Joined(code, generation, protocol, leader, member_id, r.array(member), skip)

    def join(self, group, version=5, **how):
        self.send_join(group, version=version, **how)
        return self.got_join(version)

    def send_sync(self, group, generation, member_id, assignments=(), instance=None, version=3):
        self.send(SYNC, version, string(group) + i32(generation) + string(member_id) + (string(instance) if version >= 3 else b"")
                  + array([string(m) + data(a) for m, a in assignments]))

    def got_sync(self):
        r = self.answer()
        r.i32()
        return r.i16(), r.data()

    def sync(self, *how, **more):
        """(error code, assignment)"""
        self.send_sync(*how, **more)
        return self.got_sync()

    def heartbeat(self, group, generation, member_id, instance=None):
        self.send(HEARTBEAT, 3, string(group) + i32(generation) + string(member_id) + string(instance))
        r = self.answer()
        r.i32()
        return r.i16()

    def leave(self, group, *members):
        """(member id, instance id) each; (error code, [error code of each])"""
        self.send(LEAVE, 3, string(group) + array([string(m) + string(i) for m, i in members]))
        r = self.answer()
        r.i32()
        return r.i16(), r.array(lambda: (r.string(), r.string(), r.i16())[2])

    # ---- positions ----
    def commit(self, group, positions, generation=-1, member_id="", instance=None):
        """positions: {topic: [(partition, offset[, metadata[, leader epoch]])]}; {(topic, partition): error code}"""
        def part(p, offset, metadata="", epoch=-1):
            return i32(p) + i64(offset) + i32(epoch) + string(metadata)
        self.send(COMMIT, 7, string(group) + i32(generation) + string(member_id) + string(instance) + array(
            [string(t) + array([part(*p) for p in ps]) for t, ps in positions.items()]))
        r = self.answer()
        r.i32()
        out = {}
        for t, ps in r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i16())))):
            out.update({(t, p): code for p, code in ps})
        return out

    def positions(self, group, wanted=None):
        """wanted: {topic: [partition]}, or None for all; (error code, {(topic, partition): (offset, leader epoch, metadata, code)})"""
        self.send(FETCH, 5, string(group) + array(
            None if wanted is None else [string(t) + array([i32(p) for p in ps]) for t, ps in wanted.items()]))
        r = self.answer()
        r.i32()
        out = {}
        for t, ps in r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i64(), r.i32(), r.string(), r.i16())))):
            out.update({(t, p[0]): p[1:] for p in ps})
        return r.i16(), out

    def delete_positions(self, group, wanted):
        """(error code, {(topic, partition): error code})"""
        self.send(OFFSET_DELETE, 0, string(group) + array(
            [string(t) + array([i32(p) for p in ps]) for t, ps in wanted.items()]))
        r = self.answer()
        code = r.i16()
        r.i32()
        out = {}
        for t, ps in r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i16())))):
            out.update({(t, p): c for p, c in ps})
        return code, out

    # ---- groups ----
    def describe(self, group):
        """(error code, state, protocol type, protocol, [(member id, instance, client, host, metadata, assignment)], operations)"""
        self.send(DESCRIBE, 4, array([string(group)]) + i8(1))
        r = self.answer()
        r.i32()
        one, = r.array(lambda: (r.i16(), r.string(), r.string(), r.string(), r.string(), r.array(
            lambda: (r.string(), r.string(), r.string(), r.string(), r.data(), r.data())), r.i32()))
        return (one[0],) + one[2:]

    def groups(self):
        """(error code, {group: protocol type})"""
        self.send(LIST, 2, b"")
        r = self.answer()
        r.i32()
        return r.i16(), dict(r.array(lambda: (r.string(), r.string())))

    def delete_groups(self, *groups):
        """{group: error code}"""
        self.send(DELETE, 1, array([string(g) for g in groups]))
        r = self.answer()
        r.i32()
        return dict(r.array(lambda: (r.string(), r.i16())))

    def coordinator(self, group):
        """error code"""
        self.send(10, 0, string(group))
        return self.answer().i16()
