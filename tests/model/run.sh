#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-model: each line of tests/model/runs, two at a time. Prints what a run came to and how long it took; ends with 1 if one
# that must hold has an error or does not end, or one that must break holds, 77 without spin. LONG=1: the long ones too.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v spin >/dev/null || {
    echo "skipped: no spin (package spin)"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# one N WHAT ARGUMENTS...
one() {
    local dir=$scratch/$1 what=$2 rule= began=$SECONDS errors states
    shift 2
    mkdir "$dir" && cd "$dir" || return 1
    [ "$what" = holds ] || { rule=$1; shift; }
    python3 "$here/partition.py" ${rule:+--drop "$rule"} "$@" >model.pml && spin -a model.pml >spin.log 2>&1 &&
        ${CC:-cc} -O2 -w -DSAFETY -DNOREDUCE -DMEMLIM=3000 -o pan pan.c || { cat spin.log; echo "FAILED: no model of $*"; return 1; }
    timeout 900 ./pan -m100000 >pan.log 2>&1
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
    # an array's bound, or a search that was cut short, is no answer
    if ! grep -q 'State-vector' pan.log || grep -qE 'indexing|max search depth too small|out of memory|error: ' pan.log ||
        { [ "$what" = breaks ] && ! grep -q 'assertion violated' pan.log; } ||
        { [ "$what" = holds ] && [ "$errors" != 0 ]; }; then
        grep -E 'assertion violated|error|memory|depth' pan.log | head -5
        echo "FAILED: $what${rule:+ without $rule}: $*"
        return 1
    fi
    echo "$what${rule:+ without $rule}: $* ($states states, $((SECONDS - began)) s)"
    cd / && rm -rf "$dir"
}
export -f one
export here scratch
grep -vE '^#|^$' "$here/runs" | sed "${LONG:+s/^long //;}/^long /d" | awk '{ print NR, $0 }' |
    xargs -P 2 -I{} bash -c 'one {}'
rc=$?
[ "$rc" = 0 ] && echo "the model holds, and breaks without any of its rules" || exit 1
