# SPDX-License-Identifier: Apache-2.0
"""The group and administration APIs of Kafka's protocol in every version, for tests; written from the protocol guide, nothing shared with lib/wire.

A layout is a line of fields: NAME TYPE [VERSIONS], members of an array in brackets behind its name; `one?` before them: a struct that may be null. `?` makes a type nullable, `?7` from version 7 on.
Versions: `3+`, `2-4`, `5`. Values are dicts; fields that a request does not name are 0, "", b"", False, [] or None."""
import re

from kwire import Conn, Reader, array, data, i8, i16, i32, i64, string, uvarint

APIS = {  # name: (key, first flexible version, request, response)
    "OffsetCommit": (
        8, 8, "group str, generation i32, member str, instance str? 7+, retention i64 2-4, "
        "topics [name str 2-9, id uuid 10+, partitions [partition i32, offset i64, epoch i32 6+, metadata str?]]",
        "throttle i32 3+, topics [name str 2-9, id uuid 10+, partitions [partition i32, error i16]]"),
    "OffsetFetch": (
        9, 6, "group str 1-7, topics ?2 [name str, partitions []i32] 1-7, "
        "groups [group str, member str? 9+, member_epoch i32 9+, topics ?8 [name str 8-9, id uuid 10+, partitions []i32]] 8+, stable bool 7+",
        "throttle i32 3+, topics [name str, partitions [partition i32, offset i64, epoch i32 5+, metadata str?, error i16]] 1-7, error i16 2-7, "
        "groups [group str, topics [name str 8-9, id uuid 10+, partitions [partition i32, offset i64, epoch i32, metadata str?, error i16]], error i16] 8+"),
    "FindCoordinator": (
        10, 3, "key str 0-3, type i8 1+, keys []str 4+",
        "throttle i32 1+, error i16 0-3, message str? 1-3, node i32 0-3, host str 0-3, port i32 0-3, "
        "coordinators [key str, node i32, host str, port i32, error i16, message str?] 4+"),
    "JoinGroup": (
        11, 6, "group str, session i32, rebalance i32 1+, member str, instance str? 5+, kind str, protocols [name str, metadata bytes], reason str? 8+",
        "throttle i32 2+, error i16, generation i32, kind str? 7+, protocol str?7, leader str, skip bool 9+, member str, "
        "members [member str, instance str? 5+, metadata bytes]"),
    "Heartbeat": (12, 4, "group str, generation i32, member str, instance str? 3+", "throttle i32 1+, error i16"),
    "LeaveGroup": (
        13, 4, "group str, member str 0-2, members [member str, instance str?, reason str? 5+] 3+",
        "throttle i32 1+, error i16, members [member str, instance str?, error i16] 3+"),
    "SyncGroup": (
        14, 4, "group str, generation i32, member str, instance str? 3+, kind str? 5+, protocol str? 5+, assignments [member str, assignment bytes]",
        "throttle i32 1+, error i16, kind str? 5+, protocol str? 5+, assignment bytes"),
    "DescribeGroups": (
        15, 5, "groups []str, operations bool 3+",
        "throttle i32 1+, groups [error i16, message str? 6+, group str, state str, kind str, protocol str, "
        "members [member str, instance str? 4+, client str, host str, metadata bytes, assignment bytes], operations i32 3+]"),
    "ListGroups": (
        16, 3, "states []str 4+, types []str 5+",
        "throttle i32 1+, error i16, groups [group str, kind str, state str 4+, type str 5+]"),
    "DeleteGroups": (42, 2, "groups []str", "throttle i32, results [group str, error i16]"),
    "OffsetDelete": (
        47, 99, "group str, topics [name str, partitions [partition i32]]",
        "error i16, throttle i32, topics [name str, partitions [partition i32, error i16]]"),
    "Metadata": (
        3, 9, "topics [id uuid, name str?], create bool, operations bool",
        "throttle i32, brokers [node i32, host str, port i32, rack str?], cluster str?, controller i32, "
        "topics [error i16, name str?, id uuid, internal bool, partitions [error i16, partition i32, leader i32, epoch i32, replicas []i32, "
        "isr []i32, offline []i32], operations i32]"),  # version 12
    "DeleteRecords": (
        21, 2, "topics [name str, partitions [partition i32, offset i64]], timeout i32",
        "throttle i32, topics [name str, partitions [partition i32, low i64, error i16]]"),
    "InitProducerId": (
        22, 2, "transactional str?, timeout i32, producer i64 3+, epoch i16 3+",
        "throttle i32, error i16, producer i64, epoch i16"),
    "OffsetForLeaderEpoch": (
        23, 4, "replica i32 3+, topics [name str, partitions [partition i32, current i32, epoch i32]]",
        "throttle i32, topics [name str, partitions [error i16, partition i32, epoch i32, end i64]]"),
    "DescribeAcls": (
        29, 2, "kind i8, name str?, pattern i8, principal str?, host str?, operation i8, permission i8",
        "throttle i32, error i16, message str?, resources [kind i8, name str, pattern i8, acls [principal str, host str, operation i8, permission i8]]"),
    "DescribeConfigs": (
        32, 4, "resources [kind i8, name str, keys []str?], synonyms bool, documentation bool 3+",
        "throttle i32, results [error i16, message str?, kind i8, name str, configs [name str, value str?, read_only bool, "
        "source i8, sensitive bool, synonyms [name str, value str?, source i8], type i8 3+, documentation str? 3+]]"),
    "AlterConfigs": (
        33, 2, "resources [kind i8, name str, configs [name str, value str?]], validate bool",
        "throttle i32, results [error i16, message str?, kind i8, name str]"),
    "DescribeClientQuotas": (
        48, 1, "components [kind str, match i8, value str?], strict bool",
        "throttle i32, error i16, message str?, entries ?0 [entity [kind str, name str?], values [key str]]"),  # no values are known here
    "DescribeUserScramCredentials": (
        50, 0, "users ?0 [name str]",
        "throttle i32, error i16, message str?, results [user str, error i16, message str?, infos [mechanism i8, iterations i32]]"),
    "DescribeCluster": (
        60, 0, "operations bool, kind i8 1+, fenced bool 2+",
        "throttle i32, error i16, message str?, kind i8 1+, cluster str, controller i32, "
        "brokers [node i32, host str, port i32, rack str?, fenced bool 2+], operations i32"),
    "DescribeProducers": (
        61, 0, "topics [name str, partitions []i32]",
        "throttle i32, topics [name str, partitions [partition i32, error i16, message str?, "
        "producers [id i64, epoch i32, sequence i32, timestamp i64, coordinator i32, txn i64]]]"),
    "SaslHandshake": (17, 99, "mechanism str", "error i16, mechanisms []str"),
    "ListTransactions": (
        66, 0, "states []str, producers []i64, duration i64 1+, pattern str? 2+",
        "throttle i32, error i16, unknown []str, transactions [name str, id i64, state str]"),
    "ListConfigResources": (74, 0, "kinds []i8 1+", "throttle i32, error i16, resources [name str, kind i8 1+]"),
    "DescribeTopicPartitions": (
        75, 0, "topics [name str], limit i32, cursor one? [topic str, partition i32]",
        "throttle i32, topics [error i16, name str?, id uuid, internal bool, partitions [error i16, partition i32, leader i32, epoch i32, "
        "replicas []i32, isr []i32, elr ?0 []i32, last_elr ?0 []i32, offline []i32], operations i32], cursor one? [topic str, partition i32]"),
    "IncrementalAlterConfigs": (
        44, 1, "resources [kind i8, name str, configs [name str, op i8, value str?]], validate bool",
        "throttle i32, results [error i16, message str?, kind i8, name str]"),
}
NEVER = 99


class Field:
    def __init__(self, name):
        self.name, self.type, self.first, self.last, self.null_from, self.members = name, None, 0, NEVER, NEVER, None

    def is_in(self, version): return self.first <= version <= self.last


def parse(text):
    words = re.findall(r"\[\]\w+|[\[\],]|[^\s\[\],]+", text)

    def fields():
        out = []
        while words and words[0] != "]":
            f = Field(words.pop(0))
            while words and words[0] not in ",]":
                w = words.pop(0)
                if w == "[":
                    f.members = fields()
                    words.pop(0)
                elif w[0].isdigit():
                    a, dash, b = w.partition("-")
                    f.first, f.last = int(a.rstrip("+")), int(b) if dash else NEVER if w[-1] == "+" else int(a)
                else:
                    kind, null, since = w.partition("?")
                    f.type = kind or f.type
                    f.null_from = int(since or 0) if null else NEVER
            out.append(f)
            if words and words[0] == ",":
                words.pop(0)
        return out
    return fields()


PARSED = {name: (key, flexible, parse(q), parse(a)) for name, (key, flexible, q, a) in APIS.items()}
PLAIN = {"i8": i8, "i16": i16, "i32": i32, "i64": i64, "bool": i8, "i16": i16}


def encode(fields, values, version, flexible):
    def length(n): return uvarint(n + 1) if flexible else i32(n)

    def text(s):
        if not flexible:
            return string(s)
        return b"\0" if s is None else uvarint(len(s.encode()) + 1) + s.encode()

    def blob(b): return uvarint(len(b) + 1) + b if flexible else data(b)

    def one(f, v):
        if f.type == "one":
            return b"\xff" if v is None else b"\1" + encode(f.members, v, version, flexible)
        if f.members is not None or f.type.startswith("[]"):
            if v is None and f.null_from <= version:
                return length(-1)
            item = (lambda x: encode(f.members, x, version, flexible)) if f.members is not None else text if f.type == "[]str" else PLAIN[f.type[2:]]
            return length(len(v or ())) + b"".join(item(x) for x in v or ())
        if f.type == "str":
            return text(v if v is not None or f.null_from <= version else "")
        if f.type == "uuid":
            return v or bytes(16)
        return blob(v or b"") if f.type == "bytes" else PLAIN[f.type](v or 0)
    unknown = set(values) - {f.name for f in fields}
    assert not unknown, unknown
    return b"".join(one(f, values.get(f.name)) for f in fields if f.is_in(version)) + (b"\0" if flexible else b"")


def decode(fields, r, version, flexible):
    def length(): return r.uvarint() - 1 if flexible else r.i32()

    def word():
        n = r.uvarint() - 1 if flexible else r.i16()
        return None if n < 0 else r.take(n).decode()

    def one(f):
        if f.type == "one":
            return None if r.i8() < 0 else decode(f.members, r, version, flexible)
        if f.members is not None or f.type.startswith("[]"):
            n = length()
            return None if n < 0 else [decode(f.members, r, version, flexible) if f.members is not None else word() if f.type == "[]str" else getattr(r, f.type[2:])()
                                         for _ in range(n)]
        if f.type == "str":
            return word()
        if f.type == "uuid":
            return r.take(16)
        if f.type == "bytes":
            n = length()
            return None if n < 0 else r.take(n)
        return bool(r.i8()) if f.type == "bool" else getattr(r, f.type)()
    out = {f.name: one(f) for f in fields if f.is_in(version)}
    if flexible:
        assert r.uvarint() == 0, "tagged fields"
    return out


class MsgConn(Conn):
    def send_msg(self, api, version, client="test", **values):
        key, flexible, request, _ = PARSED[api]
        return self.send(key, version, encode(request, values, version, version >= flexible), client=client, flexible=version >= flexible)

    def got_msg(self, api, version):
        _, flexible, _, response = PARSED[api]
        r = Reader(self.frame())
        r.i32()
        if version >= flexible:
            assert r.uvarint() == 0, "tagged fields"
        out = decode(response, r, version, version >= flexible)
        assert r.rest() == 0, "%d bytes behind the answer" % r.rest()
        return out

    def ask_msg(self, api, version, **values):
        self.send_msg(api, version, **values)
        return self.got_msg(api, version)

    def topic_id(self, name):
        return self.ask_msg("Metadata", 12, topics=[dict(name=name)])["topics"][0]["id"]
