# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# sarama writes and reads every codec, headers, null and empty keys and values; groups, positions, times, topics, settings.
requires kcat
. "$SRCDIR/tests/compat/lib.sh"
client=("$BUILDDIR/tests/clients/go/clients" sarama)
[ -x "${client[0]}" ] || skip "sarama is not there (no newer Go, or the Go module proxy was not reached)"
klogd_start --override group.initial.rebalance.delay.ms=0
results_begin sarama "$("${client[@]}" version)"
exchange client "${client[@]}"
features "${client[@]}"
