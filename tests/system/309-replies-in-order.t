# SPDX-License-Identifier: Apache-2.0
# Replies leave in request order on each connection, a long poll first included; a thousand pipelined produces keep order.
# https://github.com/redpanda-data/redpanda/pull/25636 https://github.com/kroxylicious/kroxylicious/issues/505
# https://github.com/streamnative/kop/pull/200
klogd_start
topic ep
# Fetch v4, correlation 11: waits up to a second for one byte of ep; then ApiVersions, correlation 1.
poll=0000003800010004 poll+=0000000b000178 poll+=ffffffff000003e80000000100100000 poll+=00000000010002657000000001 poll+=00000000 poll+=0000000000000000 poll+=00100000
out=$(raw -t -q 3 "$poll" 0000000b0012000000000001000178)
eq "replies" "corr=11 corr=1" "$(grep -o 'corr=[0-9]*' <<<"$out" | tr '\n' ' ' | sed 's/ $//')"
between "tenths of a second until the first" 9 20 "$(head -n1 <<<"$out" | tr -d . | cut -d' ' -f1 | sed 's/^0//')"
"$PY" - <<'X' || fail "a thousand produces"
from kwire import Conn, batch
c = Conn()
b = batch([b"pipelined"])
sent = [c.send(0, 7, c.produce_body("ep", 0, b)) for _ in range(1000)]
for i, corr in enumerate(sent):
    assert c.produced(c.reply(corr)) == (0, i), i
# Slow and quick ones mixed.
from kwire import i8, i16, i32, i64, string, array
order = []
for i in range(50):
    order.append((1, c.send(1, 4, i32(-1) + i32(20) + i32(1) + i32(1 << 20) + i8(0) + array([string("ep") + array([i32(0) + i64(1000 + i) + i32(1 << 20)])]))))
    order.append((3, c.send(3, 1, array([string("ep")]))))
    order.append((0, c.send(0, 7, c.produce_body("ep", 0, b))))
for key, corr in order:
    c.reply(corr)
assert c.list_offset("ep", 0, -1)[2] == 1050
X
