# SPDX-License-Identifier: Apache-2.0
# With allow_other the modes decide; without it only the mounter gets in.
# https://github.com/whoozle/android-file-transfer-linux/issues/310 https://github.com/libfuse/libfuse/pull/1449
# https://github.com/cxl-micron-reskit/famfs/issues/113
requires_root
id nobody >/dev/null 2>&1 || skip "needs the user nobody"
mount -t tmpfs -o mode=755 none "$T/tmp" # nobody must be able to come here whatever the build directory's modes
cleanup_fn "umount -l $T/tmp"
M=$T/tmp/mnt
P=$M/t1/p0
klogd_start
topic t1
mount_start -o allow_other
as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"; }
setpriv --reuid=nobody --regid=nogroup --clear-groups -- ls "$T/tmp" >/dev/null 2>&1 || skip "the build directory is closed to others"
echo a >>"$P"
eq "modes" "644 755" "$(stat -c %a "$P") $(stat -c %a "$M/t1")"
eq "nobody reads" a "$(as_nobody cat "$P")"
fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- bash -c 'echo x >>"$1"' _ "$P"
fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- rmdir "$M/t1"
fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- mkdir "$M/t2"
mount_stop
mount_start
fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- ls "$M"
# what access(2) says without the kernel's own checks
[ -r "$P" ] && [ -w "$P" ] && [ ! -x "$P" ] && [ -x "$M/t1" ] && [ ! -x "$M/.status" ] || fail "test -r -w -x"
eq "programs among the files" "" "$(find "$M" -type f -executable)"
mount_stop
mount_start -o allow_other,uid=65534,umask=077
eq "owner and mode" "65534 600" "$(stat -c '%u %a' "$P")"
eq "content" a "$(as_nobody cat "$P")"
mount_stop
mount_start -o ro
fails 'Read-only file system' bash -c 'echo x >>"$1"' _ "$P"
mount_stop
