# SPDX-License-Identifier: Apache-2.0
# Metadata v0 with no topics means all; from v1 on null means all and empty means none. An unknown topic is error 3, a bad name 17.
# https://github.com/IBM/sarama/issues/1352 https://github.com/zendesk/ruby-kafka/issues/493
# https://github.com/apache/kafka/pull/6300
klogd_start --override auto.create.topics.enable=false
topic a
topic b 3
"$PY" - <<'X' || fail "metadata"
from kwire import Conn
c = Conn()
assert c.metadata(None) == {"a": (0, 1), "b": (0, 3)}
assert c.metadata([]) == {}
assert c.metadata(["b"]) == {"b": (0, 3)}
assert c.metadata(["nosuch", "a"]) == {"nosuch": (3, 0), "a": (0, 1)}
assert c.metadata(["a b"]) == {"a b": (17, 0)}
r = c.ask(3, 0, b"\0\0\0\0")
brokers = r.array(lambda: (r.i32(), r.string(), r.i32()))
assert [b[1:] for b in brokers] == [("127.0.0.1", 9092)], brokers
topics = r.array(lambda: (r.i16(), r.string(), len(r.array(lambda: (r.i16(), r.i32(), r.i32(), r.array(r.i32), r.array(r.i32))))))
assert sorted(topics) == [(0, "a", 1), (0, "b", 3)], topics
r = c.ask(3, 2, b"\0\0\0\0")
r.array(lambda: (r.i32(), r.string(), r.i32(), r.string()))
cluster = r.string()
assert len(cluster) == 22, cluster
assert r.i32() == brokers[0][0], "controller"
X
if "$PY" -c 'import kafka' 2>/dev/null; then
    eq "topics by python3-kafka" "['a', 'b']" "$("$PY" -c "
from kafka import KafkaConsumer
print(sorted(KafkaConsumer(bootstrap_servers='$B').topics()))")"
fi
