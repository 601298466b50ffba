# SPDX-License-Identifier: Apache-2.0
# klog dump prints segments and indexes; klog verify finds damage in a stopped broker's directory, and nothing in a good one.
requires jq
klogd_start
topic t1 1 segment.bytes=20000
seq 1 3000 | produce -t t1 -p 0 -X batch.num.messages=50
printf 'k:v\n' | produce -t t1 -p 0 -K: -H h=1
klogd_stop
L=$D/t1-0/00000000000000000000.log
has "dump" 'offset' "$(klog dump "$L" | head -n 20)"
klog dump --json "$L" >out || fail "dump --json"
jq -es 'length > 1' out >/dev/null || fail "not JSON: $(head -n2 out)"
I=$(ls "$D"/t1-0/*.index | head -n1)
status 0 klog dump "$I"
N=$(ls "$D"/t1-0/*.log | tail -n1)
eq "the flush mark" "{\"flushed_offset\":3001,\"flushed_segment\":$(basename "$N" .log | sed 's/^0*//'),\"flushed_position\":$(stat -c %s "$N")}" \
    "$(klog dump --json "$D/t1-0/partition.flushed" | jq -c .)"
eq "t1 in the registers' journal" "1" "$(klog dump --json "$D/registers.journal" | jq -s 'map(select(.path == "/brokers/topics/t1")) | length')"
status 0 klog verify "$D"
status 0 klog verify "$D" --json
cp "$D/t1-0/partition.flushed" mark
"$PY" -c "
f = open('$D/t1-0/partition.flushed', 'r+b')
f.seek(20)
f.write(b'x')"
status 1 klog dump "$D/t1-0/partition.flushed"
status 0 klog verify "$D"
has "a damaged flush mark" 'partition.flushed: it is damaged' "$OUT"
cp mark "$D/t1-0/partition.flushed"
"$PY" -c "
f = open('$L', 'r+b')
f.seek(300)
b = f.read(1)
f.seek(300)
f.write(bytes([b[0] ^ 4]))"
status 1 klog verify "$D"
has "what it found" "t1-0" "$OUT"
status 1 klog verify "$T/nosuch"
klogd_start
fails 'use|lock|stop' klog verify "$D"
fails 'No such file' klog dump "$T/nosuch"
