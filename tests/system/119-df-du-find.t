# SPDX-License-Identifier: Apache-2.0
# df, du, find and stat -f get sensible numbers.
# https://github.com/Sohex/musefs/issues/368 https://github.com/awslabs/soci-snapshotter/pull/1755
# https://github.com/minio/minfs/issues/8
scene
seq 1 30000 >>"$P"
read -r bsize blocks free len type < <(stat -f -c '%S %b %a %l %T' "$M")
between "block size" 1 1048576 "$bsize"
[ "$blocks" -gt 0 ] || fail "no blocks"
[ "$free" -gt 0 ] || fail "no free blocks"
[ "$free" -le "$blocks" ] || fail "more free than all"
between "name length" 249 255 "$len"
has "type" 'fuse' "$type"
has "df" "^[^ ]+ +[1-9][0-9]* +[0-9]+ +[1-9][0-9]* +[0-9]+% $M\$" "$(df -P "$M" | tail -n1)"
read -r hard size stblocks unit kind < <(stat -c '%h %s %b %B %F' "$P")
eq "links" 1 "$hard"
eq "size" 168894 "$size"
eq "blocks" "$(((size + unit - 1) / unit))" "$stblocks"
eq "kind" "regular file" "$kind"
eq "du of the file" 168894 "$(du -b "$P" | cut -f1)"
eq "find" "$P" "$(find "$M" -type f -size +100k)"
eq "directories" "$M
$M/t1" "$(find "$M" -type d -not -path '*/.*' | sort)"
[ "$(stat -c %h "$M/t1")" -ge 2 ] || fail "links of a directory"
ino=$(stat -c %i "$P")
mount_stop
mount_start
eq "inode number in the next mount" "$ino" "$(stat -c %i "$P")"
