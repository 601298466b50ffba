# SPDX-License-Identifier: Apache-2.0
# ApiVersions of an unknown version is answered in the layout of version 0 with error 35, and the connection stays.
# https://github.com/kafka-protocol-rs/kafka-protocol-rs/pull/122
# https://github.com/confluentinc/confluent-kafka-python/issues/858 https://github.com/apache/kafka/pull/7381
# https://github.com/dpkp/kafka-python/issues/2279 https://github.com/dpkp/kafka-python/issues/2348
klogd_start
out=$(raw 0000000b0012006300000007000178 0000000b0012000000000008000178)
has "version 99" '^corr=7 len=[0-9]+ 0023[0-9a-f]{8}0*[0-9a-f]' "$(head -n1 <<<"$out")"
has "the same connection" '^corr=8 len=[0-9]+ 0000' "$(sed -n 2p <<<"$out")"
eq "the end" open "$(tail -n1 <<<"$out")"
"$PY" - <<'X' || fail "versions"
from kwire import Conn, i16, i32, Reader
c = Conn()
v = c.api_versions()
want = {0: (0, 7), 1: (4, 11), 2: (1, 5), 3: (0, 9), 10: (0, 2), 18: (0, 3), 19: (2, 4), 20: (1, 4), 21: (0, 1), 22: (0, 4), 32: (1, 2), 37: (0, 1), 44: (0, 1), 60: (0, 0)}
for key, (first, last) in want.items():
    assert key in v and v[key][0] <= first and v[key][1] >= last, (key, v.get(key))
assert not [k for k in v if k > 10000], "klog's own keys are for klog's own clients"
# The answer to 99 names ApiVersions' own range.
r = c.ask(18, 99, b"")
assert r.i16() == 35
ranges = {k: (a, b) for k, a, b in r.array(lambda: (r.i16(), r.i16(), r.i16()))}
assert r.rest() == 0 and ranges[18] == v[18]
# Version 3: flexible body, but a reply header without tags.
corr = c.send(18, 3, b"\x05test\x041.0\0", flexible=True)
r = c.reply(corr)
assert r.i16() == 0
assert r.uvarint() - 1 == len(v)
X
eq "protocol errors seen by librdkafka" 0 "$(timeout 20 kcat -b $B -L -d protocol,feature 2>&1 | grep -c PROTOERR)"
if "$PY" -c 'import kafka' 2>/dev/null; then
    "$PY" -c "
from kafka import KafkaProducer
p = KafkaProducer(bootstrap_servers='$B')
assert p.config['api_version'] >= (0, 11), p.config['api_version']
p.close()" || fail "what python3-kafka detects"
fi
