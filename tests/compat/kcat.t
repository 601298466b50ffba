# SPDX-License-Identifier: Apache-2.0
# kcat (librdkafka) writes and reads every codec, headers, null and empty keys and values.
requires kcat
. "$SRCDIR/tests/compat/lib.sh"
klogd_start
[ -c /dev/fuse ] && [ -x "$BUILDDIR/fuse/klogfs" ] && mount_start
self() { case $1 in produce) kcat_produce "$2" "$3" ;; consume) kcat_consume "$2" ;; esac; }
exchange self self
has "listing" 'topic "self-zstd" with 1 partitions' "$(kcat -b $B -L)"
has "offset by time" 'self-gzip \[0\] offset 0' "$(kcat -b $B -Q -t self-gzip:0:1000)"
