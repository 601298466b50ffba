# SPDX-License-Identifier: Apache-2.0
"""Scripted scenarios of the classic group protocol. Prints what a broker answered, in a form that does not depend on the
broker, its ids or its clock, so that two brokers can be compared line by line.

    group_scenarios.py BROKER

The broker is started with group.initial.rebalance.delay.ms=0, group.min.session.timeout.ms=100 and group.max.size=4."""
import sys
import time

from kgroup import GroupConn, assigned, assignment, error, subscription

BROKER = sys.argv[1]
names = {}                           # member id -> what it is called here
admin = GroupConn(BROKER)
while admin.coordinator("any") != 0:    # makes __consumer_offsets
    time.sleep(0.05)
group = ""


def name(member_id):
    return names.get(member_id, member_id if member_id in ("", "stranger") else "?") if member_id is not None else "null"


def say(who, what, result):
    print("  %-4s %-28s %s" % (who, what, result))


def scenario(title):
    global group
    names.clear()
    group = "%02d" % (scenario.n)
    scenario.n += 1
    while admin.describe(group)[0] in (14, 15, 16):      # its coordinator is just starting
        time.sleep(0.05)
    print("%s: %s" % (group, title))


scenario.n = 1


def wait_state(state, members=None):
    for _ in range(500):
        d = admin.describe(group)
        if d[1] == state and (members is None or len(d[4]) == members):
            return
        time.sleep(0.02)
    print("  the group did not become %s but %s with %d members" % (state, d[1], len(d[4])))


class M:
    """A member. Its name is its client id; ids it is given are printed as NAME1, NAME2, ..."""

    def __init__(self, who, version=3, instance=None, metadata=b"m", protocols=None, **how):
        self.who, self.version, self.instance, self.how = who, version, instance, how
        self.protocols = protocols or [("range", metadata)]
        self.c = GroupConn(BROKER)
        self.id, self.gen, self.n = "", -1, 0

    def learn(self, member_id):
        if member_id and member_id not in names and member_id != "stranger":
            self.n += 1
            names[member_id] = "%s%d" % (self.who, self.n)

    def send_join(self, **change):
        how = dict(self.how, protocols=self.protocols, member_id=self.id, version=self.version, client=self.who)
        if self.instance is not None:
            how["instance"] = self.instance
        how.update(change)
        self.asked = how["version"]
        self.c.send_join(group, **how)

    def got_join(self, what="join"):
        j = self.c.got_join(self.asked)
        if j.code in (0, 79):
            self.learn(j.member_id)
            self.id, self.gen = j.member_id, j.generation
        members = ",".join(sorted("%s%s" % (name(m), "" if i is None else "/" + i) for m, i, _ in j.members))
        say(self.who, what, "%s gen=%d protocol=%s leader=%s me=%s members=[%s]%s" % (
            error(j.code), j.generation, j.protocol or "", name(j.leader), name(j.member_id), members,
            " skip" if j.skip else ""))
        return j

    def join(self, what="join", **change):
        self.send_join(**change)
        return self.got_join(what)

    def park_join(self, members=None, what="join", **change):
        self.send_join(**change)
        wait_state("PreparingRebalance", members)
        say(self.who, what, "waits" if self.c.waits() else "was answered")

    def send_sync(self, parts=None, **change):
        how = dict(generation=self.gen, member_id=self.id, instance=self.instance)
        how.update(change)
        self.c.send_sync(group, how["generation"], how["member_id"],
                         [(m, b) for m, b in parts.items()] if parts else (), how["instance"])

    def got_sync(self, what="sync"):
        code, b = self.c.got_sync()
        say(self.who, what, "%s assigned=%s" % (error(code), b.decode() if b[:1].isalpha() else assigned(b)))

    def sync(self, parts=None, what="sync", **change):
        self.send_sync(parts, **change)
        self.got_sync(what)

    def park_sync(self, what="sync", **change):
        self.send_sync(**change)
        say(self.who, what, "waits" if self.c.waits() else "was answered")

    def heartbeat(self, what="heartbeat", **change):
        how = dict(generation=self.gen, member_id=self.id, instance=self.instance)
        how.update(change)
        say(self.who, what, error(self.c.heartbeat(group, how["generation"], how["member_id"], how["instance"])))

    def commit(self, offset=1, what="commit", **change):
        how = dict(generation=self.gen, member_id=self.id, instance=self.instance)
        how.update(change)
        codes = self.c.commit(group, {"t": [(0, offset)]}, how["generation"], how["member_id"], how["instance"])
        say(self.who, what, error(codes["t", 0]))

    def leave(self, what="leave", **change):
        how = dict(member_id=self.id, instance=self.instance)
        how.update(change)
        code, codes = self.c.leave(group, (how["member_id"], how["instance"]))
        say(self.who, what, "%s %s" % (error(code), [error(c) for c in codes]))


def describe():
    code, state, kind, protocol, members, operations = admin.describe(group)
    say("", "describe", "%s %s type=%s protocol=%s" % (error(code), state, kind, protocol))
    for m, i, client, host, meta, assign in sorted(members, key=lambda m: name(m[0])):
        say("", "", "member %s instance=%s client=%s host=%s metadata=%d assignment=%d" % (
            name(m), i, client, host, len(meta), len(assign)))


def positions(wanted=None):
    code, got = admin.positions(group, wanted)
    say("", "positions", "%s %s" % (error(code), {k: v[:3] + (error(v[3]),) for k, v in sorted(got.items())}))


def two(state="Stable", **how):
    """A leader A and a follower B, in that state."""
    a, b = M("A", **how), M("B", **how)
    a.send_join()
    a.got_join()
    b.park_join(2)
    a.join()
    b.got_join()
    if state == "CompletingRebalance":
        return a, b
    b.send_sync()
    a.sync({a.id: b"forA", b.id: b"forB"})
    b.got_sync()
    if state == "PreparingRebalance":
        a.park_join(2, "join again")
    return a, b


def stranger(**how):
    m = M("S", **how)
    m.id, m.gen = "stranger", 1
    return m


# ---- the state table ----
scenario("what a group that never was answers")
s = stranger()
s.join()
s.sync()
s.heartbeat()
s.leave()
s.commit()
describe()
positions({"t": [0, 1]})
positions()
say("", "delete", [error(c) for c in admin.delete_groups(group).values()])
say("", "delete positions", error(admin.delete_positions(group, {"t": [0]})[0]))
s.commit(5, "simple commit", generation=-1, member_id="")
positions()
describe()

scenario("Empty: after the last member has left")
a = M("A")
a.join()
a.sync({a.id: b"all"})
a.commit(7)
describe()
a.leave()
describe()
for what in (a.join, a.sync, a.heartbeat, a.leave, a.commit):
    what()
a.commit(8, "simple commit", generation=-1, member_id="")
positions()
a.id = ""
a.join("join anew")

for state in "PreparingRebalance", "CompletingRebalance", "Stable":
    scenario("%s: requests of members and of others" % state)
    a, b = two(state)
    describe()
    s = stranger()
    s.join("join with a strange id")
    s.sync()
    s.heartbeat()
    s.leave()
    s.commit()
    s.commit(1, "simple commit", generation=-1, member_id="")
    b.heartbeat()
    b.heartbeat("heartbeat, old generation", generation=b.gen - 1)
    b.heartbeat("heartbeat, next generation", generation=b.gen + 1)
    b.commit()
    b.commit(1, "commit, old generation", generation=b.gen - 1)
    b.sync(what="sync, old generation", generation=b.gen - 1)
    if state != "CompletingRebalance":
        b.sync()
    else:
        b.join("join as before")
        a.join("join as before")
        b.park_sync()
    if state == "Stable":
        b.join("join as before")
    say("", "delete", [error(c) for c in admin.delete_groups(group).values()])
    describe()

scenario("Preparing: the last one waited for joins")
a, b = two("PreparingRebalance")
b.join()
a.got_join("join again")

scenario("Preparing: the last one waited for leaves")
a, b = two("PreparingRebalance")
b.leave()
a.got_join("join again")

scenario("Preparing: a new member comes")
a, b = two("PreparingRebalance")
c = M("C")
c.park_join(3)
b.join()
a.got_join("join again")
c.got_join()

scenario("Completing: a new member comes while a sync waits")
a, b = two("CompletingRebalance")
b.park_sync()
c = M("C")
c.park_join(3)
b.got_sync()

scenario("Completing: a member joins with other metadata")
a, b = two("CompletingRebalance")
b.park_sync()
a.park_join(2, "join, other metadata", protocols=[("range", b"other")])
b.got_sync()

scenario("Completing: a member leaves while a sync waits")
a, b = two("CompletingRebalance")
b.park_sync()
a.leave()
b.got_sync()
b.join()

scenario("Completing: the leader assigns, one is forgotten, one comes late")
a, b = two("CompletingRebalance")
a.sync({a.id: b"all", "stranger": b"what"})
b.sync()
describe()

scenario("Stable: the leader joins again")
a, b = two()
a.park_join(2)
b.heartbeat()
b.commit()
b.join()
a.got_join()

scenario("Stable: a follower joins with other metadata")
a, b = two()
b.park_join(2, "join, other metadata", protocols=[("range", b"other")])
a.join()
b.got_join()

scenario("Stable: a new member comes")
a, b = two()
c = M("C")
c.park_join(3)
b.heartbeat()
b.park_join(3)
a.join()
b.got_join()
c.got_join()

scenario("Stable: the leader leaves, a follower leads")
a, b = two()
a.leave()
b.heartbeat()
b.join()
b.sync({b.id: b"all"})

# ---- ids first ----
scenario("version 4 and later: the id first")
a = M("A", 4)
a.join()
describe()
a.join()
a.sync({a.id: b"all"})
describe()

scenario("a pending id holds up the rebalance, until it leaves")
a = M("A")
a.join()
b = M("B", 4)
b.join()
a.park_join(1, "join again", protocols=[("range", b"other")])
b.leave()
a.got_join("join again")

scenario("a pending id holds up the rebalance, until it expires")
a = M("A", session_ms=20000)
a.join()
b = M("B", 4, session_ms=700)
b.join()
a.park_join(1, "join again", protocols=[("range", b"other")])
a.got_join("join again")
b.join("join, too late")

scenario("a pending id comes back")
a = M("A")
a.join()
b = M("B", 4)
b.join()
a.park_join(1, "join again", protocols=[("range", b"other")])
b.join()
a.got_join("join again")

scenario("a pending id asks for other things")
b = M("B", 4)
b.join()
b.heartbeat()
b.sync()
b.commit(generation=1)
b.commit(3, "simple commit", generation=-1, member_id="")

# ---- protocols ----
scenario("protocols: votes, and who does not fit")
a = M("A", protocols=[("sticky", b"s"), ("range", b"r"), ("rr", b"rr")])
a.join()
b = M("B", protocols=[("rr", b"rr"), ("range", b"r")])
b.park_join(2)
c = M("C", protocols=[("range", b"r"), ("rr", b"rr")])
c.park_join(3)
a.join()
b.got_join()
c.got_join()
M("D", protocols=[("sticky", b"s")]).join("join, sticky only")
M("D", protocols=[("range", b"s")], kind="connect").join("join, other type")
M("D", protocols=[("range", b"s")], kind="").join("join, no type")
M("D", protocols=[("x", b"")]).join("join, unknown protocol")

scenario("protocols: a group's first member brings none")
m = M("A")
m.protocols = []
m.join()
m.protocols = [("range", b"m")]
m.join(kind="")

# ---- limits ----
scenario("limits: session time-outs and the group id")
M("A", session_ms=99).join()
M("A", session_ms=1800001).join()
M("A", session_ms=-1).join()
describe()
group = ""
s = stranger()
s.join()
s.sync()
s.heartbeat()
s.leave()
s.commit()
s.commit(1, "simple commit", generation=-1, member_id="")
positions()

scenario("limits: a fifth member")
ms = [M(x) for x in "ABCD"]
ms[0].join()
for i, m in enumerate(ms[1:]):
    m.park_join(i + 2)
ms[0].join()
for m in ms[1:]:
    m.got_join()
M("E").join("join, in Completing")
describe()

# ---- time ----
scenario("time: a session ends")
a, b = M("A", session_ms=30000), M("B", session_ms=400)
a.join()
b.park_join(2)
a.join()
b.got_join()
b.send_sync()
a.sync({a.id: b"forA", b.id: b"forB"})
b.got_sync()
wait_state("PreparingRebalance", 1)
describe()
b.heartbeat()
a.heartbeat()
a.join()

scenario("time: a straggler is dropped at the rebalance time-out")
a, b = two(session_ms=30000, rebalance_ms=1000)
a.park_join(2)
a.got_join()
b.heartbeat()
describe()

scenario("time: who does not sync is dropped")
a, b = two("CompletingRebalance", session_ms=30000, rebalance_ms=1000)
b.park_sync()
b.got_sync()
describe()
b.join()
a.heartbeat()

scenario("time: a sync that waits does not expire")
a, b = M("A", session_ms=30000), M("B", session_ms=300)
a.join()
b.park_join(2)
a.join()
b.got_join()
b.send_sync()
time.sleep(0.7)
a.sync({a.id: b"forA", b.id: b"forB"})
b.got_sync()

# ---- static members ----
def statics(version=5, **how):
    a, b = M("A", version, instance="ia", **how), M("B", version, instance="ib", **how)
    a.join()
    b.park_join(2)
    a.join()
    b.got_join()
    b.send_sync()
    a.sync({a.id: b"forA", b.id: b"forB"})
    b.got_sync()
    return a, b


def again(m, **change):
    """The same instance in a new process."""
    n = M(m.who, m.version, instance=m.instance, **m.how)
    n.protocols, n.n = m.protocols, m.n
    n.join("join, restarted", **change)
    return n


scenario("static: a follower comes back")
a, b = statics()
old = b.id
b = again(b)
b.sync()
b.heartbeat()
b.heartbeat("heartbeat, former id", member_id=old)
b.commit(1, "commit, former id", member_id=old)
b.sync(what="sync, former id", member_id=old)
b.join("join, former id", member_id=old)
b.leave("leave, former id", member_id=old)
b.heartbeat("heartbeat, no instance", member_id=old, instance=None)
a.heartbeat()
a.heartbeat("heartbeat, unknown instance", instance="nobody")
describe()

for version in 5, 9:
    scenario("static: the leader comes back, version %d" % version)
    a, b = statics(version)
    a = again(a)
    a.sync()
    a.heartbeat()
    b.heartbeat()
    describe()

scenario("static: one comes back with other metadata")
a, b = statics()
b = again(b, protocols=[("range", b"other")])
a.heartbeat()
a = again(a, protocols=[("range", b"other")])
b.heartbeat()

scenario("static: one comes back in Preparing, and its first self waits")
a, b = statics()
a.park_join(2)
n = M("B", 5, instance="ib")
n.n = b.n
n.join("join, restarted")
a.got_join()

scenario("static: one comes back in Completing")
a, b = M("A", 5, instance="ia"), M("B", 5, instance="ib")
a.join()
b.park_join(2)
a.join()
b.got_join()
b.park_sync()
n = M("B", 5, instance="ib")
n.n = b.n
n.park_join(2, "join, restarted")
b.got_sync("sync of its former self")
a.join()
n.got_join()

scenario("static: two with one name join at once")
a = M("A", 5)
a.join()
a.join()
a.sync({a.id: b"x"})
b = M("B", 5, instance="i")
b.park_join(2)
c = M("C", 5, instance="i")
c.send_join()
b.got_join()
a.join()
c.got_join()

scenario("static: removed by an admin, by name")
a, b = statics()
code, codes = admin.leave(group, ("", "ib"), ("", "nobody"), ("stranger", None), ("", None), (a.id, "ib"))
say("", "leave", "%s %s" % (error(code), [error(c) for c in codes]))
a.heartbeat()
b.heartbeat()

scenario("static: absent from a rebalance, it keeps its place")
a = M("A", session_ms=30000, rebalance_ms=1000)
a.join()
b = M("B", 5, instance="ib", session_ms=30000, rebalance_ms=1000)
b.park_join(2)
a.join()
b.got_join()
b.send_sync()
a.sync({a.id: b"forA", b.id: b"forB"})
b.got_sync()
a.park_join(2)
a.got_join()
a.sync({a.id: b"forA", b.id: b"forB"})
describe()

# ---- positions and groups ----
scenario("positions: echo, errors, deletion")
codes = admin.commit(group, {"t": [(0, 10, "note", 3), (1, 11, None), (9, 1), (2, 12, "x" * 4096)], "gone": [(0, 1)]})
say("", "commit", {k: error(c) for k, c in sorted(codes.items())})
codes = admin.commit(group, {"t": [(0, 10, "x" * 4097), (1, 13)]})
say("", "commit, long note", {k: error(c) for k, c in sorted(codes.items())})
code, got = admin.positions(group)
say("", "positions", "%s %s" % (error(code), {k: (v[0], v[1], len(v[2] or "")) for k, v in sorted(got.items())}))
positions({"t": [0, 1, 5], "gone": [0]})
code, codes = admin.delete_positions(group, {"t": [0, 5, 9], "gone": [0]})
say("", "delete positions", "%s %s" % (error(code), {k: error(c) for k, c in sorted(codes.items())}))
positions({"t": [0, 1]})
describe()
say("", "delete", [error(c) for c in admin.delete_groups(group).values()])
positions()
describe()

scenario("positions: of a working group, only where it does not subscribe")
a = M("A", metadata=subscription(["t"]))
a.join()
admin_codes = a.c.commit(group, {"t": [(0, 1)], "u": [(0, 2)]}, a.gen, a.id)
say("A", "commit, in Completing", {k: error(c) for k, c in sorted(admin_codes.items())})
a.sync({a.id: assignment({"t": [0, 1, 2]})})
codes = a.c.commit(group, {"t": [(0, 1)], "u": [(0, 2)]}, a.gen, a.id)
say("A", "commit", {k: error(c) for k, c in sorted(codes.items())})
code, codes = admin.delete_positions(group, {"t": [0], "u": [0]})
say("", "delete positions", "%s %s" % (error(code), {k: error(c) for k, c in sorted(codes.items())}))
positions()
a.leave()
code, codes = admin.delete_positions(group, {"t": [0]})
say("", "delete positions", "%s %s" % (error(code), {k: error(c) for k, c in sorted(codes.items())}))
positions()

scenario("positions: of a group that is not of consumers")
a = M("A", kind="connect")
a.join()
a.sync({a.id: b"x"})
code, codes = admin.delete_positions(group, {"t": [0]})
say("", "delete positions", "%s %s" % (error(code), {k: error(c) for k, c in sorted(codes.items())}))
say("", "groups", admin.groups()[1].get(group))

# ---- where klogd answers otherwise, for the reasons in group_scenarios.differences ----
scenario("a join that is refused, in a group that does not exist")
M("A", session_ms=99).join()
describe()
m = M("A")
m.protocols = []
m.join()
describe()

scenario("static: absent from a rebalance and from the sync after it")
a = M("A", session_ms=30000, rebalance_ms=1000)
a.join()
b = M("B", 5, instance="ib", session_ms=30000, rebalance_ms=1000)
b.park_join(2)
a.join()
b.got_join()
b.send_sync()
a.sync({a.id: b"forA", b.id: b"forB"})
b.got_sync()
a.park_join(2)
a.got_join()
a.sync({a.id: b"forA", b.id: b"forB"})
time.sleep(1.5)
a.heartbeat()
describe()

scenario("static: back in a full group")
a = M("A", 5, instance="ia")
a.join()
ms = [M(x) for x in "BCD"]
for i, m in enumerate(ms):
    m.park_join(i + 2)
a.join()
for m in ms:
    m.got_join()
a.sync({x.id: b"x" for x in [a] + ms})
again(a)

scenario("protocols: a member alone changes its mind")
a = M("A")
a.join()
a.sync({a.id: b"x"})
a.join("join, other protocol", protocols=[("rr", b"")])

scenario("one member, two connections: a join while the first waits")
a, b = two()
a.park_join(2)
twin = M("A")
twin.id, twin.gen = a.id, a.gen
twin.park_join(2, "join, on another connection")
say("A", "the first", "waits" if a.c.waits() else "")
if not a.c.waits():
    a.got_join("the first")
b.join()
twin.got_join()
