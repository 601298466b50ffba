# SPDX-License-Identifier: Apache-2.0
# klogfs killed: everything fails at once with ENOTCONN; the next start clears the dead mount by itself.
# https://github.com/kahing/goofys/issues/343 https://github.com/GoogleCloudPlatform/gcsfuse/pull/2465
# https://github.com/libfuse/sshfs/issues/202
scene
echo kept >>"$P"
exec 9<"$P"
mount_kill
no='Transport endpoint is not connected|Software caused connection abort'
fails "$no" ls "$M"
fails "$no" bash -c 'echo x >>"$1"' _ "$P"
fails "$no" cat <&9
exec 9<&-
mount_start
eq "mounts" 1 "$(grep -c " $M " /proc/self/mounts)"
eq "content" kept "$(cat "$P")"
