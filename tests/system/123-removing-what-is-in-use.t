# SPDX-License-Identifier: Apache-2.0
# rm of a partition is EPERM and leaves no .fuse_hidden file; a topic goes only under -o delete, whole, and its readers get a
# clean end.
# https://github.com/trapexit/mergerfs/issues/521 https://github.com/littlefs-project/littlefs-fuse/issues/79
# https://github.com/yadayada/acd_cli/issues/210
scene
echo keep >>"$P"
exec 9<"$P"
entries=$(ls -A "$M/t1")
fails 'Operation not permitted' rm "$P"
fails 'Operation not permitted' rm -r "$M/t1"
eq "entries" "$entries" "$(ls -A "$M/t1")"
fails 'Operation not permitted|not empty' rmdir "$M/t1"
eq "content" keep "$(cat "$P")"
exec 9<&-
mount_stop

mount_start -o delete
exec 9<"$P"
fails 'Operation not permitted' rm "$P"
status 0 rmdir "$M/t1"
timeout 10 cat <&9 >held 2>err
[ $? -ne 124 ] || fail "a reader of the deleted topic hangs"
exec 9<&-
wait_for 5 "the topic is gone" eval '[ -z "$(ls "$M")" ]'
eq "topics" "" "$("$PY" "$TESTLIB/topic.py" list)"
wait_for 10 "its directory is gone" eval '[ -z "$(ls "$D" | grep ^t1-)" ]'
fails 'No such file' cat "$P"
mkdir "$M/t1" || fail "the same name again"
eq "the new topic is empty" 0 "$(stat -c %s "$P")"
