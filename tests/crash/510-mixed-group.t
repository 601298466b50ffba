# SPDX-License-Identifier: Apache-2.0
# One group with members of kcat, python3-kafka, python3-confluent-kafka, kafkajs and shells on two mounts at once; they come, leave
# and are killed under a steady producer for GROUP_SECONDS (8; 300 in `make check-long`). SEED=N repeats.
# timeout: 900
requires kcat
kinds=(kcat)
"$PY" -c 'import kafka' 2>/dev/null && kinds+=(kafka)
"$PY" -c 'import confluent_kafka' 2>/dev/null && kinds+=(confluent)
if [ -d "$BUILDDIR/tests/npm/node_modules/kafkajs" ] && command -v node >/dev/null; then
    export NODE_PATH=$BUILDDIR/tests/npm/node_modules KAFKAJS_NO_PARTITIONER_WARNING=1
    kinds+=(js)
fi
if [ -c /dev/fuse ] && [ -x "$BUILDDIR/fuse/klogfs" ]; then kinds+=(fs); fi
[ ${#kinds[@]} -ge 2 ] || skip "needs a second client library"
echo "members of: ${kinds[*]}"
klogd_start --override group.initial.rebalance.delay.ms=500
topic mixed 6
kcat -b $B -G x -e mixed >/dev/null 2>&1 # makes __consumer_offsets
mkdir members
seconds=${GROUP_SECONDS:-8}
timeout $((seconds * 2 + 100)) "$PY" "$SRCDIR/tests/crash/mixed_group.py" "$seconds" "${SEED:-$RANDOM}" "$PWD/members" "${kinds[@]}" || {
    tail -n3 members/*.log
    fail "see above"
}
