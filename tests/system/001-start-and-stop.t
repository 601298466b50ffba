# SPDX-License-Identifier: Apache-2.0
# A broker and a mount start, serve one record, and stop with status 0; after a clean stop nothing is scanned.
klogd_start
topic t1
echo hello | grow
eq "the record" hello "$(consume)"
klogd_stop
klogd_restart
eq "the record after a restart" hello "$(consume)"
mount_start
eq "the same through the mount" hello "$(cat "$P")"
mount_stop
klogd_stop
