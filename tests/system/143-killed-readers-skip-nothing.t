# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A shell loop over 1,000 lines of as/G/p0, killed with -9 at 50 random moments and started again at once: every line is processed, in
# order, and a kill repeats no more than the line that was in hand. SEED=N repeats.
scene
seq 1 1000 >>"$P"
RANDOM=${SEED:-$$$(date +%N | sed 's/^0*//')}
echo "seed ${SEED:=$RANDOM}"
RANDOM=$SEED
cat >loop <<'END'
echo start >>done
while read -r l; do env true; echo "$l" >>done; env true; done <"$1"
END
: >done
A=$M/t1/as/g/p0
reached() { mapfile -t seen <done; [ ${#seen[@]} -ge "$1" ]; }
for ((kills = 0; kills < 50; kills++)); do
    left=$((1000 - $(grep -v start done | sort -nu | wc -l)))
    want=$(($(wc -l <done) + RANDOM % (left / (50 - kills)) + 2)) # with "start"
    bash ./loop "$A" &
    pid=$!
    until reached $want; do ! gone $pid || fail "the reader ended by itself: kill $kills, seed $SEED"; done
    sleep 0.00$((RANDOM % 6)) # into the next line, or the one after it
    kill -9 $pid || fail "the reader ended by itself: kill $kills, seed $SEED"
    wait $pid 2>/dev/null
done
bash ./loop "$A" || fail "the last reader"
eq "every line" "$(seq 1 1000 | md5sum)" "$(sort -nu <(grep -v start done) | md5sum)"
# In each run the first line is the one after the last before it, or that line again; then they follow each other.
awk '/start/ { first = 1; next }
    $1 != last + 1 && !(first && $1 == last) { print "line", $1, "came after line", last; bad = 1 }
    { first = 0; last = $1 }
    END { exit bad }' done || fail "out of order, seed $SEED"
eq "runs" 51 "$(grep -c start done)"
eq "the position" 1000 "$(cat "$M/t1/.groups/g/p0")"
