# SPDX-License-Identifier: Apache-2.0
# What consoles and admin clients ask of a cluster without authorizer, quotas, SCRAM users and transactions is answered as Kafka does;
# a transactional id gets a code after which clients stop.
# https://github.com/IBM/sarama/issues/1858 https://github.com/aio-libs/aiokafka/issues/777
klogd_start --override log.retention.check.interval.ms=100
topic t 2
"$PY" - <<'X' || fail "an answer"
import time
from kmsg import MsgConn
from kwire import batch
c = MsgConn("127.0.0.1:9092")
def ask(api, v, **kw):
    r = c.ask_msg(api, v, **kw)
    return {k: x for k, x in r.items() if k != "throttle"}
err, pid, epoch = c.init_producer_id()
assert err == 0 and c.produce("t", 0, batch([b"a", b"b"], pid=pid, epoch=epoch, seq=0)) == (0, 0)

for v in (0, 1, 2):
    r = ask("DescribeCluster", v, operations=True, kind=1)
    assert (r["error"], r["message"], r["controller"], r["operations"]) == (0, None, 1, 8096), r
    assert r["brokers"] == [dict(node=1, host="127.0.0.1", port=9092, rack=None, **({"fenced": False} if v > 1 else {}))], r
assert [(ask("DescribeCluster", 2, kind=k)[x]) for k in (2, 3) for x in ("error", "cluster", "controller", "brokers")] == [114, "", -1, [], 115, "", -1, []]

def kinds(*k):
    r = ask("ListConfigResources", 1, kinds=k)
    return r["error"], sorted((x["kind"], x["name"]) for x in r["resources"])
assert kinds() == (0, [(2, "t"), (4, "1"), (8, "1")]) and kinds(2) == (0, [(2, "t")]) and kinds(4, 8) == (0, [(4, "1"), (8, "1")])
assert kinds(16) == kinds(32) == kinds(32, 16) == (0, []) and kinds(99) == kinds(2, 99) == kinds(0) == (35, [])
assert ask("ListConfigResources", 0) == dict(error=0, resources=[])

def producers(topic, *ids):
    r = ask("DescribeProducers", 0, topics=[dict(name=topic, partitions=ids)])
    return [(p["partition"], p["error"], [(x["id"], x["epoch"], x["sequence"], x["coordinator"], x["txn"]) for x in p["producers"]]) for p in r["topics"][0]["partitions"]]
assert producers("t", 0, 1, 7) == [(0, 0, [(pid, 0, 1, -1, -1)]), (1, 0, []), (7, 3, [])], producers("t", 0, 1, 7)
assert producers("nope", 0) == [(0, 3, [])] and producers("a b", 0) == [(0, 17, [])]
assert ask("DescribeProducers", 0, topics=[]) == dict(topics=[])

for v in (0, 1, 2):
    assert ask("ListTransactions", v, states=[], producers=[]) == dict(error=0, unknown=[], transactions=[])
assert ask("ListTransactions", 1, states=["Ongoing", "nonsense", "ongoing"], producers=[5], duration=10)["unknown"] == ["nonsense", "ongoing"]
assert [ask("ListTransactions", 2, states=[], producers=[], pattern=p)["error"] for p in ("[", "a.*", "", None)] == [128, 0, 0, 0]

for v in (1, 2, 3):
    r = ask("DescribeAcls", v, kind=1, pattern=1, operation=1, permission=1)
    assert (r["error"], r["resources"]) == (54, []), r
def quotas(*components, v=1): 
    r = ask("DescribeClientQuotas", v, components=[dict(kind=k, match=m, value=x) for k, m, x in components])
    return r["error"], r["entries"]
assert quotas() == quotas(v=0) == quotas(("user", 0, "x")) == quotas(("user", 2, None), ("client-id", 1, None)) == quotas(("ip", 2, None)) == (0, [])
assert quotas(("nonsense", 0, "x")) == (35, None)
for bad in ([("user", 9, "x")], [("user", 0, None)], [("user", 1, "x")], [("", 1, None)], [("user", 2, None)] * 2, [("user", 2, None), ("ip", 2, None)]):
    assert quotas(*bad) == (42, None), bad
def scram(users): return [(x["user"], x["error"], x["infos"]) for x in ask("DescribeUserScramCredentials", 0, users=users)["results"]]
assert scram(None) == scram([]) == []
assert scram([dict(name=n) for n in ("a", "a", "", "b", "aa")]) == [("", 91, []), ("a", 92, []), ("aa", 91, []), ("b", 91, [])]

# producers are forgotten sooner when that is asked for while klogd runs
r = c.ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=4, name="1", configs=[dict(name="producer.id.expiration.ms", op=0, value="1")])])
assert r["results"][0]["error"] == 0, r
end = time.time() + 60
while producers("t", 0) != [(0, 0, [])]:
    assert time.time() < end, producers("t", 0)
    time.sleep(0.02)

# the one logger
def logger(name, value, op=0, broker="1"):
    r = c.ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=8, name=broker, configs=[dict(name=name, op=op, value=value)])])
    return r["results"][0]["error"]
def level(broker="1"):
    r = c.ask_msg("DescribeConfigs", 4, resources=[dict(kind=8, name=broker, keys=None)], synonyms=True)["results"][0]
    return r["error"], [(e["name"], e["value"], e["read_only"], e["source"], e["sensitive"], e["type"], e["synonyms"]) for e in r["configs"]]
assert level() == (0, [("root", "INFO", False, 6, False, 0, [])]), level()
assert level("9") == level("") == (42, [])
assert [logger(*x) for x in (("root", "nonsense"), ("kafka.server", "DEBUG"), ("root", None, 1), ("root", "DEBUG", 0, "9"))] == [40, 40, 42, 42]
assert logger("root", "DEBUG") == 0 and level()[1][0][1] == "DEBUG"
r = c.ask_msg("DescribeConfigs", 3, resources=[dict(kind=4, name="1", keys=["log.level"])])
assert r["results"][0]["configs"][0]["value"] == "debug", r

# who says who it is learns that nobody asks
for v in (0, 1):
    assert c.ask_msg("SaslHandshake", v, mechanism="PLAIN") == dict(error=34, mechanisms=[])

# transactions
for v in (1, 3):
    r = ask("FindCoordinator", v, key="tx", type=1)
    assert (r["error"], r["node"]) == (53, -1) and "transactions" in r["message"], r
r = ask("FindCoordinator", 4, keys=["tx", "ty"], type=1)
assert [(x["key"], x["error"]) for x in r["coordinators"]] == [("tx", 53), ("ty", 53)], r
r = c.ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=4, name="1", configs=[dict(name=k, op=0, value=v)]) for k, v in (("broker.id", "7"), ("log.roll.ms", "0"), ("log.dirs", "/x"))])
assert [x["error"] for x in r["results"]] == [42, 42, 42], r  # of a topic 40
r = c.ask_msg("DescribeConfigs", 3, resources=[dict(kind=4, name="1", keys=["log.dirs", "listeners", "advertised.listeners", "log.segment.bytes", "producer.id.expiration.ms"])])
assert sorted((e["name"], e["type"]) for e in r["results"][0]["configs"]) == [("advertised.listeners", 7), ("listeners", 7), ("log.dirs", 7), ("log.segment.bytes", 3), ("producer.id.expiration.ms", 3)], r
assert ask("InitProducerId", 1, transactional="tx", timeout=1000) == dict(error=53, producer=-1, epoch=-1)
X
