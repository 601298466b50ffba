# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# @confluentinc/kafka-javascript writes and reads every codec, headers, null and empty keys and values; groups, positions, times, topics, settings.
requires kcat node
. "$SRCDIR/tests/compat/lib.sh"
[ -e "$BUILDDIR/tests/clients/confluent-js/stamp" ] || skip "@confluentinc/kafka-javascript is not there (npm registry not reached, or not built)"
export NODE_PATH=$BUILDDIR/tests/clients/confluent-js/node_modules
klogd_start --override group.initial.rebalance.delay.ms=0
client=(node "$SRCDIR/tests/compat/confluent_client.cjs")
as_written() { sed 's/^3 <k4> <> -$/3 <k4> ~ -/'; }
NO_EMPTY="it writes an empty value as null"
results_begin confluent-js "$("${client[@]}" version)"
exchange client "${client[@]}"
features "${client[@]}"
