# SPDX-License-Identifier: Apache-2.0
# rmdir deletes a topic only on a mount made with -o delete; who holds a file of it is told, and a topic of the same name made later is
# another one.
klogd_start
topic t1
mount_start
fails 'Operation not permitted' rmdir "$M/t1"
mount_stop
mount_start -o delete
echo old >>"$P"
exec 8<"$P" 9>>"$P"
fails 'Operation not permitted' rm -r "$M/t1"
eq "content after rm -r" old "$(cat "$P")"
timeout 20 cat "$M/t1/follow/p0" >followed &
follower=$!
wait_lines followed 1
rmdir "$M/t1" || fail "rmdir"
[ ! -e "$M/t1" ] || fail "the topic is still there"
eq "topics" "" "$("$PY" "$TESTLIB/topic.py" list)"
wait $follower
eq "status of the follower: end of file" 0 $?
fails 'Stale file handle' cat <&8
fails 'Stale file handle' bash -c 'echo x >&9'
exec 8<&- 9>&-
mkdir "$M/t1"
eq "content of the new topic" "" "$(cat "$P")"
echo new >>"$P"
eq "content of the new topic" new "$(cat "$P")"
