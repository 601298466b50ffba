# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Shells on two mounts, a kcat and a python3-kafka share one group while records come: each gets some, each record is processed, and
# no generation gives a partition to two. A shell is killed, then a whole mount, which is missed after its session; the rest go on.
requires kcat
requires_python kafka
klogd_start --override group.initial.rebalance.delay.ms=0
topic t1 6
mount_start -o session=6
M2=$T/mnt2
mkdir "$M2"
klogfs -f $B "$M2" -o session=6 >>"$T/klogfs2.log" 2>&1 19>&- &
SECOND=$!
cleanup_fn 'kill -9 $SECOND 2>/dev/null; umount -l "$M2" 2>/dev/null'
wait_for 10 "the second mount" grep -q " $M2 " /proc/self/mounts

# Records "P SEQUENCE" at about 300 a second, until the file `enough` is there; then how many went into each partition.
"$PY" - >produced <<'X' &
import os, time
from kwire import Conn, batch
c, n = Conn(), [0] * 6
while not os.path.exists("enough"):
    for p in range(6):
        code, base = c.produce("t1", p, batch([b"%d %d" % (p, n[p] + i) for i in range(5)]))
        assert (code, base) == (0, n[p]), (code, base)
        n[p] += 5
    time.sleep(0.1)
print(*n)
X
PRODUCER=$!
loop='while read -r l; do echo "$l"; done <"$1"'
for i in 1 2 3 4; do
    at=$M
    [ $((i % 2)) = 0 ] || at=$M2
    bash -c "$loop" _ "$at/t1/as/g/follow/all" >shell$i 2>shell$i.err &
    eval "SHELL$i=$!"
done
kcat -b $B -q -u -G g -X session.timeout.ms=6000 -X heartbeat.interval.ms=1000 -X auto.offset.reset=earliest \
    -X partition.assignment.strategy=range -X auto.commit.interval.ms=200 t1 >kcat 2>kcat.err &
KCAT=$!
"$PY" "$TESTLIB/group_member.py" kafka g t1 >python.all 2>python.err &
PYTHON=$!
group() { "$PY" "$TESTLIB/group.py" "$@"; }
# shared N: stable, each of six partitions owned, by N members in all
shared() {
    local owners
    [ "$(group state g)" = Stable ] || return 1
    owners=$(group owners g)
    [ "$(cut -d' ' -f2 <<<"$owners" | sort | tr -d '\n')" = 012345 ] && [ "$(cut -d' ' -f3 <<<"$owners" | sort -u | wc -l)" = "$1" ]
}
wait_for 30 "six members have a partition each" shared 6
all=(shell1 shell2 shell3 shell4 kcat python.all)
marks=()
for f in "${all[@]}"; do marks+=("$(wc -l <"$f")"); done
for i in "${!all[@]}"; do wait_lines "${all[i]}" $((marks[i] + 10)); done
kill -9 $SHELL1
wait $SHELL1 2>/dev/null
wait_for 10 "five members, as close leaves" shared 5
kill -9 $SECOND # with shell 3
wait $SECOND 2>/dev/null
wait_for 30 "four members" shared 4
wait $SHELL3
has "what shell 3 was told" 'not connected|onnection abort|Software caused' "$(cat shell3.err)"
umount -l "$M2"
kill -9 $KCAT # at a TERM it would commit what it does not print any more
wait $KCAT 2>/dev/null
kill -TERM $PYTHON
wait $PYTHON
wait_for 30 "two members" shared 2
touch enough
wait $PRODUCER
eq "the producer" 0 $?
positions() { echo $(cat "$M"/t1/.groups/g/p?); }
committed() { [ "$(positions)" = "$(cat produced)" ]; }
wait_for 20 "all is committed" committed
kill -9 $SHELL2 $SHELL4
wait $SHELL2 $SHELL4 2>/dev/null
cut -d' ' -f3- python.all >python
for p in 0 1 2 3 4 5; do seq -f "$p %g" 0 $(($(cut -d' ' -f$((p + 1)) produced) - 1)); done | sort >whole
cat shell? kcat python | sort -u | comm -13 - whole >missing
eq "records that nobody processed" "" "$(head -n 5 missing)"
echo "$(wc -l <whole) records, processed $(cat shell? kcat python | wc -l) times"
group history g >history
awk '$1 == "position" { if ($4 < at[$3]) { print "went back:", $0; bad = 1 } at[$3] = $4 }
    $1 == "group" { for (i = 5; i < NF; i += 3) {
        if (owner[$2, $i] && owner[$2, $i] != $(i + 1)) { print "owned twice:", $0; bad = 1 }
        owner[$2, $i] = $(i + 1) } }
    END { exit bad }' history || fail "see above"
