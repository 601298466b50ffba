# SPDX-License-Identifier: Apache-2.0
# klog run goes on in a topic that was deleted and made anew: at its start, whatever it had read of the old one; a commit that comes
# too late is not stored in the new one. Without -f a topic that is gone ends it.
requires jq
klogd_start --override group.initial.rebalance.delay.ms=0
position() { klog group describe g --json 2>/dev/null | jq -r "select(.topic == \"$1\") | .current_offset"; }
anew() { "$PY" "$TESTLIB/topic.py" delete "$1" && topic "$1"; }
topic t1
topic busy
seq 100 | sed 's/^/old/' | grow
seq 100 | sed 's/^/old/' | grow busy
timeout 110 klog run -g g -f t1 -- cat >got 2>err 19>&- &
run=$!
wait_lines got 100
anew t1 || fail "not made anew"
seq 150 | sed 's/^/NEW/' | grow
wait_lines got 250 30
eq "all of both" "$(seq 100 | sed 's/^/old/'; seq 150 | sed 's/^/NEW/')" "$(cat got)"
is_at() { [ "$(position "$1")" = "$2" ]; }
wait_for 10 "the new position" is_at t1 150
has "it said so" 't1 partition 0: the topic is another one now; beginning at 0' "$(cat err)"
# gone, and back later; others have read of it meanwhile
"$PY" "$TESTLIB/topic.py" delete t1 || fail "not deleted"
is_missing() { grep -q 'the topic is gone; waiting for it' err; }
wait_for 20 "it misses the topic" is_missing
topic t1
seq 5 | grow
wait_lines got 255 30
kill $run
wait_gone $run
wait $run
eq "exit status" 0 $?
eq "the third topic" "$(seq 5)" "$(tail -n5 got)"
# COMMAND works while the topic is replaced: what it did is committed nowhere
timeout 110 klog run -g g -n 50 busy -- sh -c 'cat >batch.$KLOG_OFFSET; touch began; until [ -e go ]; do sleep 0.05; done' 2>err 19>&- &
run=$!
began() { [ -e began ]; }
wait_for 20 "COMMAND works" began
anew busy || fail "not made anew"
seq 60 | sed 's/^/NEW/' | grow busy
touch go
wait_gone $run 30
wait $run
eq "exit status" 0 $?
eq "the new topic, from its start" "$(seq 60 | sed 's/^/NEW/')" "$(cat batch.0 batch.50)"
eq "its position" 60 "$(position busy)"
has "what it said" 'the topic was deleted; what was done up to offset 50 is not committed in any other' "$(cat err)"
# without -f
rm -f go began
timeout 110 klog run -g g2 -n 10 busy -- sh -c 'cat >/dev/null; touch began; until [ -e go ]; do sleep 0.05; done' 2>err 19>&- &
run=$!
wait_for 20 "COMMAND works" began
"$PY" "$TESTLIB/topic.py" delete busy || fail "not deleted"
touch go
wait_gone $run 30
wait $run
eq "exit status without the topic" 1 $?
has "what it said" 'busy partition 0: the topic is gone$' "$(cat err)"
