# SPDX-License-Identifier: Apache-2.0
# as/G/pN and members exclude each other before a line is handed out twice: with members it cannot be opened, and one that is open
# when they come is over for good, so that it never moves their position back. as/G/all says so when the group shares by rules of its own.
requires kcat
requires_python kafka
scene --override group.initial.rebalance.delay.ms=0
A=$M/t1/as/g
G=$M/t1/.groups/g
BUSY='Device or resource busy'
seq 1 5 >>"$P"
state() { "$PY" "$TESTLIB/group.py" state g; }
is() { [ "$(state)" = "$1" ]; }
member() { # member KIND: joins g and prints "PARTITION OFFSET VALUE"
    case $1 in
    kcat) kcat -b $B -q -u -G g -X auto.offset.reset=earliest -X auto.commit.interval.ms=100 -f '%p %o %s\n' t1 >"$1" 2>"$1.err" & ;;
    kafka) "$PY" "$TESTLIB/group_member.py" kafka g t1 >"$1" 2>"$1.err" & ;;
    all) (while read -r l; do echo "0 0 $l"; done <"$A/follow/all") >"$1" & ;;
    esac
    MEMBER=$!
    cleanup_fn "kill -9 $MEMBER 2>/dev/null"
    wait_for 20 "$1 is a member" is Stable
}
# What an open file knows of the members may be so old.
two_seconds() {
    local t0
    t0=$(now_ms)
    passed() { [ $(($(now_ms) - t0)) -gt 2000 ]; }
    wait_for 5 "two seconds" passed
}
n=5
for kind in kcat kafka all; do
    eq "what is left before" "" "$(cat "$A/p0" | tail -n +$((n + 1)))"
    eq "position" $n "$(cat "$G/p0")"
    # a member is there: the file cannot be opened
    member $kind
    fails "$BUSY" cat "$A/p0"
    fails "$BUSY" cat "$A/follow/p0"
    echo "to $kind" >>"$P"
    n=$((n + 1))
    wait_lines $kind 1
    kill -TERM $MEMBER
    wait $MEMBER 2>/dev/null
    wait_for 10 "$kind has left" is Empty
    eq "the position that $kind left" $n "$(cat "$G/p0")"

    # the file is open and waits, with a line in hand; the member comes, and goes
    echo "in hand" >>"$P"
    n=$((n + 1))
    exec 5<"$A/follow/p0"
    read -r l <&5
    eq "the line" "in hand" "$l"
    member $kind
    wait_lines $kind 1
    two_seconds
    echo "for the member" >>"$P"
    n=$((n + 1))
    wait_lines $kind 2
    fails "Device or resource busy" head -n 1 <&5
    echo "and again" >>"$P"
    n=$((n + 1))
    wait_lines $kind 3
    kill -TERM $MEMBER
    wait $MEMBER 2>/dev/null
    wait_for 10 "$kind has left again" is Empty
    fails "$BUSY" head -n 1 <&5
    exec 5<&-
    eq "nothing moved the position of $kind" $n "$(cat "$G/p0")"
done

# it waits, and everything was acknowledged: the record that comes is the member's alone
timeout 30 cat "$A/follow/p0" >waiting 2>waiting.err &
WAITING=$!
waits() { grep -q request_wait_answer /proc/$WAITING/wchan || [ "$(cat "/proc/$(pgrep -P $WAITING)/wchan")" = request_wait_answer ]; }
wait_for 10 "it waits" waits
member kcat
two_seconds
echo "only one" >>"$P"
wait_lines kcat 1
wait $WAITING
eq "exit status of the one that waited" 1 $?
has "its error" "$BUSY" "$(cat waiting.err)"
eq "what it was given" "" "$(cat waiting)"
kill -TERM $MEMBER
wait $MEMBER
wait_for 10 "all have left" is Empty

# members that share by a rule of their own
"$PY" - <<'X' &
import signal
from kgroup import GroupConn
c = GroupConn()
j = c.join("own", version=3, protocols=(("mine", b"m"),), session_ms=30000)
assert j.code == 0
assert c.sync("own", j.generation, j.member_id, [(j.member_id, b"a")])[0] == 0
signal.pause()
X
OWN=$!
cleanup_fn "kill -9 $OWN 2>/dev/null"
own() { [ "$("$PY" "$TESTLIB/group.py" state own)" = Stable ]; }
wait_for 10 "a member with rules of its own" own
fails "$BUSY" cat "$M/t1/as/own/all"
fails "$BUSY" cat "$M/t1/as/own/p0"
fails "$BUSY" mkdir "$M/t1/.groups/own"
kill $OWN
wait $OWN 2>/dev/null
eq "exit status of the member" 143 $?
