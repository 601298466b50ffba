# SPDX-License-Identifier: Apache-2.0
# rm -r of a group removes its positions and says so; so do rm of each file and rmdir. Nothing else goes.
requires kcat
klogd_start
topic t1 3
mount_start
G=$M/t1/.groups
for how in "rm -r" "rm -rf"; do
    mkdir "$G/g" "$G/other"
    eq "files" ".status p0 p1 p2" "$(ls -A "$G/g" | tr '\n' ' ' | sed 's/ $//')"
    $how "$G/g" || fail "$how"
    eq "groups that are left" other "$(ls "$G")"
    fails 'No such file' cat "$G/g/p0"
    eq "positions of the other" "0 0 0" "$(cat "$G"/other/p* | tr '\n' ' ' | sed 's/ $//')"
    rmdir "$G/other" || fail "rmdir"
done
mkdir "$G/g"
rm "$G/g/p1" || fail "rm"
eq "files" ".status p0 p2" "$(ls -A "$G/g" | tr '\n' ' ' | sed 's/ $//')"
rm "$G/g/p0" "$G/g/p2" || fail "rm"
rmdir "$G/g" || fail "rmdir of what was emptied"
fails 'No such file' rmdir "$G/g"
mkdir "$G/g" || fail "mkdir of what was removed"
exec 8<"$M/t1/as/g/p0"
fails 'Device or resource busy' rm -r "$G/g"
exec 8<&-
eq "positions" "0" "$(cat "$G"/g/p0)"
