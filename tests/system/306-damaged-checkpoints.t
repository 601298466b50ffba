# SPDX-License-Identifier: Apache-2.0
# Damaged checkpoint files cost a scan, never the start or a record.
# https://github.com/linkedin/kafka/pull/395 https://github.com/linkedin/kafka/pull/401
# https://github.com/apache/kafka/pull/8070
klogd_start
topic t1
seq 1 1000 | grow
klogd_stop
found=$(find "$D" -maxdepth 2 -type f -name '*checkpoint*' | wc -l)
[ "$found" -gt 0 ] || fail "no checkpoint files"
zero() { head -c "$(stat -c %s "$1")" /dev/zero >"$1.new" && mv "$1.new" "$1"; }
empty() { : >"$1"; }
noise() { head -c 200 /dev/urandom >"$1"; }
lost() { rm "$1"; }
for how in zero empty noise lost; do
    find "$D" -maxdepth 2 -type f -name '*checkpoint*' | while read -r f; do $how "$f"; done
    klogd_restart
    consume | cmp - <(seq 1 1000) || fail "records with checkpoints $how"
    [ $how = lost ] && klogd_kill || klogd_stop
done
# The start offset must not fall back: records deleted stay deleted.
klogd_restart
"$PY" - <<'X' || fail "DeleteRecords"
from kwire import Conn, array, string, i32, i64
c = Conn()
r = c.ask(21, 0, array([string("t1") + array([i32(0) + i64(500)])]) + i32(5000))
r.i32(), r.i32(), r.string(), r.i32(), r.i32()
assert (r.i64(), r.i16()) == (500, 0)
X
eq "start offset" 500 "$(start_offset)"
klogd_stop
klogd_restart
eq "start offset after a clean stop" 500 "$(start_offset)"
klogd_kill
klogd_restart
eq "start offset after kill -9" 500 "$(start_offset)"
consume | cmp - <(seq 501 1000) || fail "records kept"
