# SPDX-License-Identifier: Apache-2.0
# Lines stay whole whatever the sizes of the kernel's writes, with two writers at once and with lines of 600,000 bytes.
# https://github.com/cberner/fuser/issues/252 https://github.com/libfuse/libfuse/issues/161
# https://github.com/wasmerio/wasmer/issues/6525
scene
seq 100000 199999 >>"$P" &
a=$!
seq 200000 299999 >>"$P" &
b=$!
wait $a
eq "first writer" 0 $?
wait $b
eq "second writer" 0 $?
"$PY" - "$P" <<'X' || fail "long lines"
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
b = b'A' * 600000 + b'\n' + b'B' * 600000 + b'\n'
assert os.write(f, b) == len(b)
os.close(f)
X
awk '{ print length($0) }' "$P" | sort -n | uniq -c | awk '{ print $1, $2 }' >lengths
printf '200000 6\n2 600000\n' | same "lengths of lines" - lengths
eq "distinct lines" 200002 "$(sort -u "$P" | wc -l)"
consume >all
same "kcat and the file" "$P" all
grep '^1' all | cmp - <(seq 100000 199999) || fail "the first writer's order"
grep '^2' all | cmp - <(seq 200000 299999) || fail "the second writer's order"
eq "end offset" 200002 "$(end_offset)"
