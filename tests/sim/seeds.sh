#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The simulator: each plan that once found something, and some seeds of a broker, of several, and of a log alone, a part of them twice, to see that
# they give the same run again. SEEDS=A..B for others.
sim=$BUILDDIR/tests/sim/sim
rc=0
seeds=1..200 logs=1..800 copies=1..200 fleets=1..60
grep -q '__asan_' "$sim" && seeds=1..30 logs=1..80 copies=1..20 fleets=1..10 # they take ten times as long
grep -q '__tsan_' "$sim" && seeds=1..5 logs=1..5 copies=1..5 fleets=1..2 # and this has nothing to look for among fibers
for plan in "${srcdir:-.}"/tests/sim/corpus/*.plan; do
    [ -e "$plan" ] || continue
    "$sim" --plan "$plan" || { echo "$plan"; rc=1; }
done
# A seed's plan, printed and read again, is the same run.
plan=$(mktemp)
"$sim" --seed 3 --print-plan >"$plan"
[ "$("$sim" --plan "$plan" --hashes | head -n 1)" = "$("$sim" --seed 3 --hashes | head -n 1)" ] || { echo "a printed plan gives another run"; rc=1; }
rm -f "$plan"
"$sim" --seeds "${SEEDS:-$seeds}" --jobs "$(nproc)" --twice 5 || rc=1
"$sim" --cluster --seeds "${SEEDS:-$fleets}" --jobs "$(nproc)" --twice 5 || rc=1
"$sim" --log-only --seeds "${SEEDS:-$logs}" --jobs "$(nproc)" --twice 5 || rc=1
"$sim" --copies --seeds "${SEEDS:-$copies}" --jobs "$(nproc)" --twice 5 || rc=1
exit $rc
