#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The core simulator: some seeds, which come past everything that it can come past, and each rule that can be switched off is found
# out. SEEDS=N for more of both.
core=$BUILDDIR/tests/sim/core
rc=0
seeds=4000
grep -qE '__(asan|tsan)_' "$core" && seeds=1000 # they take ten times as long
marks=--marks
[ "$seeds" -ge 4000 ] || marks=
"$core" --seeds "1..${SEEDS:-$seeds}" --jobs "$(nproc)" $marks || rc=1
for rule in R1 R1-damage R2 R3 R4 R5 R6 R8 R9 R9-table R10 R11 R12 R15 S10; do
    "$core" --seeds 1..1000 --jobs "$(nproc)" --bug "$rule" || rc=1
done
exit $rc
