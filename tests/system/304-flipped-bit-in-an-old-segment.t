# SPDX-License-Identifier: Apache-2.0
# One flipped bit in a closed segment makes reading that batch an error; what stands after it is untouched and still served.
# https://github.com/nats-io/nats-server/issues/7549 https://github.com/redpanda-data/redpanda/issues/4638
klogd_start
topic fb 1 segment.bytes=20000
seq 2000 | produce -t fb -p 0 -X batch.num.messages=100
klogd_stop
L=$(ls "$D"/fb-0/*.log | head -n1)
[ "$(ls "$D"/fb-0/*.log | wc -l)" -gt 1 ] || fail "one segment only"
"$PY" -c "
f = open('$L', 'r+b')
f.seek(300)
b = f.read(1)
f.seek(300)
f.write(bytes([b[0] ^ 4]))"
klogd_restart
eq "end offset" 2000 "$(end_offset fb)"
eq "lines from offset 1900" 100 "$(consume fb -o 1900 | wc -l)"
fails . $KC -t fb -p 0 -o beginning -e -X check.crcs=true
mount_start
fails 'Input/output error' head -c 10 "$M/fb/p0"
echo more | produce -t fb -p 0
eq "the next offset" 2001 "$(end_offset fb)"
