#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# chaos.sh SECONDS [FAULT...]: three real brokers under faults, in namespaces of their own; see chaos.py. SEED=N repeats what it does.
# Leaves DIRECTORY with all logs and histories when something was wrong, and says where.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export SRCDIR=${here%/tests/chaos} BUILDDIR=${BUILDDIR:-$PWD} PYTHONDONTWRITEBYTECODE=1
skip() { echo "SKIP: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "needs root"
for c in unshare nsenter ip java mkfs.ext4; do command -v $c >/dev/null || skip "needs $c"; done
[ -r /usr/share/java/zookeeper.jar ] || skip "needs libzookeeper-java"
/usr/bin/python3 -c 'import confluent_kafka' 2>/dev/null || skip "needs python3-confluent-kafka"
seconds=$1
shift
dir=$BUILDDIR/tests/chaos/run
rm -rf "$dir"
mkdir -p "$dir"
unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private \
    /usr/bin/python3 "$here/chaos.py" "$seconds" "${SEED:-$RANDOM$RANDOM}" "$dir" "$@" 2>&1 | tee "$dir/output"
status=${PIPESTATUS[0]}
if [ "$status" = 0 ]; then rm -rf "$dir"; else echo "kept: $dir"; fi
exit "$status"
