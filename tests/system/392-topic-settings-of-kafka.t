# SPDX-License-Identifier: Apache-2.0
# Every topic setting of Kafka is known: the value that klog acts by is taken, others are refused with the reason. Blanks around a
# value do not count.
# https://github.com/apache/kafka/blob/4.0/clients/src/main/java/org/apache/kafka/common/config/TopicConfig.java
klogd_start
topic t
"$PY" - <<'X' || fail "a setting"
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
def alter(key, value, op=0):
    r = c.ask_msg("IncrementalAlterConfigs", 1, resources=[dict(kind=2, name="t", configs=[dict(name=key, op=op, value=value)])])["results"][0]
    return r["error"], r["message"]
def value(key):
    e = c.ask_msg("DescribeConfigs", 3, resources=[dict(kind=2, name="t", keys=[key])])["results"][0]["configs"][0]
    return e["value"], e["source"], e["type"]
only = {  # key: (value, type, others)
    "unclean.leader.election.enable": ("false", 1, ["perhaps"]), "preallocate": ("false", 1, ["true"]),
    "segment.jitter.ms": ("0", 5, ["1"]), "segment.index.bytes": ("10485760", 3, ["4", "2097151"]),
    "file.delete.delay.ms": ("60000", 5, ["1"]),
    "leader.replication.throttled.replicas": ("", 7, ["0", "*,0:1", "0:1:2"]), "follower.replication.throttled.replicas": ("", 7, ["0:x"]),
    "max.decompressed.message.bytes": ("2147483639", 3, ["1000"]), "remote.storage.enable": ("false", 1, ["true"]),
    "remote.log.copy.disable": ("false", 1, ["true"]), "remote.log.delete.on.disable": ("false", 1, ["true"]),
    "remote.copy.lag.ms": ("0", 5, ["1"]), "remote.copy.lag.bytes": ("-1", 5, ["5"]),
    "local.retention.ms": ("-2", 5, ["5"]), "local.retention.bytes": ("-2", 5, ["5"]),
    "errors.deadletterqueue.group.enable": ("false", 1, ["true"]),
}
for key, (v, kind, others) in only.items():
    assert value(key) == (v, 5, kind), (key, value(key))
    assert alter(key, " %s " % v) == (0, None), key
    assert value(key) == (v, 1, kind), (key, value(key))
    for bad in others:
        err, why = alter(key, bad)
        assert err == 40 and key in why, (key, bad, err, why)
    assert value(key) == (v, 1, kind), key
    assert alter(key, None, op=1)[0] == 0 and value(key)[1] == 5, key
assert alter("file.delete.delay.ms", "0") == (0, None)
for key, v, seen in (("retention.ms", " 5 ", "5"), ("cleanup.policy", " compact ", "compact"), ("preallocate", " FALSE ", "false"),
                     ("compression.type", "gzip ", "gzip"), ("cleanup.policy", "", ""), ("segment.index.bytes", "2097152", "2097152"),
                     ("leader.replication.throttled.replicas", "*", "*"), ("unclean.leader.election.enable", "true", "true"),
                     ("follower.replication.throttled.replicas", ",".join("%d:1" % i for i in range(400)), ",".join("%d:1" % i for i in range(400)))):
    assert alter(key, v) == (0, None), (key, v, alter(key, v))
    assert value(key)[0] == seen, (key, value(key))
for key, v in (("cleanup.policy", "x"), ("retention.ms", "5 6"), ("segment.index.bytes", "3"), ("message.format.version", "3.0"), ("nonsense", "1")):
    assert alter(key, v)[0] == 40, (key, v)
assert c.create_topic("made", configs=[("unclean.leader.election.enable", "false"), ("segment.jitter.ms", "0"), ("cleanup.policy", "")])[0] == 0
assert c.create_topic("refused", configs=[("remote.storage.enable", "true")])[0] == 40
X
klogd_kill
klogd_restart
long=$(klog config get topic t --json | jq -r 'select(.key == "follower.replication.throttled.replicas").value')
eq "words of a long list" 400 "$(tr , '\n' <<<"$long" | wc -l)"
seq 3 | grow made
eq "neither compacted nor deleted" "$(seq 3)" "$(consume made)"
