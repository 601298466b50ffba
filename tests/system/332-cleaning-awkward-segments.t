# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Keys that do not fit the smallest map take several passes; a record as large as a segment is no obstacle; a damaged partition is
# told about and left alone, and the others are cleaned.
# https://github.com/apache/kafka/pull/4975 https://github.com/apache/kafka/pull/1332
# https://github.com/getsentry/self-hosted/issues/3389
requires kcat
klogd_start --override log.cleaner.enable=false
topic bad 1 cleanup.policy=compact segment.bytes=4000
seq 1 1000 | sed 's/$/:v/' | $K -P -K: -t bad -p 0 -X batch.num.messages=100 || fail "produce to bad"
topic cl 1 cleanup.policy=compact segment.bytes=1048576 segment.ms=1000 min.cleanable.dirty.ratio=0
keys() { seq 1 60000 | sed "s/\$/:$1/"; }
keys v | $K -P -K: -t cl -p 0 || fail "produce v"
{ echo -n big:=; head -c 700000 /dev/urandom | base64 -w0 | head -c 900000; echo; } | $K -P -K: -t cl -p 0 || fail "produce big"
keys w | $K -P -K: -t cl -p 0 || fail "produce w"
eq "nothing is cleaned yet" 120001 "$($KC -t cl -p 0 -o beginning -e -f '.' | wc -c)"
klogd_stop
# Damage in a closed segment that nobody reads.
printf x | dd of="$D/bad-0/00000000000000000000.log" bs=1 seek=100 conv=notrunc status=none

klogd_start --override log.cleaner.backoff.ms=100 --override log.cleaner.dedupe.buffer.size=1048576 # 34952 keys
counts() { $KC -t cl -p 0 -o beginning -e -f '%s\n' | cut -c1-1 | sort | uniq -c | sort -rn | head -n2 | awk '{ printf "%s ", $1 }'; }
clean() { [ "$(counts)" = "60000 1 " ]; }
wait_for 80 "60000 w, one big value, no v" clean
has "several passes" "cl-0: cleaned up to offset [0-9]+ \(the map of keys was full\)" "$(cat "$KLOGD_LOG")"
has "the damaged one is told about" "WARN  bad-0: cleaning failed: the log is damaged; it is tried again in [0-9]+ s, others go on" "$(cat "$KLOGD_LOG")"
between "bytes on disk" 900000 4000000 "$(cat "$D"/cl-0/*.log | wc -c)"
eq "end offset" 120001 "$(end_offset cl)"
