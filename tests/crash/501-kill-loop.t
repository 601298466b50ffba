# SPDX-License-Identifier: Apache-2.0
# SIGKILL of klogd at 50 random moments (300 in `make check-long`) under load, with flush policy commit: no acknowledged record is lost, none is there twice,
# offsets go on, each start takes less than two seconds. Producers are idempotent and send what was not acknowledged again.
# timeout: 300
requires_klogd
"$PY" "$SRCDIR/tests/crash/kill_loop.py" "${KILLS:-50}" "${SEED:-$RANDOM$RANDOM}" "$KLOGD_LOG" \
    "$BUILDDIR/daemon/klogd" --override listeners="PLAINTEXT://$B" --override log.dirs="$D" || fail "see above"
