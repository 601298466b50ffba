# SPDX-License-Identifier: Apache-2.0
# In-place editors are told EPERM, leave no file behind, and do not hang the mount.
# https://github.com/containers/fuse-overlayfs/issues/265 https://github.com/sminez/ad/issues/18
# https://github.com/opencredo/kubefuse/issues/4 https://github.com/csirmaz/ESFS/issues/1
scene
printf 'h1\nh2\n' >>"$P"
entries=$(ls -A "$M/t1")
status 4 sed -i s/h/H/ "$P"
has "what sed says" 'Operation not permitted' "$OUT"
if command -v vim >/dev/null; then
    fails "" timeout 10 vim -es -u NONE +s/h/H/ +wq "$P" </dev/null
fi
fails 'Operation not permitted|Permission denied' touch "$M/t1/.p0.swp"
fails 'Operation not permitted|Permission denied' bash -c 'echo >"$1"' _ "$M/t1/p0~"
eq "entries" "$entries" "$(ls -A "$M/t1")"
printf 'h1\nh2\n' | same "content" - "$P"
