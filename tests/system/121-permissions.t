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

# A group that may write: its members do everything the owner does, all others read. The modes that are shown are those that count.
outsider() { setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"; }
member() { setpriv --reuid=nobody --regid=nogroup --groups=users -- "$@"; }
mount_start -o allow_other,gid=users,umask=002
eq "modes" "root users 664, 775, 220" "$(stat -c '%U %G %a' "$P"), $(stat -c %a "$M/t1"), $(stat -c %a "$M/t1/any")"
status 0 member bash -c 'echo b >>"$1" && echo c >>"$2/t1/any" && mkdir "$2/made" && touch "$2/made/p1" && mkdir "$2/made/.groups/g"' _ "$P" "$M"
status 0 member bash -c 'echo retention.ms=3600000 >>"$1/.config" && echo end >"$1/.groups/g/p0"' _ "$M/made"
eq "content" "a b c" "$(outsider cat "$P" | xargs)"
for path in t1/p0 t1/any t1/json/p0 made/.config made/.groups/g/p0; do
    fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- bash -c 'echo x >>"$1"' _ "$M/$path"
    eq "$path for an outsider" no "$(outsider test -w "$M/$path" && echo yes || echo no)"
    eq "$path for a member" yes "$(member test -w "$M/$path" && echo yes || echo no)"
done
for dir in . t1 made/.groups; do
    fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- mkdir "$M/$dir/x"
done
fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- touch "$M/t1/p3"
fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- rm "$M/made/.groups/g/p0"
eq "what was stored" "$(end_offset)" 3
mount_stop
# Nobody but the group: not even looking.
mount_start -o allow_other,gid=users,umask=007
fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --clear-groups -- ls "$M"
eq "a member reads" a "$(member head -n1 "$P")"
mount_stop
# Without allow_other nobody else gets in, whatever the modes; klogfs says so.
mount_start -o gid=users,umask=002
fails 'Permission denied' setpriv --reuid=nobody --regid=nogroup --groups=users -- ls "$M"
has "what klogfs says" 'without allow_other' "$(tail -n3 "$KLOGFS_LOG")"
mount_stop
fails 'gid=nosuchgroup: there is no such group' klogfs $B "$M" -o gid=nosuchgroup

mount_start -o ro
fails 'Read-only file system' bash -c 'echo x >>"$1"' _ "$P"
mount_stop
