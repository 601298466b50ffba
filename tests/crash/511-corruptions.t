# SPDX-License-Identifier: Apache-2.0
# One random corruption of a data directory with known content, a start, everything read, and once more: see corruption.py.
# The same ones every time; SEEDS=1000 for more of them, SEED=N for others, or one that failed again (with SEEDS=1).
# timeout: 600
requires_klogd
requires_python json
for dir in /dev/shm .; do # in memory where that is to be had: nothing here depends on a disk, and there are thousands of syncs
    W=$(mktemp -d "$dir/corruptions-XXXXXX" 2>/dev/null) && break
done
HOOKS+=("rm -rf '$W'")
WORKERS=${WORKERS:-4} "$PY" "$SRCDIR/tests/crash/corruption.py" "${SEEDS:-40}" "${SEED:-20000}" "$W" \
    "$BUILDDIR/daemon/klogd" "$BUILDDIR/src/klog" || fail "see above"
