# SPDX-License-Identifier: Apache-2.0
# Times of small texts and of directories: when what they say, or the names in them, last changed as far as the mount saw. Reading
# changes none, so who looks at a time before and after a copy sees one; and every change shows, to backups by ctime and to find -newer.
scene
mtime() { stat -c %.9Y "$1"; }
times() { stat -c '%.9Y %.9Z' "$1"; }
newer() { [ "$(mtime "$1")" != "$2" ] && find "$1" -maxdepth 0 -newer marker | grep -q .; }
# changed FILE OLD-TIME: both times are others, and those of now
changed() {
    wait_for 10 "another time of $1" newer "$1" "$2"
    eq "ctime of $1" "$(stat -c %.9Y "$1")" "$(stat -c %.9Z "$1")"
}
# still FILE TIMES: reading it changes none, though each open has it made anew
still() {
    eq "times of $1 before it is read" "$2" "$(times "$1")"
    for _ in 1 2 3; do cat "$1" >/dev/null || fail "cat $1"; done
    eq "times of $1 after it was read" "$2" "$(times "$1")"
}
touch marker
status 0 klog group reset g -t t1:0 --to-offset 0 --execute
for f in .config .status .groups/g/p0 .groups/g/.status; do
    t=$(times "$M/t1/$f")
    eq "ctime of $f" "${t% *}" "${t#* }"
    still "$M/t1/$f" "$t"
done
still "$M/.status" "$(times "$M/.status")"

# ---- texts that change elsewhere ----
config=$(mtime $M/t1/.config) table=$(mtime $M/t1/.status) position=$(mtime $M/t1/.groups/g/p0) lag=$(mtime $M/t1/.groups/g/.status)
touch marker
status 0 klog config set topic t1 retention.ms=12345
changed $M/t1/.config "$config"
seq 3 | grow
changed $M/t1/.status "$table"
changed $M/t1/.groups/g/.status "$lag"
config=$(times $M/t1/.config)
status 0 klog group reset g -t t1:0 --to-offset 2 --execute
changed $M/t1/.groups/g/p0 "$position"
still $M/t1/.config "$config"
config=$(mtime $M/t1/.config)
touch marker
echo retention.ms=54321 >>$M/t1/.config || fail "a setting"
changed $M/t1/.config "$config"

# ---- names that come and go ----
root=$(mtime $M) topic=$(mtime $M/t1) view=$(mtime $M/t1/follow)
touch marker
topic t2
changed $M "$root"
eq "time of a directory in which nothing changed" "$topic" "$(mtime $M/t1)"
root=$(mtime $M)
touch marker
status 0 klog topic alter t1 --partitions 2
changed $M/t1 "$topic"
changed $M/t1/follow "$view"
eq "time of the root, in which nothing changed" "$root" "$(mtime $M)"
topic=$(mtime $M/t1)
touch marker
touch $M/t1/p2 || fail "touch p2"
changed $M/t1 "$topic"
touch marker
status 0 klog topic delete t2
changed $M "$root"
root=$(mtime $M)
topic t2
wait_for 10 "t2 is there again" test -d $M/t2
root=$(mtime $M)
touch marker
"$PY" - <<'X' || fail "delete and create"
from kwire import Conn
c = Conn()
assert c.delete_topic("t2") == 0
assert c.create_topic("t2", 1)[0] == 0
X
changed $M "$root"

# ---- groups ----
group=$(mtime $M/t1/.groups/g)
touch marker
ls $M/t1/.groups >/dev/null # what is known is fresh, so the time has to follow what is done here
groups=$(mtime $M/t1/.groups)
mkdir $M/t1/.groups/h || fail "mkdir"
[ "$(mtime $M/t1/.groups)" != "$groups" ] || fail "the time of .groups is the same right after mkdir"
changed $M/t1/.groups "$groups"
groups=$(mtime $M/t1/.groups)
touch marker
status 0 klog group reset i -t t1:0 --to-offset 1 --execute
changed $M/t1/.groups "$groups"
groups=$(mtime $M/t1/.groups)
has "groups" "^i$" "$(ls $M/t1/.groups)"
eq "time of a group in which nothing changed" "$group" "$(mtime $M/t1/.groups/g)"
touch marker
status 0 klog group reset g -t t1:1 --to-offset 0 --execute
changed $M/t1/.groups/g "$group"
group=$(mtime $M/t1/.groups/g)
touch marker
rm $M/t1/.groups/g/p1 || fail "rm"
changed $M/t1/.groups/g "$group"
ls $M/t1/.groups >/dev/null
eq "time of .groups, in which nothing changed" "$groups" "$(mtime $M/t1/.groups)"
touch marker
rmdir $M/t1/.groups/h || fail "rmdir"
changed $M/t1/.groups "$groups"
