# SPDX-License-Identifier: Apache-2.0
# One wrong bit in __consumer_offsets: it costs what stood in that batch, if that, and is told; what was committed before and after stays, also over later starts.
C=(--override offsets.topic.num.partitions=1)
klogd_start "${C[@]}"
topic a 1
"$PY" - <<'X' || fail "committing"
from kgroup import *
g = GroupConn()
while g.coordinator("g") != 0: pass
assert g.commit("other", {"a": [(0, 7)]})[("a", 0)] == 0
for i in range(1, 101): assert g.commit("g", {"a": [(0, i)]})[("a", 0)] == 0
X
klogd_stop
rm -rf good && cp -a "$D" good
flip() { # BATCH BYTE BIT
    "$PY" - "$D/__consumer_offsets-0/00000000000000000000.log" "$@" <<'X'
import sys
f, n, byte, bit = sys.argv[1], *map(int, sys.argv[2:])
b, at, starts = bytearray(open(f, "rb").read()), 0, []
while at + 61 <= len(b) and b[at + 16] == 2:
    starts.append(at)
    at += 12 + int.from_bytes(b[at + 8:at + 12], "big")
b[starts[n] + byte] ^= 1 << bit
open(f, "wb").write(b)
X
}
positions() { "$PY" - <<'X'
from kgroup import *
g = GroupConn()
while g.coordinator("g") != 0: pass
while True:
    code, p = g.positions("g")
    if code != 14: break
q = g.positions("other")[1]
print("%s/%s" % (p[("a", 0)][0], q[("a", 0)][0] if q else "none"))
X
}
commit() { "$PY" -c "
from kgroup import *
g = GroupConn()
assert g.commit('g', {'a': [(0, $1)]}) == {('a', 0): 0}"; }
# batch, byte, bit, what is committed after the start, lines that tell of a loss
while read -r batch byte bit want lines; do
    rm -rf "$D" && cp -a good "$D" && : >"$KLOGD_LOG"
    flip "$batch" "$byte" "$bit"
    klogd_start "${C[@]}"
    eq "batch $batch, byte $byte" "$want" "$(positions)"
    eq "batch $batch, byte $byte: lines" "$lines" "$(grep -c 'bytes are damaged; what groups committed there' "$KLOGD_LOG")"
    commit 450
    klogd_kill
    klogd_start "${C[@]}"
    eq "batch $batch, byte $byte: committed later" "450/${want#*/}" "$(positions)"
    klogd_stop
done <<'E'
0 80 0 100/none 1
10 80 0 100/7 1
10 60 3 100/7 1
10 20 0 100/7 1
10 16 0 100/7 1
10 3 0 100/7 0
10 0 6 100/7 0
10 7 4 100/7 0
10 12 3 100/7 0
10 11 1 100/7 1
10 8 5 100/7 1
-1 80 0 99/7 1
E
