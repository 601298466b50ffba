# SPDX-License-Identifier: Apache-2.0
# klog run: exit status 0 is the acknowledgement. What COMMAND is given, what is committed, retries, dead letters, signals, exit
# statuses.
# timeout: 120
requires jq kcat
klogd_start --override group.initial.rebalance.delay.ms=0
topic t1 2
topic dead
seq 0 9 | produce -t t1 -p 0
seq 0 4 | produce -t t1 -p 1
offsets() { klog group describe "$1" --json 2>/dev/null | jq -r '"\(.topic)/\(.partition)=\(.current_offset)"' | paste -sd' '; }
run() { timeout 30 klog run "$@"; }

# lines, of one partition at a time, in order; then the end
run -g g1 t1 -- sh -c 'cat >>"$KLOG_PARTITION.$KLOG_OFFSET"' || fail "exit status $?"
same "partition 0" 0.0 <(seq 0 9)
same "partition 1" 1.0 <(seq 0 4)
eq "committed" 't1/0=10 t1/1=5' "$(offsets g1)"
eq "nothing is left" "" "$(run -g g1 t1 -- cat)"
eq "batches" '0/0 4
0/4 4
0/8 2
1/0 4
1/4 1' "$(run -g g2 -n 4 -P 2 t1 -- sh -c 'echo "$KLOG_PARTITION/$KLOG_OFFSET $(wc -l)"' | sort)"
eq "the summary" 'g3 15 0 0' "$(run -g g3 --json t1 -- cat | tail -n1 | jq -r '"\(.group) \(.records) \(.dead_letters) \(.failures)"')"

# odd values: null, empty, no newline of its own, NUL; keys
topic odd
"$PY" - <<'E' || fail "odd records"
from kwire import Conn, batch
c = Conn()
assert c.produce('odd', 0, batch([(b'k\xc3\xbc', b''), (None, b'a\0b'), (b'nul\0key', b'x'), (b'', None)], ts=1700000000000)) == (0, 0)
E
eq "each record" '0|kü|1700000000000|0a
1|none|1700000000000|6100620a
2|none|1700000000000|780a
3||1700000000000|0a' "$(run -g g1 --each odd -- sh -c 'echo "$KLOG_OFFSET|${KLOG_KEY-none}|$KLOG_TIMESTAMP|$(xxd -p)"')"
eq "environment" 'g1b odd 0 0' "$(run -g g1b odd -- sh -c 'echo $KLOG_GROUP $KLOG_TOPIC $KLOG_PARTITION $KLOG_OFFSET')"

# COMMAND's standard input is its own: whole, and at its beginning
eq "two readers of one input" '0 1 9' "$(run -g g4 t1 -- sh -c '[ $KLOG_PARTITION = 0 ] || exit 0; read -r a; read -r b; echo $a $b $(tail -n1)')"
run -g g5 t1 -- true || fail "a COMMAND that reads nothing may acknowledge all the same: $?"
eq "committed unread" 't1/0=10 t1/1=5' "$(offsets g5)"

# a failure is not committed, and ends it; what was dealt with before is
status 3 run -g g6 -n 3 t1 -- sh -c '! grep -qx 7'
has "what failed" '^klog run: t1 partition 0: sh: exit status 1 at offsets 6 to 8 \(attempt 1 of 1\)$' "$OUT"
has "the position" 't1/0=6' "$(offsets g6)"
status 3 run -g g6 -n 3 t1 -- sh -c 'kill -9 $$'
has "a signal" 'killed by signal 9 at offsets 6 to 8' "$OUT"
has "the same position" 't1/0=6' "$(offsets g6)"
run -g g6 t1 -- sh -c 'cat >>rest.$KLOG_PARTITION' || fail "exit status $?"
same "the rest" rest.0 <(seq 6 9)

# retries: the same batch again, until it works
status 0 run -g g7 -n 5 --retry 5 --backoff 10ms t1 -- sh -c 'n=$(wc -l); echo "$KLOG_PARTITION.$KLOG_OFFSET $n" >>tries; [ $KLOG_PARTITION.$KLOG_OFFSET != 0.5 ] || [ $(grep -c "^0.5" tries) -ge 3 ]'
eq "tries" '0.0 5
0.5 5
0.5 5
0.5 5
1.0 5' "$(sort tries)"
has "attempts" 'attempt 2 of 6' "$OUT"
eq "committed" 't1/0=10 t1/1=5' "$(offsets g7)"

# dead letters: with where they come from, and on it goes
status 0 run -g g8 -n 1 --retry 1 --backoff 10ms --dead-letter dead t1 -- sh -c '! grep -qx 3'
eq "dead letters" '3|klog.topic=t1,klog.partition=0,klog.offset=3
3|klog.topic=t1,klog.partition=1,klog.offset=3' "$(consume dead -f '%s|%h\n' | sed 's/,klog.timestamp.*//' | sort)"
has "their headers" ',klog.timestamp=[0-9]{13},klog.group=g8,klog.failure=exit status 1,klog.attempts=2$' "$(consume dead -f '%h\n' | head -n1)"
eq "committed" 't1/0=10 t1/1=5' "$(offsets g8)"
status 1 run -g g9 --dead-letter nosuch t1 -- false
has "no topic for them" 'nosuch: there is no such topic' "$OUT"

# what never ran
status 127 run -g g10 t1 -- nosuchcommand
status 126 run -g g10 t1 -- /etc/passwd
status 1 run -g g10 nosuch -- cat
status 2 run -g g10 t1
status 2 run t1 -- cat
has_not "nothing is committed" '=[1-9]' "$(offsets g10)"

# where a new group begins
eq "from the end" "" "$(run -g g11 --from end t1 -- cat)"
eq "committed" 't1/0=10 t1/1=5' "$(offsets g11)"
eq "from a time" "" "$(run -g g12 --from 2099-01-01 t1 -- cat)"

# a position that is not in the log (any more): nothing that is there is skipped, and it is said
topic short
seq 0 9 | produce -t short -p 0
commit_raw() {
    "$PY" -c "
from kwire import *
r = Conn().ask(8, 2, string('$1') + i32(-1) + string('') + i64(-1) + array([string('short') + array([i32(0) + i64($2) + string('')])]))
r.i32(), r.string(), r.i32(), r.i32()
assert r.i16() == 0"
}
commit_raw g13 50 || fail "no commit"
eq "beyond the end, of no known epoch" '' "$(run -g g13 short -- cat 2>said | paste -sd' ')"
eq "what was said" 'klog run: short partition 0: the log lost its end: offsets 10 to 49 are gone; going on at 10' "$(cat said)"
commit_raw g13 2 || fail "no commit"
"$PY" -c "
from kwire import *
r = Conn().ask(21, 0, array([string('short') + array([i32(0) + i64(6)])]) + i32(5000))" || fail "no DeleteRecords"
eq "before the start" '6 7 8 9' "$(run -g g13 short -- cat 2>said | paste -sd' ')"
has "what was said" 'short partition 0: offsets 2 to 5 are gone from the log; going on after them' "$(cat said)"

# following, and signals: what runs ends in peace and is committed
mkfifo go
klog run -g g14 -f -n 4 t1 -- sh -c 'cat >>follow.$KLOG_PARTITION; [ $KLOG_PARTITION.$KLOG_OFFSET != 0.4 ] || { touch begun; read -r x <go; }' >said 2>&1 19>&- &
follower=$!
wait_for 20 "the second batch" test -e begun
kill -TERM $follower
wait_for 10 "it is committed so far" grep -q 't1/0=4' <(offsets g14)
gone $follower && fail "it did not wait for COMMAND: $(cat said)"
echo >go
wait $follower
eq "exit status after TERM" 0 $?
same "no more than was begun" follow.0 <(seq 0 7)
has "the position" 't1/0=8' "$(offsets g14)"
eq "it has left" 0 "$(klog group describe g14 --state --json 2>/dev/null | jq .members)"

klog run -g g14 -f t1 -- sh -c 'cat >>follow.$KLOG_PARTITION' 2>said 19>&- &
follower=$!
wait_lines follow.0 10
echo ten | grow t1
wait_lines follow.0 11
eq "what came later" ten "$(tail -n1 follow.0)"
kill -INT $follower
wait $follower
eq "exit status after INT" 0 $?
has "the position" 't1/0=11' "$(offsets g14)"

# a topic that is deleted under a running COMMAND
rm -f begun
topic short2
seq 0 9 | produce -t short2
klog run -g g16 -f -n 2 short2 -- sh -c 'touch begun; read -r x <go' 2>said 19>&- &
follower=$!
wait_for 20 "COMMAND runs" test -e begun
klog topic delete short2 >/dev/null
echo >go
wait_for 20 "it misses the topic" grep -q 'short2 partition 0: the topic is gone; waiting for it' said
kill -TERM $follower
wait $follower
eq "exit status after the topic went" 0 $?

# two members and one partition: one has nothing to do, and takes over
klog run -g g17 -f dead -- sh -c 'cat >>taken' 2>said 19>&- &
first=$!
wait_lines taken 2
klog run -g g17 -f dead -- sh -c 'cat >>taken' 2>said 19>&- &
second=$!
two_members() { [ "$(klog group describe g17 --state --json | jq -r '"\(.state) \(.members)"')" = "Stable 2" ]; }
wait_for 20 "two members" two_members
eq "one of them has nothing" '0
1' "$(klog group describe g17 --members --json | jq .partitions | sort)"
kill -TERM $first
wait $first
eq "exit status" 0 $?
grow dead <<<more
wait_lines taken 3
kill -TERM $second
wait $second
eq "exit status" 0 $?

# the second signal reaches COMMAND, which is not acknowledged then
rm -f begun
klog run -g g15 -f t1 -- sh -c 'touch begun; sleep 60' 2>said 19>&- &
follower=$!
wait_for 20 "COMMAND runs" test -e begun
kill -TERM $follower
kill -INT $follower # another, as two of the same may become one
wait $follower
eq "exit status" 3 $?
has "why" 'killed by signal 15' "$(cat said)"
has_not "nothing is committed" '=[1-9]' "$(offsets g15)"
