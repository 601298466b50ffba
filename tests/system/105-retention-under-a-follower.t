# SPDX-License-Identifier: Apache-2.0
# Retention takes the head of a file that is followed: its size does not drop while it is open, no NULs appear, and cat gives
# whole surviving lines only.
# https://github.com/openzfs/zfs/issues/3601
# timeout: 90
klogd_start --override log.retention.check.interval.ms=200
topic ret 1 retention.bytes=200000 segment.bytes=100000
mount_start
P=$M/ret/p0
exec 8<"$P"
seq 1 100000 >>"$P"
size=$(stat -Lc %s /dev/fd/8)
tail -n1 -f "$P" >out 2>err &
tail=$!
wait_lines out 1
seq 100001 200000 >>"$P"
wait_for 30 "retention took the head" eval '[ "$(start_offset ret)" -gt 100000 ]'
after=$(stat -Lc %s /dev/fd/8)
[ "$after" -ge "$size" ] || fail "the size dropped from $size to $after while the file was open"
echo last >>"$P"
wait_for 10 "the follower sees the newest line" grep -qx last out
kill $tail
wait $tail
eq "complaints of tail" "" "$(cat err)"
# It may have been overtaken; what it saw is whole, in order, and ends with the newest.
eq "the end of what the follower saw" "200000 last" "$(tail -n2 out | tr '\n' ' ' | sed 's/ $//')"
sed '$d' out | sort -nuC || fail "order of what the follower saw"
eq "first of what the follower saw" 100000 "$(head -n1 out)"
# The held reader skips what is gone and shows the rest once, whole.
cat <&8 >held
eq "NULs" 0 "$(tr -dc '\0' <held | wc -c)"
eq "last line of the held reader" last "$(tail -n1 held)"
sed '$d' held | awk 'NR > 1 && $1 != was + 1 { gaps++ } { was = $1 } END { exit gaps > 1 }' || fail "order of the held reader"
exec 8<&-
first=$(start_offset ret)
wait_for 10 "a new reader begins at the first kept line" eval '[ "$(head -n1 "$P")" = $((first + 1)) ]'
cat "$P" >now
eq "lines" $((200001 - first)) "$(wc -l <now)"
cmp <(seq $((first + 1)) 200000; echo last) now || fail "surviving lines"
eq "size" "$(wc -c <now)" "$(stat -c %s "$P")"
