# SPDX-License-Identifier: Apache-2.0
# timeout: 90
# klog verify tells, before a start, what klogd would refuse or has lost: registers, directories that they know and that are not
# there, and the reverse, identities, start markers, the cleaner's marks, leftovers.
requires kcat
says() { # WHAT STATUS PATTERN
    OUT=$(klog verify --no-progress "$D" 2>&1)
    eq "$1: status" "$2" $?
    has "$1" "$3" "$OUT"
}
back() { rm -rf "$D" && cp -a good "$D"; }
klogd_start
topic aa 2
topic bb
seq 100 | grow aa
seq 5 | grow bb
klogd_stop
cp -a "$D" good
says "a sound one" 0 ' 0 errors, 0 warnings'

rm "$D/registers.journal"
says "no registers" 1 'registers.journal: it is missing: klogd does not start'
back
"$PY" -c "
f = open('$D/registers.journal', 'r+b'); b = f.read(); f.seek(b.rfind(b'KRGF')); f.write(bytes(len(b) - b.rfind(b'KRGF')))"
says "zeros at the end" 1 'registers.journal is damaged at byte [0-9]+: it was closed in a clean stop'
back
truncate -s "$("$PY" -c "print(open('$D/registers.journal', 'rb').read().rfind(b'KRGF'))")" "$D/registers.journal"
says "a change cut off" 1 'ends at change [0-9]+, but the last clean stop was at change'
back
"$PY" -c "
f = open('$D/registers.journal', 'r+b'); f.seek(100); b = f.read(1); f.seek(100); f.write(bytes([b[0] ^ 1]))"
says "a changed bit" 1 'registers.journal is damaged at byte'
back
rm -r "$D/aa-1"
says "no directory" 1 'aa-1 is registered, but its directory is not here'
back
cp -a "$D/bb-0" "$D/bb-7"
says "no register" 1 'bb-7: the registers do not know it'
back
cp "$D/bb-0/partition.metadata" "$D/aa-1/"
says "another topic's" 1 'aa-1: it belongs to another topic than the one registered'
back
id=$(sed -n 's/^topic_id: //p' "$D/aa-0/partition.metadata") at=1
while [ "${id:at:1}" = "${id:at+1:1}" ]; do at=$((at + 1)); done # two characters that differ change places
sed -i "s/^topic_id: .*/topic_id: ${id:0:at}${id:at+1:1}${id:at:1}${id:at+2}/" "$D/aa-0/partition.metadata"
says "a changed topic id" 1 'aa-0/partition.metadata: it holds no topic id, or its checksum is wrong'
back
truncate -s 70000 "$D/aa-0/partition.metadata"
says "zeros behind a topic id" 1 'aa-0/partition.metadata: it has 70000 bytes: klogd takes it for damaged'
back
: >"$D/aa-0/00000000000000000200.start"
says "a start beyond the end" 1 '200.start: the log ends before it, at 100'
back
"$PY" -c "
from kwire import crc32c, i32, i64
b = i64(50) + i32(4711) + i32(0)
open('$D/aa-0/00000000000000000050.start', 'wb').write(b'klogstrt' + i32(1) + crc32c(b).to_bytes(4, 'big') + b)"
says "another partition's start" 1 "050.start: it is another partition's"
klogd_start
has "what the log says of it" "050.start is another partition's and counts for nothing" "$(cat "$KLOGD_LOG")"
[ ! -e "$D/aa-0/00000000000000000050.start" ] || fail "it is told at the next start, too"
consume aa | cmp - <(seq 100) || fail "records beside another partition's start"
klogd_stop
back
sed -i /directory.id/d "$D/meta.properties"
says "half an identity" 1 'meta.properties: it is incomplete'
back
sed -i 's/cluster.id=.*/cluster.id=another/' "$D/meta.properties"
says "another cluster" 1 'the registers belong to cluster .*, meta.properties says another'
back
sed -i 's/broker.id=1/broker.id=2/' "$D/meta.properties"
says "another broker" 1 'the registers do not know broker 2'
back
cp good/clean-shutdown "$D/" && "$PY" -c "
f = open('$D/clean-shutdown', 'r+b'); f.seek(20); f.write(b'x')"
says "another directory's marker" 0 "clean-shutdown: it is not this directory's"
back
printf '0\n1\naa 0 1000\n' >"$D/cleaner-offset-checkpoint"
says "a mark beyond the end" 0 'cleaner-offset-checkpoint: aa-0 is said to be clean up to 1000, but ends at 100'
back
: >"$D/aa-0/00000000000000000050.index"
mkdir "$D/cc-0.0123456789abcdef-delete" "$D/cc-0.x-stray"
says "leftovers" 0 ' 0 errors, 3 warnings'
has "an index" '050.index: it belongs to no segment' "$OUT"
touch "$D/aa-0/00000000000000000050.log.deleted" "$D/aa-0/00000000000000000050.text"
klogd_start
consume aa | cmp - <(seq 100) || fail "records beside leftovers"
klogd_stop
eq "what is left of them" "" "$(find "$D" -name '*50.*' -o -name 'cc-0*-delete')"
back
klogd_start
klogd_kill
printf xyz >>"$D/registers.journal"
says "a torn change" 0 'registers.journal at [0-9]+: 3 bytes are no whole change'
klogd_start
