# SPDX-License-Identifier: Apache-2.0
# The last N, at the end, past the end.
# https://github.com/edenhill/kcat/issues/56 https://github.com/edenhill/kcat/issues/68
# https://github.com/edenhill/kcat/issues/219
klogd_start
topic t1
seq 150 | grow
eq "lines" "150 100 1 1 0" "$(for o in -1000 -100 -1 149 150; do $KC -t t1 -p 0 -o $o -e | wc -l; done | tr '\n' ' ' | sed 's/ $//')"
has "past the end" 'out of range' "$($KC -t t1 -p 0 -o 151 -e -X auto.offset.reset=error -X debug=fetch 2>&1 | tr A-Z a-z)"
"$PY" - <<'X' || fail "fetches"
import time
from kwire import Conn, batch
c, d = Conn(), Conn()
assert c.fetch("t1", 0, 151)[:2] == (1, -1) or c.fetch("t1", 0, 151)[0] == 1
assert c.fetch("t1", 0, -5)[0] == 1
t0 = time.monotonic()
assert c.fetch("t1", 0, 150, max_wait_ms=700)[:2] == (0, 150)
assert time.monotonic() - t0 > 0.6, "no long poll at the end"
assert c.fetch("t1", 5, 0)[0] == 3 and c.fetch("nosuch", 0, 0)[0] == 3
# A waiting fetch is answered when a record comes, not at its time-out.
from kwire import i8, i16, i32, i64, string, array
corr = c.send(1, 4, i32(-1) + i32(3600000) + i32(1) + i32(1 << 20) + i8(0) + array([string("t1") + array([i32(0) + i64(150) + i32(1 << 20)])]))
assert d.produce("t1", 0, batch([b"wake"])) == (0, 150)
err, hw, lso, b = c.fetched(c.reply(corr))
assert (err, hw) == (0, 151) and b"wake" in b
X
