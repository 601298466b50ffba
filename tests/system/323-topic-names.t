# SPDX-License-Identifier: Apache-2.0
# A bad topic name is error 17 everywhere and makes no file anywhere; a_b beside a.b is refused.
# https://github.com/apache/rocketmq/issues/1637 https://github.com/gnuhpc/Kafka-zk-restapi/issues/43
# https://github.com/karafka/karafka/pull/1301
klogd_start
topic a.b
find "$T" -path "$T/tmp" -prune -o -print | sort >before
"$PY" - <<'X' || fail "names"
from kwire import Conn, batch
c = Conn()
for t in "../../../x", "..", ".", "", "a/b", "a b", "a\0b", "ü", "n" * 250, "a_b", "x\n":
    err = c.create_topic(t)[0]
    assert err == 17, (t, err)
for t in "../../../x", "..", ".", "a/b", "n" * 250:
    err = c.produce(t, 0, batch([b"raw"]))[0]
    assert err in (3, 17), (t, err)
    assert c.fetch(t, 0, 0)[0] in (3, 17)
    assert c.metadata([t])[t][0] in (3, 17), t
assert c.create_topic("a.b")[0] == 36
assert c.create_topic("zero", 0)[0] == 37
assert c.create_topic("two", 1, 2)[0] == 38, "more replicas than brokers"
assert c.create_topic("conf", 1, 1, [("no.such.key", "1")])[0] == 40
assert c.create_topic("conf", 1, 1, [("retention.ms", "soon")])[0] == 40
assert c.delete_topic("nosuch") == 3
assert c.metadata() == {"a.b": (0, 1)}, c.metadata()
X
find "$T" -path "$T/tmp" -prune -o -print | sort | cmp before - || fail "files were made"
eq "topics" 'topic "a.b" with 1 partitions:' "$(kcat -b $B -L | grep -o 'topic ".*')"
"$PY" - <<'X' || fail "deletion and re-creation"
from kwire import Conn, batch
c = Conn()
assert c.produce("a.b", 0, batch([b"old"])) == (0, 0)
assert c.delete_topic("a.b") == 0
assert c.metadata(["nosuch"])  # the connection lives
assert c.create_topic("a.b")[0] == 0, "the name is free at once"
assert c.records("a.b") == []
assert c.create_topic("a_b")[0] == 17
assert c.produce("a.b", 0, batch([b"new"])) == (0, 0)
X
klogd_kill
klogd_restart
eq "the new topic after kill -9" new "$(consume a.b)"
