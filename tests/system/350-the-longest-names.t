# SPDX-License-Identifier: Apache-2.0
# Names as long as the protocol has room for, in every field of every group request of every version: each is answered, can be kept in a record and
# described to clients of any version. One byte more is refused as Apache Kafka refuses it: the connection is closed.
klogd_start --override group.initial.rebalance.delay.ms=0 --override group.min.session.timeout.ms=1
topic t 1
"$PY" - <<'X' || fail "long names"
from kmsg import *
from kgroup import GroupConn
MOST = 32767
def C(): return MsgConn(timeout=20)
wait = GroupConn()
while wait.coordinator("g") != 0: pass

def plain(api, version):
    member = dict(member="m", instance=None, assignment=b"a")
    values = {
        "OffsetCommit": dict(group="g", generation=-1, retention=-1, topics=[dict(name="t", partitions=[dict(partition=0, offset=1, epoch=-1, metadata="")])]),
        "OffsetFetch": dict(group="g", topics=[dict(name="t", partitions=[0])], groups=[dict(group="g", member_epoch=-1, topics=[dict(name="t", partitions=[0])])]),
        "FindCoordinator": dict(key="g", keys=["g"]),
        "JoinGroup": dict(group="g", session=1000, rebalance=1000, kind="consumer", protocols=[dict(name="range", metadata=b"m")]),
        "Heartbeat": dict(group="g", generation=1, member="m"),
        "LeaveGroup": dict(group="g", member="m", members=[dict(member="m")]),
        "SyncGroup": dict(group="g", generation=1, member="m", kind="consumer", protocol="range", assignments=[dict(member="m", assignment=b"a")]),
        "DescribeGroups": dict(groups=["g"]), "ListGroups": dict(states=["Stable"], types=["classic"]), "DeleteGroups": dict(groups=["nobody"]),
        "OffsetDelete": dict(group="g", topics=[dict(name="t", partitions=[dict(partition=0)])]),
    }[api]
    fields = {f.name for f in PARSED[api][2]}
    assert set(values) <= fields, (api, set(values) - fields)
    return values

def strings(fields, version, path=()):
    """Where a version's request has strings: (name, ...) each; "[]" for one in a list of them."""
    for f in fields:
        if not f.is_in(version):
            continue
        if f.members is not None:
            yield from strings(f.members, version, path + (f.name,))
        elif f.type in ("str", "[]str"):
            yield path + (f.name,) + (("[]",) if f.type == "[]str" else ())

def put(values, path, text):
    for name in path[:-1]:
        if name in values and isinstance(values[name], list) and path[-1] != "[]":
            values = values[name][0]
    if path[-1] == "[]":
        owner = values
        for name in path[:-2]:
            owner = owner[name][0]
        owner[path[-2]] = [text]
    else:
        values[path[-1]] = text

LAST = dict(OffsetCommit=9, OffsetFetch=9, FindCoordinator=5, JoinGroup=9, Heartbeat=4, LeaveGroup=5, SyncGroup=5, DescribeGroups=6, ListGroups=5,
            DeleteGroups=2, OffsetDelete=0)
FIRST = dict(OffsetCommit=2, OffsetFetch=1)
def look_on():
    """Everybody looks at what has come of it."""
    c = C()
    names = sorted({x["group"] for x in c.ask_msg("ListGroups", 5)["groups"]} | {"g"})
    for v in range(7):
        assert len(c.ask_msg("DescribeGroups", v, groups=names)["groups"]) == len(names)
    c.close()
n = 0
for api, last in LAST.items():
    for v in range(FIRST.get(api, 0), last + 1):
        flexible = v >= PARSED[api][1]
        for path in strings(PARSED[api][2], v):
            for size in (MOST, MOST + 1, 100000) if flexible else (MOST,):
                values = plain(api, v)
                if api == "JoinGroup" and path == ("member",):
                    values["session"] = 6000
                put(values, path, "x" * size)
                values = {k: x for k, x in values.items() if any(f.name == k and f.is_in(v) for f in PARSED[api][2])}
                c = C()
                try:
                    c.send_msg(api, v, **values)
                    c.got_msg(api, v)
                    assert size == MOST, (api, v, path, size)
                except EOFError:
                    assert size > MOST, (api, v, path, size)
                c.close()
                n += 1
    look_on()
print(n, "requests")

# A member whose id is made from a long name joins, syncs and is described: its id is as long as fits.
sizes = set()
for v in range(10):
    for client, instance in (("c" * 32760, None), ("\u4e2d" * 10922, None), ("c", "i" * MOST if v >= 5 else None)):
        g, c = "of %d %d %s" % (v, len(client), instance is not None), MsgConn(timeout=20)
        join = dict(group=g, session=6000, rebalance=1000, kind="k" * MOST, protocols=[dict(name="p" * MOST, metadata=b"m")], **(dict(instance=instance) if v >= 5 else {}))
        if v == 0: del join["rebalance"]
        def ask(member):
            c.send_msg("JoinGroup", v, client=client, member=member, **join)
            return c.got_msg("JoinGroup", v)
        j = ask("")
        if j["error"] == 79: j = ask(j["member"])
        assert j["error"] == 0, (v, len(client), j["error"])
        sizes.add(len(j["member"].encode()))
        s = dict(group=g, generation=j["generation"], member=j["member"], assignments=[dict(member=j["member"], assignment=b"a")])
        for sv in range(6):
            c.send_msg("SyncGroup", sv, client=client, **s, **(dict(kind="k" * MOST, protocol="p" * MOST) if sv >= 5 else {}), **(dict(instance=instance) if sv >= 3 else {}))
            a = c.got_msg("SyncGroup", sv)
            assert (a["error"], a["assignment"]) == (0, b"a"), (v, sv, a["error"])
        look_on()
assert max(sizes) == MOST, sizes

# A note has as many characters as offset.metadata.max.bytes says, as Java counts them.
g = GroupConn()
for note, code in (("a" * 4096, 0), ("a" * 4097, 12), ("\u00e9" * 4096, 0), ("\u00e9" * 4097, 12), ("\u4e2d" * 4096, 0), ("\U0001f600" * 2048, 0), ("\U0001f600" * 2049, 12)):
    assert g.commit("notes", {"t": [(0, 5, note)]}) == {("t", 0): code}, (note[0], len(note))
    if code == 0:
        assert g.positions("notes")[1][("t", 0)][2] == note
X
klogd_kill
klogd_restart
"$PY" - <<'X' || fail "after kill -9"
from kgroup import *
g = GroupConn(timeout=20)
while g.describe("notes")[0] != 0: pass
assert g.positions("notes")[1][("t", 0)][2] == "\U0001f600" * 2048
X
klogd_stop
# With the largest limit a note as long as a string can be is kept, and longer ones do not exist.
klogd_start --override offset.metadata.max.bytes=2147483647
"$PY" - <<'X' || fail "the longest note"
from kgroup import *
g = GroupConn(timeout=20)
while g.commit("notes", {"t": [(0, 6, "n" * 32767)]}) != {("t", 0): 0}: pass
assert g.positions("notes")[1][("t", 0)][2] == "n" * 32767
c = GroupConn(timeout=20)
c.send(8, 8, cstring("notes") + i32(-1) + cstring("") + cstring(None) + carray([cstring("t") + carray([i32(0) + i64(7) + i32(-1) + cstring("n" * 40000) + b"\0"]) + b"\0"]) + b"\0", flexible=True)
try: c.frame(); raise SystemExit("40,000 bytes were taken")
except EOFError: pass
assert g.positions("notes")[1][("t", 0)][0] == 6
X
klogd_stop
