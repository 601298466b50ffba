# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# franz-go writes and reads every codec, headers, null and empty keys and values; groups, positions, times, topics, settings.
requires kcat
. "$SRCDIR/tests/compat/lib.sh"
client=("$BUILDDIR/tests/clients/go/clients" franz)
[ -x "${client[0]}" ] || skip "franz-go is not there (no newer Go, or the Go module proxy was not reached)"
klogd_start --override group.initial.rebalance.delay.ms=0
results_begin franz-go "$("${client[@]}" version)"
exchange client "${client[@]}"
features "${client[@]}"
