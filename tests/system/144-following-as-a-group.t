# SPDX-License-Identifier: Apache-2.0
# as/G/follow/pN waits for more, commits what was read on, can be killed while it waits, and is not the way for two.
scene
A=$M/t1/as/g/follow/p0
G=$M/t1/.groups/g/p0
seq 1 5 >>"$P"
: >got
bash -c 'while read -r l; do echo "$l" >>got; done <"$1"' _ "$A" &
LOOP=$!
wait_lines got 5
seq 6 8 >>"$P"
wait_lines got 8
seq 9 10 | grow
wait_lines got 10
eq "all lines once" "$(seq 1 10)" "$(cat got)"
committed() { [ "$(cat "$G")" = 10 ]; }
wait_for 5 "a waiting read says that all is done" committed
kill -9 $LOOP
wait_gone $LOOP 5
wait $LOOP 2>/dev/null
echo 11 >>"$P"
eq "the next reader goes on" 11 "$(head -n 1 "$A")"
"$PY" -c "
import os, sys
fd = os.open('$A', os.O_RDONLY | os.O_NONBLOCK)
assert os.read(fd, 100) == b'11\n'
try: os.read(fd, 100); sys.exit('no EAGAIN')
except BlockingIOError: pass
os.close(fd)" || fail "O_NONBLOCK"
got_11() { [ "$(cat "$G")" = 11 ]; }
wait_for 5 "the read that said EAGAIN acknowledged" got_11
