# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The newest kafka-python of PyPI, as kafka-python.t does it with Debian's.
requires kcat
python=$BUILDDIR/tests/clients/pypi/bin/python
"$python" -c 'import kafka' 2>/dev/null || skip "kafka-python is not there (PyPI not reached)"
. "$SRCDIR/tests/compat/lib.sh"
klogd_start --override group.initial.rebalance.delay.ms=0
client=("$python" "$SRCDIR/tests/compat/kafka_python_client.py")
results_begin kafka-python-newest "$("${client[@]}" version)"
exchange client "${client[@]}"
features "${client[@]}"
