# SPDX-License-Identifier: Apache-2.0
# kafkajs writes and reads every codec, headers, null and empty keys and values; it comes from the npm registry when that is there.
# timeout: 180
requires kcat node
. "$SRCDIR/tests/compat/lib.sh"
[ -d "$BUILDDIR/tests/npm/node_modules/kafkajs" ] || skip "kafkajs is not there (npm registry not reached)"
export NODE_PATH=$BUILDDIR/tests/npm/node_modules KAFKAJS_NO_PARTITIONER_WARNING=1
klogd_start
[ -c /dev/fuse ] && [ -x "$BUILDDIR/fuse/klogfs" ] && mount_start
exchange js node "$SRCDIR/tests/compat/kafkajs_client.cjs"
