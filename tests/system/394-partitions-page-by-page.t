# SPDX-License-Identifier: Apache-2.0
# DescribeTopicPartitions gives topics in the order of their names, at most 2,000 partitions at once, and says where to go on; what has no
# settings (groups, client metrics) can be asked for them, and is refused any. As Apache Kafka 4.4 answers.
klogd_start
topic many 2500
topic a 3
topic b.c 2
"$PY" - "$B" <<'X' || fail "an answer"
import sys
from kmsg import MsgConn
c = MsgConn(sys.argv[1])
def ask(*topics, limit=2000, cursor=None):
    r = c.ask_msg("DescribeTopicPartitions", 0, topics=[dict(name=t) for t in topics], limit=limit,
                  cursor=cursor and dict(topic=cursor[0], partition=cursor[1]))
    return r["topics"], r["cursor"] and (r["cursor"]["topic"], r["cursor"]["partition"])
def page(*topics, **kw):
    ts, cursor = ask(*topics, **kw)
    return [(t["name"], t["error"], [p["partition"] for p in t["partitions"]]) for t in ts], cursor
N = list(range(2500))
t, cursor = ask("a", limit=1)
assert cursor == ("a", 1) and len(t) == 1, (t, cursor)
assert t[0]["id"] == c.topic_id("a") and (t[0]["internal"], t[0]["operations"]) == (False, 3576), t
assert t[0]["partitions"] == [dict(error=0, partition=0, leader=1, epoch=0, replicas=[1], isr=[1], elr=[], last_elr=[], offline=[])], t
assert page() == ([("a", 0, [0, 1, 2]), ("b.c", 0, [0, 1]), ("many", 0, N[:1995])], ("many", 1995)), page()
assert page(cursor=("many", 1995)) == ([("many", 0, N[1995:])], None)
assert page("b.c", "a", "b.c") == ([("a", 0, [0, 1, 2]), ("b.c", 0, [0, 1])], None)
assert page("b.c", "a", limit=3) == ([("a", 0, [0, 1, 2])], ("b.c", 0))
assert page("b.c", "a", limit=4) == ([("a", 0, [0, 1, 2]), ("b.c", 0, [0])], ("b.c", 1))
assert page("b.c", "a", limit=5) == ([("a", 0, [0, 1, 2]), ("b.c", 0, [0, 1])], None)
assert page("a", limit=0) == page("a", limit=-7) == ([("a", 0, [0])], ("a", 1))
assert page("a", limit=10**9) == ([("a", 0, [0, 1, 2])], None)
assert page("a", "b.c", cursor=("b.c", 1)) == ([("b.c", 0, [1])], None)
assert page("a", cursor=("a", 3)) == page("a", cursor=("a", 99)) == ([("a", 0, [])], None)
assert page("nope", "a b", "a") == ([("a", 0, [0, 1, 2]), ("a b", 17, []), ("nope", 3, [])], None)
assert page("nope", cursor=("nope", 0)) == ([("nope", 3, [])], None)
assert page(cursor=("b", 7)) == ([("b.c", 0, [0, 1]), ("many", 0, N[:1998])], ("many", 1998))
assert page(cursor=("zz", 0)) == ([], None)
assert page("a", cursor=("b", 0)) == page("a", cursor=("a", -1)) == ([("a", 42, [])], None), page("a", cursor=("b", 0))
t, _ = ask("nope", "a b", "__consumer_offsets")
assert [(x["name"], x["error"], x["id"], x["internal"], x["operations"]) for x in t] == [
    ("__consumer_offsets", 3, bytes(16), True, 3576), ("a b", 17, bytes(16), False, 3576), ("nope", 3, bytes(16), False, 3576)], t

def describe(kind, name): return c.ask_msg("DescribeConfigs", 4, resources=[dict(kind=kind, name=name, keys=None)])["results"][0]
def alter(kind, op, key, name="x"):
    r = c.ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=kind, name=name, configs=[dict(name=key, op=op, value="1" if op == 0 else None)] if key else [])])
    return r["results"][0]["error"]
for kind, what in (16, "Client metrics subscription name"), (32, "Group name"):
    assert describe(kind, "x")["error"] == 0
    r = describe(kind, "")
    assert (r["error"], r["message"], r["configs"]) == (42, what + " must not be empty", []), r
    assert [alter(kind, op, "nonsense") for op in (0, 1)] == [40 if kind == 32 else 42, 0] and alter(kind, 0, None) == 0
    assert [alter(kind, op, "nonsense", "") for op in (0, 1)] == [42, 42]
X
