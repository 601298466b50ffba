# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A shell loop over as/G/p0, killed with -9 at 50 random moments and started again: every line is processed, at most one again a kill.
scene
seq 1 1000 >>"$P"
cat >loop <<'END'
while read -r l; do env true; echo "$l" >>done; env true; done <"$1"
END
: >done
A=$M/t1/as/g/p0
RANDOM=7
# What a killed shell had started may live a moment longer, with the file still open.
free() { (exec <"$A"); }
kills=0
until [ $kills -eq 50 ]; do
    want=$(($(wc -l <done) + 1 + RANDOM % 12))
    wait_for 10 "nobody has it open" free
    bash ./loop "$A" &
    pid=$!
    until [ "$(wc -l <done)" -ge $want ] || gone $pid; do :; done
    kill -9 $pid 2>/dev/null && kills=$((kills + 1))
    wait $pid 2>/dev/null
    [ "$(sort -nu done | wc -l)" -lt 1000 ] || break
done
wait_for 10 "nobody has it open" free
bash ./loop "$A" || fail "the last reader"
eq "every line" "$(seq 1 1000 | md5sum)" "$(sort -nu done | md5sum)"
again=$(($(wc -l <done) - 1000))
between "lines processed again in $kills kills" 0 $kills $again
between "kills" 20 50 $kills
eq "the position" 1000 "$(cat "$M/t1/.groups/g/p0")"
