#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Is a seed the same run whatever built the simulator? (make check-sim-hashes)
#
#     hashes.sh SRCDIR SCRATCH
#
# Builds it with -O0, -O2, clang and the address sanitizer (each in a directory of SCRATCH, which stays, so that the next time only
# what has changed is built), and compares what --hashes prints for seeds SEEDS (1..20) of a broker and of a log alone. BUILDS names
# those to take, of: O0 O2 clang asan. The first that differs is a failure, with the first seed; --trace then says where.
set -u
srcdir=$(cd "$1" && pwd) || exit 1
mkdir -p "$2" && cd "$2" || exit 1
seeds=${SEEDS:-1..20}
rc=0 first=

# One a line: a compiler may be two words (ccache gcc).
configure_args() {
    case $1 in
    O0) printf '%s\n' "CC=${CC:-gcc}" CFLAGS=-O0 ;;
    O2) printf '%s\n' "CC=${CC:-gcc}" CFLAGS=-O2 ;;
    clang) printf '%s\n' "CC=${CLANG:-clang}" CFLAGS=-O1 ;;
    asan) printf '%s\n' "CC=${CC:-gcc}" CFLAGS=-O1 --enable-sanitizers ;;
    *) echo "hashes.sh: no such build: $1" >&2; return 1 ;;
    esac
}

build() {
    mkdir -p "$1"
    local args
    mapfile -t args < <(configure_args "$1")
    [ ${#args[@]} -gt 0 ] || return 1
    (cd "$1" && { [ -e Makefile ] || "$srcdir/configure" -q "${args[@]}"; } && make -s -j"${JOBS:-$(nproc)}" tests/sim/sim) >"$1.log" 2>&1
}

# "SEED HASH" a line, in order.
hashes() {
    "$1/tests/sim/sim" --hashes --twice 0 --seeds "$seeds" | grep -E '^[0-9]+ [0-9a-f]{16}$' | sort -n
    echo log
    "$1/tests/sim/sim" --log-only --hashes --twice 0 --seeds "$seeds" | grep -E '^[0-9]+ [0-9a-f]{16}$' | sort -n
}

for b in ${BUILDS:-O0 O2 clang asan}; do
    build "$b" || { echo "$b: it cannot be built, see $PWD/$b.log"; rc=1; continue; }
    hashes "$b" >"$b.hashes"
    [ "$(wc -l <"$b.hashes")" -gt 2 ] || { echo "$b: it has no hashes"; rc=1; continue; }
    if [ -z "$first" ]; then
        first=$b
    elif ! cmp -s "$first.hashes" "$b.hashes"; then
        echo "$b and $first differ: $(diff "$first.hashes" "$b.hashes" | sed -n 2p)"
        rc=1
    fi
done
[ $rc = 0 ] && echo "seeds $seeds are the same under ${BUILDS:-O0 O2 clang asan}"
exit $rc
