# SPDX-License-Identifier: Apache-2.0
# A classic consumer group shares partitions out, commits, and goes on where it was after kill -9 of the broker.
requires kcat
klogd_start
topic g4 4
seq 1 1000 | produce -t g4
"$PY" -c "
from kwire import Conn
raise SystemExit(0 if 11 in Conn().api_versions() else 1)" || skip "no consumer groups yet"
drink() { timeout 30 kcat -b $B -q -G drinkers -X auto.offset.reset=earliest -X enable.auto.offset.store=true -e g4 2>/dev/null; }
drink >first
sort -n first | cmp - <(seq 1 1000) || fail "what the group read: $(wc -l <first) lines"
seq 1001 1100 | produce -t g4
klogd_kill
klogd_restart
drink >second
sort -n second | cmp - <(seq 1001 1100) || fail "what it read after the restart: $(wc -l <second) lines"
