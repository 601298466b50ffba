# SPDX-License-Identifier: Apache-2.0
# A client says in a Fetch that it is a follower, in a broker epoch that nobody has registered: it moves no watermark, and the true
# followers are not taken for its older selves.
requires kcat jq python3
. "$TESTLIB/cluster.sh"
zookeeper_start
for n in 1 2 3; do broker_start $n; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
status 0 klog topic create r -p 1 -r 3 -b 127.0.0.1:9091 --config min.insync.replicas=2
echo one | kcat -b 127.0.0.1:9091 -P -t r -p 0 -X acks=all || fail "not written"
wait_says "in sync" "1,2,3" "partitions_of 1 r | awk '{ print \$7 }'"
l=$(partitions_of 1 r | awk '{ print $3 }')
cat >"$T/spoof.py" <<'PY'
import struct, sys
sys.path.insert(0, sys.argv[1])
from kwire import *
import kwire
broker, leader = sys.argv[2], int(sys.argv[3])
Client = [v for v in vars(kwire).values() if isinstance(v, type) and hasattr(v, "ask")][0]
c = Client(broker)
# Metadata 10 tells the topic's id and the leader's epoch
m = c.ask(3, 10, uvarint(2) + bytes(16) + uvarint(2) + b"r" + b"\0" + b"\0\0\0\0", flexible=True)
at = m.b.index(b"\x02r") + 2
topic_id = m.b[at:at + 16]
epoch = struct.unpack(">i", m.b[at + 16 + 1 + 1 + 2 + 4 + 4:][:4])[0]
for replica in (1, 2, 3):
    if replica == leader:
        continue
    part = i32(0) + i32(epoch) + i64(1) + i32(epoch) + i64(0) + i32(1 << 20) + b"\0"
    state = i32(replica) + i64(9999) + b"\0"
    r = c.ask(1, 15, i32(0) + i32(0) + i32(1 << 20) + i8(0) + i32(0) + i32(-1) + uvarint(2) + topic_id + uvarint(2) + part +
              b"\0" + uvarint(1) + uvarint(1) + uvarint(1) + uvarint(1) + uvarint(len(state)) + state, flexible=True)
    at = r.b.index(topic_id) + 16 + 1 + 4
    print(struct.unpack(">h", r.b[at:at + 2])[0])
PY
eq "answers: STALE_BROKER_EPOCH" "77 77" "$(python3 "$T/spoof.py" "$TESTLIB" "127.0.0.1:909$l" "$l" | xargs)"
echo two | kcat -b 127.0.0.1:9091 -P -t r -p 0 -X acks=all -X message.timeout.ms=20000 || fail "the followers do not count any more"
eq "records" "one two" "$(kcat -b 127.0.0.1:9091 -C -t r -e -q | xargs)"
