# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# kafkajs writes and reads every codec, headers, null and empty keys and values; groups, positions, times, topics, settings. It comes from
# the npm registry when that is there.
requires kcat node
. "$SRCDIR/tests/compat/lib.sh"
[ -d "$BUILDDIR/tests/npm/node_modules/kafkajs" ] || skip "kafkajs is not there (npm registry not reached)"
export NODE_PATH=$BUILDDIR/tests/npm/node_modules KAFKAJS_NO_PARTITIONER_WARNING=1
klogd_start --override group.initial.rebalance.delay.ms=0
[ -c /dev/fuse ] && [ -x "$BUILDDIR/fuse/klogfs" ] && mount_start
client=(node "$SRCDIR/tests/compat/kafkajs_client.cjs")
results_begin kafkajs "$("${client[@]}" version)"
exchange client "${client[@]}"
features "${client[@]}"
