# SPDX-License-Identifier: Apache-2.0
# The last value of each key stays, at its offset; a deleted key's tombstone stays for delete.retention.ms and then goes, without new
# traffic; readers are led over the gaps. Also after kill -9 and a clean stop.
# https://github.com/apache/kafka/pull/7175 https://github.com/redpanda-data/redpanda/issues/10194
# https://github.com/robot-head/crabka/pull/528 https://github.com/dpkp/kafka-python/issues/1571
requires kcat
klogd_start --override log.cleaner.backoff.ms=50
topic cp 1 cleanup.policy=compact segment.ms=300 min.cleanable.dirty.ratio=0.01 delete.retention.ms=6000
view() { $KC -t cp -p 0 -o beginning -e -f '%o:%k=%S '; }
views() { [ "$(view)" = "$1" ]; }

for i in $(seq 50); do for k in a b c; do echo "$k:$i"; done; done | $K -P -K: -t cp -p 0 || fail "produce"
printf 'b:\n' | $K -P -Z -K: -t cp -p 0 || fail "produce the tombstone"
wait_for 20 "old values go, the tombstone stays" views "147:a=2 149:c=2 150:b=-1 "
eq "end offset" 151 "$(end_offset cp)"
wait_for 20 "the tombstone goes, without new traffic" views "147:a=2 149:c=2 "
eq "end offset" 151 "$(end_offset cp)"
eq "start offset" 0 "$(start_offset cp)"
echo z:1 | $K -P -K: -t cp -p 0 || fail "produce z"
eq "after one more record" "147:a=2 149:c=2 151:z=1 " "$(view)"
eq "fetch in a gap" 147 "$($KC -t cp -p 0 -o 20 -c1 -e -f '%o\n')"
eq "fetch behind the last survivor" 151 "$($KC -t cp -p 0 -o 150 -c1 -e -f '%o\n')"
has "the broker tells" "INFO  cp-0: cleaned up to offset 15[01]: 3 of 15[01] records, [0-9]+ of [0-9]+ bytes, 1 of [0-9]+ segments stay" "$(cat "$KLOGD_LOG")"

python_sees() {
    "$PY" - <<'X'
from kafka import KafkaConsumer, TopicPartition
c = KafkaConsumer(bootstrap_servers="127.0.0.1:9092", consumer_timeout_ms=5000)
t = TopicPartition("cp", 0)
c.assign([t])
c.seek(t, 0)
seen = []
while c.position(t) < 152:
    for m in c.poll(timeout_ms=5000).get(t, []):
        seen.append(m.offset)
print(seen)
X
}
if "$PY" -c 'import kafka' 2>/dev/null; then eq "what python3-kafka sees" "[147, 149, 151]" "$(python_sees)"; fi

klogd_kill
klogd_restart
eq "after kill -9" "147:a=2 149:c=2 151:z=1 " "$(view)"
echo a:3 | $K -P -K: -t cp -p 0 || fail "produce after the restart"
wait_for 20 "cleaning goes on after a restart" views "149:c=2 151:z=1 152:a=1 "
klogd_stop
eq "the cleaner's checkpoint" "0 1 cp 0 153" "$(tr '\n' ' ' <"$D/cleaner-offset-checkpoint" | sed 's/ $//')"
status 0 klog verify "$D"
klogd_restart
eq "after a clean stop" "149:c=2 151:z=1 152:a=1 " "$(view)"
