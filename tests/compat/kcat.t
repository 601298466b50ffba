# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# kcat (librdkafka) writes and reads every codec, headers, null and empty keys and values; groups, times.
requires kcat
. "$SRCDIR/tests/compat/lib.sh"
klogd_start --override group.initial.rebalance.delay.ms=0
[ -c /dev/fuse ] && [ -x "$BUILDDIR/fuse/klogfs" ] && mount_start
client=(bash "$SRCDIR/tests/compat/kcat_client.sh")
self() { case $1 in produce) kcat_produce "$2" "$3" ;; consume) kcat_consume "$2" ;; esac; }
results_begin kcat "$("${client[@]}" version)"
exchange self self
has "listing" 'topic "self-zstd" with 1 partitions' "$(kcat -b $B -L)"
features "${client[@]}"
