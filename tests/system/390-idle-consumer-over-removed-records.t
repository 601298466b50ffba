# SPDX-License-Identifier: Apache-2.0
# A consumer that waits at the end of a partition keeps its place when all records are removed and the broker starts anew: the epoch
# of what it read last is one that the log no longer has, which is no truncation. With reset=latest it would skip what comes next.
# https://github.com/confluentinc/librdkafka/issues/4425 https://issues.apache.org/jira/browse/KAFKA-7415
requires kcat
klogd_start --override group.initial.rebalance.delay.ms=0
topic idle
seq -f old%g 10 | grow idle
timeout 120 kcat -b $B -u -E -C -t idle -p 0 -o beginning -f '%s\n' -X auto.offset.reset=latest -X topic.metadata.refresh.interval.ms=200 \
    -X reconnect.backoff.max.ms=200 >got 2>err 19>&- &
reader=$!
wait_lines got 10
"$PY" - <<'X' || fail "records not removed"
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
r = c.ask_msg("DeleteRecords", 1, topics=[dict(name="idle", partitions=[dict(partition=0, offset=10)])], timeout=10000)
assert r["topics"][0]["partitions"][0] == dict(partition=0, low=10, error=0), r
X
for kind in klogd_stop klogd_kill; do
    before=$(wc -l <got)
    $kind
    klogd_restart
    seq -f new%g 10 | grow idle
    wait_lines got $((before + 10)) 20
done
kill $reader
wait_gone $reader
eq "lines" "$(seq -f old%g 10; seq -f new%g 10; seq -f new%g 10)" "$(cat got)"
has_not "what the reader says" "truncation|reset" "$(cat err)"
"$PY" - <<'X' || fail "OffsetForLeaderEpoch"
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
def end(epoch):
    r = c.ask_msg("OffsetForLeaderEpoch", 3, replica=-1, topics=[dict(name="idle", partitions=[dict(partition=0, current=-1, epoch=epoch)])])
    p = r["topics"][0]["partitions"][0]
    return p["error"], p["epoch"], p["end"]
latest = [e for e in range(20) if end(e)[1:] == (e, 30)][-1]
first = end(0)
assert first == (0, 0, 10), ("removed by DeleteRecords", first)
assert end(latest + 1) == (0, -1, -1), ("not yet there", end(latest + 1))
assert end(-1) == (0, -1, -1), end(-1)
X
