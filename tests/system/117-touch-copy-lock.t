# SPDX-License-Identifier: Apache-2.0
# touch, cp -p, rsync, flock and an empty append do not trip and add no record.
# https://github.com/Scille/parsec-cloud/issues/7444 https://github.com/GoogleCloudPlatform/gcsfuse/issues/15
# https://github.com/yandex-cloud/geesefs/issues/144
scene
echo a >>"$P"
status 0 touch "$P"
fails 'Operation not permitted' chmod 600 "$P"
fails 'Operation not permitted' chown 12345 "$P"
fails 'Operation not permitted' touch -d '2001-01-01' "$P"
status 0 cp -p "$P" copy
eq "mtime of the copy" "$(stat -c %Y "$P")" "$(stat -c %Y copy)"
status 0 flock "$P" true
"$PY" -c "open('$P', 'a').close()" || fail "an empty append"
"$PY" -c "
import fcntl
f = open('$P')
fcntl.lockf(f, fcntl.LOCK_SH)
" || fail "lockf"
if command -v rsync >/dev/null; then
    status 0 rsync -a "$M/t1/p0" there
    same "rsync" "$P" there
    eq "mtime by rsync" "$(stat -c %Y "$P")" "$(stat -c %Y there)"
fi
status 0 sync "$P"
eq "content" a "$(cat "$P")"
eq "end offset" 1 "$(end_offset)"
