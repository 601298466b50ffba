# SPDX-License-Identifier: Apache-2.0
# st_size is the number of bytes that can be read, for every tool, also while the file grows.
# https://github.com/strukto-ai/mirage/pull/486 https://github.com/google/fuse-archive/pull/39
# https://github.com/lxc/lxcfs/issues/450
# timeout: 90
scene
seq 1 5000 >>"$P"
(for i in $(seq 1 40); do echo "l$i" | grow || exit 1; done) &
growing=$!
n=0
until gone $growing; do
    cat "$P" >copy
    after=$(stat -c %s "$P")
    [ "$(stat -c %s copy)" -le "$after" ] || fail "read $(stat -c %s copy) bytes of a file of $after"
    before=$(stat -c %s "$P")
    between "bytes read after a stat of $before" "$before" 1000000 "$(wc -c <"$P")"
    eq "a last line that is whole" 0 "$(tail -c1 copy | tr -d '\n' | wc -c)"
    n=$((n + 1))
done
wait $growing
eq "the growing" 0 $?
[ $n -gt 3 ] || fail "only $n looks while it grew"

eq "wc -c by seek and by reading" "$(cat "$P" | wc -c)" "$(wc -c <"$P")"
seq 1 5000 >want
for i in $(seq 1 40); do echo "l$i" >>want; done
same "cat" want "$P"
cp "$P" copy && same "cp" want copy
eq "tail -c" "$(tail -c 5 want)" "$(tail -c 5 "$P")"
eq "tac" l40 "$(tac "$P" | head -n1)"
tar cf archive -C "$M/t1" p0 2>err
eq "what tar says" "" "$(cat err)"
tar xOf archive | same "tar" want -
dd if="$P" bs=4096 iflag=direct status=none | same "dd direct" want -
dd if="$P" bs=7 status=none | same "dd of 7 bytes" want -
split -n 3 "$P" part && cat part?? | same "split" want -
eq "sort" "$(sort want | md5sum)" "$(sort "$P" | md5sum)"
eq "head -c" "$(head -c 1000 want | md5sum)" "$(head -c 1000 "$P" | md5sum)"
"$PY" - "$P" want <<'X' || fail "random positions"
import os, random, sys
want = open(sys.argv[2], 'rb').read()
f = os.open(sys.argv[1], os.O_RDONLY)
rnd = random.Random(5)
for _ in range(2000):
    at, n = rnd.randrange(len(want) + 100), rnd.randrange(1, 9000)
    assert os.pread(f, n, at) == want[at:at + n], (at, n)
X
