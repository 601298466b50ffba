# SPDX-License-Identifier: Apache-2.0
# python3-kafka writes and reads every codec it has, headers, null and empty keys and values.
requires kcat
requires_python kafka
. "$SRCDIR/tests/compat/lib.sh"
klogd_start
[ -c /dev/fuse ] && [ -x "$BUILDDIR/fuse/klogfs" ] && mount_start
exchange kpy "$PY" "$SRCDIR/tests/compat/kafka_python_client.py"
