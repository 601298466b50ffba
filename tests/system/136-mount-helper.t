# SPDX-License-Identifier: Apache-2.0
# mount.klogfs takes what mount(8) gives it, knows its options, and refuses a second mount on the same place.
klogd_start
topic t1
requires_fuse
mkdir -p "$M"
cleanup_fn 'umount "$M" 2>/dev/null'
ln -s "$BUILDDIR/fuse/klogfs" mount.klogfs
status 0 ./mount.klogfs $B "$M" -s -n -v -o rw,allow_other,nosuid,noexec,_netdev,x-systemd.automount,umask=027
has "the mount" "^$B $M fuse.klogfs rw,nosuid,nodev,noexec,.*allow_other" "$(grep " $M " /proc/self/mounts)"
eq "mode" 640 "$(stat -c %a "$P")"
fails 'already' ./mount.klogfs $B "$M"
eq "mounts" 1 "$(grep -c " $M " /proc/self/mounts)"
umount "$M" || fail "umount"
wait_for 10 "klogfs ends" eval '! pgrep -f "mount.klogfs.*$M" >/dev/null'
status 0 ./mount.klogfs $B "$M" -f -o ro
grep -q " $M " /proc/self/mounts && fail "mount -f mounted"
fails 'nearest.*timeout' ./mount.klogfs $B "$M" -o tiemout=3
fails 'needs a value' ./mount.klogfs $B "$M" -o timeout
# In mount(8) itself, where it would look for its helper.
mount -t tmpfs none /sbin 2>/dev/null || skip "cannot stand in for /sbin"
ln -s "$BUILDDIR/fuse/klogfs" /sbin/mount.klogfs
status 0 mount -t klogfs $B "$M" -o ro
fails 'Read-only file system' bash -c 'echo x >>"$1"' _ "$P"
eq "options" ro "$(grep " $M " /proc/self/mounts | grep -o ' fuse.klogfs ro' | cut -d' ' -f3)"
