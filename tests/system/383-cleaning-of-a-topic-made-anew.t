# SPDX-License-Identifier: Apache-2.0
# timeout: 90
# How far a log is clean is remembered of the topic, not of its name: a topic made anew is compacted from its front. A mark
# behind the end of a log that lost its tail counts for nothing either.
requires kcat
fast=(--override log.cleaner.backoff.ms=100)
compacted() { topic cl 1 cleanup.policy=compact segment.bytes=20000 min.cleanable.dirty.ratio=0.01; }
produce() { $K -P -K: -t cl -p 0 -X batch.num.messages=100 || fail "produce"; }
mark() { awk '$1 == "cl" { print $3 }' "$D/cleaner-offset-checkpoint" 2>/dev/null; }
marked() { [ "$(mark)" -ge "$1" ]; }
twice() { consume cl -f '%k\n' | grep '^k' | sort | uniq -d | wc -l; } # keys with more than one value
all_once() { [ "$(twice)" = 0 ]; }

klogd_start "${fast[@]}"
compacted
for r in 1 2; do seq 1 3000 | sed "s/.*/k&:old$r/" | produce; done
wait_for 30 "the first topic is clean" marked 5000
klogd_stop
cp "$D"/cleaner-*-checkpoint .
klogd_start "${fast[@]}" --override log.cleaner.enable=false
"$PY" "$TESTLIB/topic.py" delete cl || fail "delete"
compacted
for r in 1 2 3 4 5; do seq 1 1000 | sed "s/.*/k&:v$r/" | produce; done
seq 1 1700 | sed 's/.*/x&:w/' | produce
eq "keys with old values" 1000 "$(twice)"
klogd_stop
cp cleaner-*-checkpoint "$D/" # as a kill before the cleaner forgot the topic leaves them
klogd_start "${fast[@]}"
wait_for 30 "the new topic is clean" all_once
eq "the newest value" v5 "$(consume cl -f '%k=%s\n' | sed -n 's/^k5=//p')"
klogd_stop

# A mark from beyond the end.
sed -i 's/^cl 0 .*/cl 0 1000000/' "$D/cleaner-offset-checkpoint"
sed -i 's/^cl 0 [0-9]*/cl 0 9223372036854775807/' "$D/cleaner-horizon-checkpoint"
klogd_start "${fast[@]}"
for r in 6 7; do seq 1 1000 | sed "s/.*/k&:v$r/" | produce; done
seq 1 1700 | sed 's/.*/x&:w/' | produce
wait_for 30 "it is cleaned on" all_once
