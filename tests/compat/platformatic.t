# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# @platformatic/kafka writes and reads every codec, headers, null and empty keys and values; groups, positions, times, topics, settings.
requires kcat node
. "$SRCDIR/tests/compat/lib.sh"
[ -e "$BUILDDIR/tests/clients/platformatic/stamp" ] || skip "@platformatic/kafka is not there (npm registry not reached, or not built)"
export NODE_PATH=$BUILDDIR/tests/clients/platformatic/node_modules
klogd_start --override group.initial.rebalance.delay.ms=0
client=(node "$SRCDIR/tests/compat/platformatic_client.cjs")
as_written() { sed 's/ h=1,h=2$/ h=1/'; }
NO_HEADERS="it writes no two of the same name"
results_begin platformatic "$("${client[@]}" version)"
exchange client "${client[@]}"
features "${client[@]}"
