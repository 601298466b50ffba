# SPDX-License-Identifier: Apache-2.0
# Ten million lines through one cat >> p0 and back through one cat are the same bytes.
# timeout: 240
[ "$(df --output=avail -B1M "$T" | tail -n1)" -gt 3000 ] || skip "needs 3 GB of disk"
scene
seq 1 10000000 >lines
t0=$(now_ms)
cat lines >>"$P" || fail "cat >>"
t1=$(now_ms)
eq "end offset" 10000000 "$(end_offset)"
cat "$P" >back || fail "cat"
t2=$(now_ms)
same "back" lines back
eq "wc -l" 10000000 "$(wc -l <"$P")"
echo "79 MB in 10 million lines: in $((t1 - t0)) ms, back in $((t2 - t1)) ms"
