# SPDX-License-Identifier: Apache-2.0
# as/G together with a RANGE, in either order: only the range's records are handed out, from the committed position on; what is
# acknowledged ends with the last of them, and a range that ends at an offset ends a follower's file.
requires jq
klogd_start
topic t1
topic late
topic three 3
mount_start
V=$M/t1
at() { cat "$M/${2:-t1}/.groups/$1/p0" 2>/dev/null || echo none; }
seq 0 99 >>"$V/p0"
# numbers: what is before the range is acknowledged with its first record, what is behind it is not
eq "100:200 of 100" "" "$(cat "$V/as/a/100:200/p0")"
eq "nothing is said by that" none "$(at a)"
eq "10:20" "$(seq 10 19)" "$(cat "$V/as/a/10:20/p0")"
eq "its end" 20 "$(at a)"
eq "from there" "20 21 22 23 24" "$(cat "$V/:25/as/a/p0" | xargs)"
eq "and" 25 "$(at a)"
eq "what was read is not in a range any more" "" "$(cat "$V/as/a/5:25/p0")"
eq "still" 25 "$(at a)"
eq "in json, the last five" "95 96 97 98 99" "$(jq -r .value "$V/as/a/json/-5/p0" | xargs)"
eq "and" 100 "$(at a)"
# a killed reader gets its last line again
exec 5<"$V/as/b/50:60/p0"
read -r x <&5
read -r y <&5
exec 5<&-
eq "two lines" "50 51" "$x $y"
eq "the first was acknowledged" 51 "$(at b)"
eq "the rest" "$(seq 51 59)" "$(cat "$V/50:60/as/b/p0")"
# follow/: the file ends with the range, when its records have come
cat "$V/as/c/follow/98:103/p0" >followed & F=$!
wait_lines followed 2
seq 100 110 >>"$V/p0"
wait $F || fail "a range that ends"
eq "followed" "98 99 100 101 102" "$(xargs <followed)"
eq "and its end" 103 "$(at c)"
cat "$V/as/c/follow/200/p0" >ahead & F=$!
seq 111 202 >>"$V/p0"
wait_lines ahead 3
kill $F
wait $F
eq "from 200 on" "200 201 202" "$(xargs <ahead)"
# times, out of order: exactly the records in there; those behind the last of them are not acknowledged
"$PY" - <<'X' || fail "produce"
from kwire import Conn, batch
c = Conn()
for t in 1000, 3000, 2000, 5000, 2500, 9000, 9500:
    assert c.produce("late", 0, batch([b"%d" % t], ts=1700000000000 + t))[0] == 0
X
eq "by time" "3000 2000 2500" "$(cat "$M/late/as/g/@1700000002000:1700000005000/p0" | xargs)"
eq "up to its last record" 5 "$(at g late)"
eq "then the rest" "9000 9500" "$(cat "$M/late/as/g/@1700000002000/p0" | xargs)"
# all
for p in 0 1 2; do seq 0 9 | sed "s/^/$p-/" >>"$M/three/p$p"; done
eq "all of three" "0-3 0-4 1-3 1-4 2-3 2-4" "$(cat "$M/three/as/g/3:5/all" | sort | xargs)"
for p in 0 1 2; do eq "p$p" 5 "$(cat "$M/three/.groups/g/p$p")"; done
