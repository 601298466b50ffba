# SPDX-License-Identifier: Apache-2.0
# klog run shares a group with kcat and python3-kafka, whoever leads it, while members come, go and are killed: every record is dealt
# with, and no position goes back. LONG=60 in `make check-long`, SEED=N to repeat.
# timeout: 180
requires kcat
requires_python kafka
klogd_start --override group.initial.rebalance.delay.ms=0
topic t1 6
"$PY" "$SRCDIR/tests/system/share_loop.py" "${LONG:-10}" "${SEED:-$RANDOM}" || fail "see above: $(cat ./*.err)"
