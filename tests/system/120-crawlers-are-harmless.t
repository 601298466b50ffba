# SPDX-License-Identifier: Apache-2.0
# Whoever crawls the tree creates nothing, and the daemon's memory and descriptors come back.
# https://github.com/kahing/goofys/issues/350 https://github.com/s3fs-fuse/s3fs-fuse/issues/1587
# https://github.com/microsoft/CromwellOnAzure/issues/517
# timeout: 180
scene
"$PY" - <<'X'
from kwire import Conn
c = Conn()
for i in range(300):
    assert c.create_topic("c%d" % i, 3)[0] == 0
X
echo a >>"$P"
wait_for 10 "all topics are listed" eval '[ "$(ls "$M" | wc -l)" = 301 ]'
topics=$("$PY" "$TESTLIB/topic.py" list | md5sum)
rss=$(rss_kb "$KLOGFS_PID")
fds=$(fd_count "$KLOGFS_PID")
find "$M" -ls >/dev/null || fail "find -ls"
find "$M" -type f -exec head -c1 {} + >/dev/null || fail "find -exec head"
grep -r nothing "$M" >/dev/null
du -s "$M" >/dev/null || fail "du"
between "growth of memory in kB" -100000 51200 $(($(rss_kb "$KLOGFS_PID") - rss))
wait_for 10 "descriptors are back to $fds" eval '[ "$(fd_count "$KLOGFS_PID")" -le $((fds + 8)) ]'
eq "topics" "$topics" "$("$PY" "$TESTLIB/topic.py" list | md5sum)"
eq "consumer groups" 0 "$(find "$M" -path '*/.groups/*' | wc -l)"
has "type of the mount" ' fuse\.klogfs ' "$(grep " $M " /proc/self/mounts)"
