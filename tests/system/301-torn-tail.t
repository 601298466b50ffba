# SPDX-License-Identifier: Apache-2.0
# After kill -9 and a torn write the log is cut at the last whole batch, no more, and offsets go on from there.
# https://github.com/redpanda-data/redpanda/pull/27287 https://github.com/apache/iggy/pull/3946
# https://github.com/rabbitmq/osiris/issues/79
klogd_start
topic t1
seq 1 1000 | produce -t t1 -p 0 -X batch.num.messages=100
L=$D/t1-0/00000000000000000000.log
klogd_kill
cp "$L" save
size=$(stat -c %s "$L")

# Garbage after the end: all 1000 lines stay, and the cut is told.
tail -c 300 save | head -c 100 >>"$L"
: >"$KLOGD_LOG"
klogd_restart
consume | cmp - <(seq 1 1000) || fail "lines after garbage at the tail"
eq "size after the cut" "$size" "$(stat -c %s "$L")"
has "log line" 't1-0.*(100|cut)' "$(cat "$KLOGD_LOG")"
echo new | grow
eq "the next record" "1000 new" "$(consume t1 -o -1 -f '%o %s\n')"
klogd_kill

# A batch that lost its last 7 bytes is gone, only it; its offset is given out again.
truncate -s -7 "$L"
klogd_restart
consume | cmp - <(seq 1 1000) || fail "lines after a torn batch"
echo again | grow
eq "the next record" "1000 again" "$(consume t1 -o -1 -f '%o %s\n')"
klogd_kill

# Cut at every byte of the last batch.
cp "$L" save
whole=$(stat -c %s save)
last=$("$PY" -c "
from kwire import batches
b = batches(open('save', 'rb').read())
print(len(b[-1].raw))")
for cut in 1 2 $((last / 2)) $((last - 12)) $((last - 1)) "$last"; do
    cp save "$L"
    truncate -s $((whole - cut)) "$L"
    klogd_restart
    eq "end offset with $cut bytes missing" 1000 "$(end_offset)"
    klogd_kill
done

# A tail of zeros, as a file system may leave after a power cut.
cp save "$L"
truncate -s +4096 "$L"
klogd_restart
eq "end offset with zeros at the tail" 1001 "$(end_offset)"
eq "size" "$whole" "$(stat -c %s "$L")"
