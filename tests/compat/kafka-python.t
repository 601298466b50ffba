# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# python3-kafka writes and reads every codec it has, headers, null and empty keys and values; groups, positions, times, topics, settings.
requires kcat
requires_python kafka
. "$SRCDIR/tests/compat/lib.sh"
klogd_start --override group.initial.rebalance.delay.ms=0
[ -c /dev/fuse ] && [ -x "$BUILDDIR/fuse/klogfs" ] && mount_start
client=("$PY" "$SRCDIR/tests/compat/kafka_python_client.py")
results_begin kafka-python "python3-kafka $("${client[@]}" version | sed 's/.* //')"
exchange client "${client[@]}"
features "${client[@]}"
