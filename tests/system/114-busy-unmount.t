# SPDX-License-Identifier: Apache-2.0
# A busy mount refuses umount with EBUSY and goes on working; a lazy one goes when its last user does.
# https://github.com/hanwen/go-fuse/issues/532 https://github.com/Alluxio/alluxio/issues/15161
scene
echo first >>"$P"
exec 9<"$P"
fails 'busy' fusermount3 -u "$M"
fails 'busy' umount "$M"
echo still >>"$P" || fail "append after the refused umount"
eq "last line" still "$(tail -n1 "$P")"
status 0 fusermount3 -uz "$M"
cat <&9 >held
printf 'first\nstill\n' | same "held file" - held
exec 9<&-
wait_gone "$KLOGFS_PID" 3
KLOGFS_PID=
