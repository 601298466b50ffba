# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The newest confluent-kafka of PyPI, as confluent.t does it with Debian's.
requires kcat
python=$BUILDDIR/tests/clients/pypi/bin/python
"$python" -c 'import confluent_kafka' 2>/dev/null || skip "confluent-kafka is not there (PyPI not reached)"
. "$SRCDIR/tests/compat/lib.sh"
klogd_start --override group.initial.rebalance.delay.ms=0
client=("$python" "$SRCDIR/tests/compat/confluent_client.py")
results_begin confluent-newest "$("${client[@]}" version)"
exchange client "${client[@]}"
features "${client[@]}"
