# SPDX-License-Identifier: Apache-2.0
"""The group APIs in every version, right and wrong requests, each answer printed whole; like group_scenarios.py for two brokers to be
compared line by line, and with the same settings. Topics t (3 partitions) and u (1) exist.

    group_versions.py BROKER"""
import re
import sys
import time

from kgroup import error, subscription
from kmsg import MsgConn

BROKER = sys.argv[1]
c = MsgConn(BROKER)
P = [{"name": "range", "metadata": b"m"}]


def shown(v):
    if isinstance(v, dict):
        if v.get("message") and v["error"]:
            v["message"] = "TEXT"
        return "{%s}" % " ".join("%s=%s" % (k, error(x) if k == "error" else shown(x)) for k, x in v.items())
    if isinstance(v, list):      # of topics, partitions, groups, members: in no order
        return "[%s]" % " ".join(sorted(shown(x) for x in v))
    if isinstance(v, str):
        return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", v if len(v) < 200 else "%d characters" % len(v)) or "''"
    return v.hex() or "''" if isinstance(v, bytes) else str(v)


def say(what, answer):
    print("  %-26s %s" % (what, shown(answer)[1:-1]))
    return answer


def ask(what, api, version, **values):
    return say(what, c.ask_msg(api, version, **values))


def title(text): print(text)


def ready(*groups):
    """Their coordinator has loaded what it has of them."""
    for g in groups:
        while c.ask_msg("DescribeGroups", 0, groups=[g])["groups"][0]["error"] in (14, 15, 16):
            time.sleep(0.05)


def joined(group, version=3, conn=None, **how):
    """A member of that group; with an id of its own first where the version wants that."""
    conn = conn or c
    how = dict({"kind": "consumer", "session": 10000, "rebalance": 60000, "protocols": P}, **how)
    j = conn.ask_msg("JoinGroup", version, group=group, **how)
    if j["error"] == 79:
        j = conn.ask_msg("JoinGroup", version, group=group, **dict(how, member=j["member"]))
    assert j["error"] == 0, error(j["error"])
    return j


def working(group, **how):
    """A member that has synced: the group is Stable."""
    j = joined(group, **how)
    s = c.ask_msg("SyncGroup", 3, group=group, generation=j["generation"], member=j["member"], instance=how.get("instance"),
                  assignments=[{"member": j["member"], "assignment": b"x"}])
    assert s["error"] == 0, error(s["error"])
    return j


while c.ask_msg("FindCoordinator", 0, key="any")["error"] != 0:    # makes __consumer_offsets
    time.sleep(0.05)
ready("any")

for v in range(6):
    title("FindCoordinator %d" % v)
    if v < 4:
        ask("a group", "FindCoordinator", v, key="g")
        ask("no name", "FindCoordinator", v, key="")
        if v >= 1:
            ask("an unknown type", "FindCoordinator", v, key="g", type=9)
    else:
        ask("groups", "FindCoordinator", v, keys=["g", "h", "g"])
        ask("none", "FindCoordinator", v, keys=[])
        ask("no name", "FindCoordinator", v, keys=[""])
        ask("an unknown type", "FindCoordinator", v, keys=["g"], type=9)

for v in range(10):
    title("JoinGroup %d and its companions: a member's life" % v)
    g, s, h = "life%d" % v, min(v, 5), min(v, 4)
    how = {"group": g, "kind": "consumer", "session": 10000, "rebalance": 60000, "protocols": P + [{"name": "rr", "metadata": b""}]}
    ready(g)
    j = ask("join", "JoinGroup", v, **how)
    if v >= 4:
        j = ask("join", "JoinGroup", v, member=j["member"], reason="why not", **how)
    m, gen = j["member"], j["generation"]
    ask("heartbeat before sync", "Heartbeat", h, group=g, generation=gen, member=m)
    ask("sync", "SyncGroup", s, group=g, generation=gen, member=m, kind="consumer", protocol="range",
        assignments=[{"member": m, "assignment": b"all"}])
    ask("heartbeat", "Heartbeat", h, group=g, generation=gen, member=m)
    ask("heartbeat, generation", "Heartbeat", h, group=g, generation=gen + 1, member=m)
    ask("heartbeat, stranger", "Heartbeat", h, group=g, generation=gen, member="stranger")
    ask("heartbeat, no group", "Heartbeat", h, group="", generation=gen, member=m)
    ask("heartbeat, other group", "Heartbeat", h, group="nobody", generation=gen, member=m)
    ask("sync again", "SyncGroup", s, group=g, generation=gen, member=m, kind="consumer", protocol="range")
    ask("sync, generation", "SyncGroup", s, group=g, generation=gen - 1, member=m, kind="consumer", protocol="range")
    ask("sync, stranger", "SyncGroup", s, group=g, generation=gen, member="stranger", kind="consumer", protocol="range")
    ask("sync, no group", "SyncGroup", s, group="", generation=gen, member=m, kind="consumer", protocol="range")
    ask("sync, other group", "SyncGroup", s, group="nobody", generation=gen, member=m, kind="consumer", protocol="range")
    if s >= 5:
        ask("sync, no names", "SyncGroup", s, group=g, generation=gen, member=m, kind=None, protocol=None)
        ask("sync, one name", "SyncGroup", s, group=g, generation=gen, member=m, kind="consumer", protocol=None)
        ask("sync, other type", "SyncGroup", s, group=g, generation=gen, member=m, kind="connect", protocol="range")
        ask("sync, other protocol", "SyncGroup", s, group=g, generation=gen, member=m, kind="consumer", protocol="rr")
    if s >= 3:
        ask("sync, an instance", "SyncGroup", s, group=g, generation=gen, member=m, instance="i", kind="consumer", protocol="range")
        ask("heartbeat, an instance", "Heartbeat", h, group=g, generation=gen, member=m, instance="i")
    ask("join, stranger", "JoinGroup", v, member="stranger", **how)
    ask("join, other type", "JoinGroup", v, **dict(how, kind="connect"))
    ask("join, no type", "JoinGroup", v, **dict(how, kind=""))
    ask("join, no protocols", "JoinGroup", v, **dict(how, protocols=[]))
    ask("join, other protocols", "JoinGroup", v, **dict(how, protocols=[{"name": "x", "metadata": b""}]))
    ask("join, no group", "JoinGroup", v, **dict(how, group=""))
    ask("join, short session", "JoinGroup", v, **dict(how, session=99))
    ask("join, long session", "JoinGroup", v, **dict(how, session=1800001))
    if s < 3:
        ask("leave, stranger", "LeaveGroup", s, group=g, member="stranger")
        ask("leave, no group", "LeaveGroup", s, group="", member=m)
        ask("leave, other group", "LeaveGroup", s, group="nobody", member=m)
        ask("leave", "LeaveGroup", s, group=g, member=m)
        ask("leave again", "LeaveGroup", s, group=g, member=m)
    else:
        ask("leave, others", "LeaveGroup", s, group=g, members=[
            {"member": "stranger"}, {"member": "", "instance": "i"}, {"member": m, "instance": "i"}, {"member": ""}])
        ask("leave, nobody", "LeaveGroup", s, group=g, members=[])
        ask("leave, no group", "LeaveGroup", s, group="", members=[{"member": m}])
        ask("leave, other group", "LeaveGroup", s, group="nobody", members=[{"member": m}])
        ask("leave, twice", "LeaveGroup", s, group=g, members=[{"member": m, "reason": "enough"}, {"member": m}])

for v in range(5, 10):
    title("JoinGroup %d and its companions: a static member's life" % v)
    g, s, h = "static%d" % v, min(v, 5), min(v, 4)
    how = {"group": g, "kind": "consumer", "session": 10000, "rebalance": 60000, "protocols": P, "instance": "i1"}
    ready(g)
    j = ask("join", "JoinGroup", v, **how)
    old, gen = j["member"], j["generation"]
    ask("sync", "SyncGroup", s, group=g, generation=gen, member=old, instance="i1", kind="consumer", protocol="range",
        assignments=[{"member": old, "assignment": b"all"}])
    ask("heartbeat", "Heartbeat", h, group=g, generation=gen, member=old, instance="i1")
    ask("describe", "DescribeGroups", min(v, 6), groups=[g])
    j = ask("join anew", "JoinGroup", v, **how)
    new = j["member"]
    ask("join anew, other metadata", "JoinGroup", v, **dict(how, member=new, protocols=[{"name": "range", "metadata": b"other"}]))
    gen = c.ask_msg("JoinGroup", v, **dict(how, member=new, protocols=[{"name": "range", "metadata": b"other"}]))["generation"]
    ask("heartbeat, former id", "Heartbeat", h, group=g, generation=gen, member=old, instance="i1")
    ask("heartbeat, no id", "Heartbeat", h, group=g, generation=gen, member="", instance="i1")
    ask("heartbeat, no instance", "Heartbeat", h, group=g, generation=gen, member=new)
    ask("sync, former id", "SyncGroup", s, group=g, generation=gen, member=old, instance="i1", kind="consumer", protocol="range")
    ask("join, former id", "JoinGroup", v, member=old, **how)
    ask("join, unknown instance", "JoinGroup", v, **dict(how, member=new, instance="i9"))
    ask("commit, former id", "OffsetCommit", 7, group=g, generation=gen, member=old, instance="i1",
        topics=[{"name": "t", "partitions": [{"partition": 0, "offset": 1, "epoch": -1}]}])
    ask("leave, former id", "LeaveGroup", s, group=g, members=[{"member": old, "instance": "i1"}])
    ask("leave, by instance", "LeaveGroup", s, group=g, members=[{"member": "", "instance": "i1"}])
    ask("describe", "DescribeGroups", min(v, 6), groups=[g])

for v in range(2, 10):
    title("OffsetCommit %d" % v)
    g = "commit%d" % v
    ready(g)

    def commit(what, parts, **how):
        topics = {}
        for t, p, offset, *more in parts:
            topics.setdefault(t, []).append(dict(dict(zip(("metadata", "epoch"), more)), partition=p, offset=offset))
        return ask(what, "OffsetCommit", v, **dict({"group": g, "generation": -1, "retention": -1, "topics": [
            {"name": t, "partitions": [dict({"epoch": -1, "metadata": ""}, **p) for p in ps]} for t, ps in topics.items()]}, **how))
    commit("no group there, generation", [("t", 0, 1)], generation=3)
    commit("no group there, member", [("t", 0, 1)], member="stranger")
    commit("no group name", [("t", 0, 1)], group="")
    commit("as a tool", [("t", 0, 5, "note", 7), ("t", 1, 6, None), ("u", 0, 7, "x" * 4096)])
    commit("what is not there", [("t", 3, 1), ("t", -1, 1), ("gone", 0, 1), ("t", 2, 4)])
    commit("long note", [("t", 0, 9, "x" * 4097), ("t", 1, 10)])
    commit("odd offsets", [("t", 0, -1), ("t", 1, -5), ("t", 2, 1 << 60)])
    commit("nothing", [])
    commit("one partition twice", [("t", 0, 1), ("t", 0, 2)])
    commit("no topic name", [("", 0, 1)])
    if v <= 4:
        commit("for a while", [("u", 0, 8)], retention=60000)
    ask("fetch", "OffsetFetch", 5, group=g, topics=None)
    j = working(g)
    commit("as a tool, with members", [("t", 0, 11)])
    commit("as a member", [("t", 0, 12)], generation=j["generation"], member=j["member"])
    commit("old generation", [("t", 0, 13)], generation=j["generation"] - 1, member=j["member"])
    commit("next generation", [("t", 0, 13)], generation=j["generation"] + 1, member=j["member"])
    commit("stranger", [("t", 0, 13)], generation=j["generation"], member="stranger")
    commit("no member id", [("t", 0, 13)], generation=j["generation"], member="")
    if v >= 7:
        commit("an instance", [("t", 0, 14)], generation=j["generation"], member=j["member"], instance="i")
        commit("an instance, as a tool", [("t", 0, 14)], instance="i")
    ask("fetch", "OffsetFetch", 5, group=g, topics=[{"name": "t", "partitions": [0]}])

g = "fetch"
ready(g, "fetch2")
c.ask_msg("OffsetCommit", 7, group=g, generation=-1, topics=[
    {"name": "t", "partitions": [{"partition": 0, "offset": 5, "epoch": 2, "metadata": "note"}, {"partition": 2, "offset": 6, "epoch": -1}]}])
for v in range(1, 10):
    title("OffsetFetch %d" % v)
    some = [{"name": "t", "partitions": [0, 1, 9]}, {"name": "gone", "partitions": [0]}]
    if v < 8:
        ask("some", "OffsetFetch", v, group=g, topics=some)
        ask("a group that is not there", "OffsetFetch", v, group="nobody", topics=some)
        ask("no group name", "OffsetFetch", v, group="", topics=some)
        ask("nothing", "OffsetFetch", v, group=g, topics=[])
        if v >= 2:
            ask("everything", "OffsetFetch", v, group=g, topics=None)
            ask("all of a group not there", "OffsetFetch", v, group="nobody", topics=None)
            ask("all of no group name", "OffsetFetch", v, group="", topics=None)
        if v >= 7:
            ask("stable", "OffsetFetch", v, group=g, topics=some, stable=True)
        continue

    def one(group, topics=None, member=None, epoch=-1): return {"group": group, "topics": topics, "member": member, "member_epoch": epoch}
    ask("three groups", "OffsetFetch", v, groups=[one(g, some), one(g), one("nobody", some), one("nobody")])
    ask("no group name", "OffsetFetch", v, groups=[one("", some), one("")])
    ask("no groups", "OffsetFetch", v, groups=[])
    ask("nothing", "OffsetFetch", v, groups=[one(g, [])])
    ask("stable", "OffsetFetch", v, groups=[one(g)], stable=True)
    if v >= 9:
        ask("a stranger", "OffsetFetch", v, groups=[one(g, some, "stranger", 3)])
        j = working("fetch2")
        c.ask_msg("OffsetCommit", 7, group="fetch2", generation=j["generation"], member=j["member"], topics=[
            {"name": "t", "partitions": [{"partition": 0, "offset": 5, "epoch": 2, "metadata": "note"}]}])
        ask("a member", "OffsetFetch", v, groups=[one("fetch2", some, j["member"], j["generation"])])
        ask("a member, old generation", "OffsetFetch", v, groups=[one("fetch2", some, j["member"], 0)])
        ask("a stranger in a group", "OffsetFetch", v, groups=[one("fetch2", some, "stranger", j["generation"])])
        ask("no member, a generation", "OffsetFetch", v, groups=[one("fetch2", some, None, 1)])

ready("dyn", "stat", "conn", "empty")
working("dyn", protocols=[{"name": "range", "metadata": subscription(["t"])}])
working("stat", version=5, instance="i1")
working("conn", kind="connect")
c.ask_msg("OffsetCommit", 7, group="empty", generation=-1, topics=[{"name": "t", "partitions": [{"partition": 0, "offset": 5}]}])
mine = ("dyn", "stat", "conn", "empty")
for v in range(7):
    title("DescribeGroups %d" % v)
    ask("groups", "DescribeGroups", v, groups=["dyn", "stat", "conn", "empty", "nobody", "", "dyn"])
    ask("none", "DescribeGroups", v, groups=[])
    if v >= 3:
        ask("what one may do", "DescribeGroups", v, groups=["dyn", "empty", "nobody", ""], operations=True)

for v in range(6):
    title("ListGroups %d" % v)

    def listed(what, **how):
        a = c.ask_msg("ListGroups", v, **how)
        a["groups"] = sorted((x for x in a["groups"] if x["group"] in mine), key=lambda x: x["group"])
        say(what, a)
    listed("all")
    if v >= 4:
        listed("stable ones", states=["Stable"])
        listed("in lower case", states=["stable"])
        listed("two states", states=["Stable", "Empty", "Stable"])
        listed("an unknown state", states=["Lazy"])
    if v >= 5:
        listed("classic ones", types=["classic"])
        listed("with a capital", types=["Classic"])
        listed("consumer ones", types=["consumer"])
        listed("an unknown type", types=["modern"])
        listed("type and state", types=["classic"], states=["Empty"])

for v in range(3):
    title("DeleteGroups %d" % v)
    c.ask_msg("OffsetCommit", 7, group="empty", generation=-1, topics=[{"name": "t", "partitions": [{"partition": 0, "offset": 5}]}])

    def deleted(what, *groups):
        a = c.ask_msg("DeleteGroups", v, groups=list(groups))
        a["results"].sort(key=lambda x: x["group"])
        say(what, a)
    deleted("several", "empty", "dyn", "nobody", "")
    deleted("again", "empty")
    deleted("none")
    c.ask_msg("OffsetCommit", 7, group="empty", generation=-1, topics=[{"name": "t", "partitions": [{"partition": 0, "offset": 5}]}])
    deleted("twice in one", "empty", "empty")

title("OffsetDelete 0")
c.ask_msg("OffsetCommit", 7, group="empty", generation=-1, topics=[
    {"name": "t", "partitions": [{"partition": p, "offset": 5} for p in range(3)]}, {"name": "u", "partitions": [{"partition": 0, "offset": 1}]}])


def delete(what, group, *parts):
    topics = {}
    for t, p in parts:
        topics.setdefault(t, []).append({"partition": p})
    ask(what, "OffsetDelete", 0, group=group, topics=[{"name": t, "partitions": ps} for t, ps in topics.items()])


delete("some", "empty", ("t", 0), ("t", 1), ("t", 9), ("u", 0), ("gone", 0))
delete("again", "empty", ("t", 0))
delete("nothing", "empty")
delete("of nobody", "nobody", ("t", 0))
delete("of no group name", "", ("t", 0))
delete("of members", "dyn", ("t", 0), ("u", 0))
delete("of what is no consumer", "conn", ("t", 0))
delete("the last", "empty", ("t", 2))
ask("describe", "DescribeGroups", 5, groups=["empty"])
