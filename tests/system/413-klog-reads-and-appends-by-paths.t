# SPDX-License-Identifier: Apache-2.0
# klog cat, tail, append, ls and trim take the mount's own paths, without a mount, and give the mount's bytes.
requires kcat jq
klogd_start --override log.segment.bytes=200000
topic t1
topic orders 3
topic copy
topic keyed 5
mount_start
"$PY" - <<'X' || fail "produce"
import random
from kwire import *
random.seed(3)
c = Conn()
for p in range(3):
    for i in range(40):
        rows = [(random.choice([None, b"k%d" % random.randint(0, 50), b"\xff"]), random.choice([None, b"", b"a\tb\n\xc3\xa4", random.randbytes(20), b"v" * 100]),
                 [(b"h", b"1")] if random.random() < 0.3 else []) for _ in range(random.choice([1, 20]))]
        assert c.produce("orders", p, batch(rows, ts=1700000000000 + i * 1000 + p, squeeze=random.choice([None, 6])))[0] == 0
X

# ---- cat: the same bytes ----
for p in p0 json/p1 tsv/p2 100/p0 -7/json/p1 json/@1700000010:1700000020/p2 @1700000030/p0 :5/tsv/p1 end/p0 p1; do
    klog cat "orders/$p" >got || fail "klog cat $p"
    same "$p" "$M/orders/$p" got
done
klog cat 'orders/json/p*' >got || fail "p*"
cat "$M"/orders/json/p* | cmp - got || fail "p* is each partition, one after the other"
klog cat /orders/p0 orders/p1 >got && cat "$M/orders/p0" "$M/orders/p1" | cmp - got || fail "two paths"
klog cat orders/json/all >all || fail "all"
sort all | cmp - <(cat "$M"/orders/json/p* | sort) || fail "all has every record once"
jq .timestamp <all | sort -c -n || fail "all is merged by time"
for p in 0 1 2; do
    jq -c "select(.partition == $p)" <all | jq .offset | sort -c -n -u || fail "order within p$p"
done
eq "a range of each" 6 "$(klog cat orders/json/-2/all | wc -l)"
eq "nothing" "" "$(klog cat t1/p0 t1/all)"
status 0 bash -c "klog cat orders/json/p0 | head -n1 >/dev/null"

# ---- what is no path ----
status 2 klog cat orders/nosuch/p0
status 2 klog cat orders
has "how to name what stands in it" "name what stands in it" "$OUT"
status 2 klog cat orders/as/g/p0
status 1 klog cat nosuch/p0
has "which" "nosuch" "$OUT"
status 1 klog cat orders/p3
has "how many" "there is no partition 3, orders has 3" "$OUT"
status 1 bash -c "klog cat nosuch/p0 orders/p0 | cmp - $M/orders/p0; exit \${PIPESTATUS[0]}"

# ---- ls ----
eq "topics" "copy keyed orders t1" "$(klog ls | tr '\n' ' ' | sed 's/ $//')"
eq "partitions" "p0 p1 p2" "$(klog ls orders | tr '\n' ' ' | sed 's/ $//')"
eq "a view has the same" "p0 p1 p2" "$(klog ls orders/json/@-1h | tr '\n' ' ' | sed 's/ $//')"
eq "a file" "orders/p1" "$(klog ls orders/p1)"
status 1 klog ls nosuch

# ---- append ----
echo hello | klog append t1/p0 || fail "append"
printf 'a\nb\n\nlast' | klog append t1/p0 || fail "append lines"
eq "records" "hello a b  last " "$(tr '\n' ' ' <"$P")"
klog cat orders/json/p0 | klog append copy/json/p0 || fail "a copy"
"$PY" - <<'X' || fail "the copy"
from kwire import Conn
a, b = Conn().records("orders", 0), Conn().records("copy", 0)
assert [r[1:] for r in a] == [r[1:] for r in b], (len(a), len(b))
X
seq 300 | sed 's/.*/key&\tvalue&/' >rows
klog append keyed/tsv/any <rows || fail "by key"
tr '\t' : <rows | $K -P -K: -t keyed -X topic.partitioner=murmur2 || fail "kcat"
for p in 0 1 2 3 4; do
    eq "each key of p$p is there twice, by klog and by librdkafka" 2 "$(klog cat "keyed/tsv/p$p" | cut -f1 | sort | uniq -c | awk '{ print $1 }' | sort -u)"
done
n=$(end_offset)
status 1 bash -c "printf '{\"value\":\"x\"}\n{\"value\":\"y\"}\n{\"vlaue\":\"z\"}\n{\"value\":\"w\"}\n' | klog append t1/json/p0"
has "which line, and why" "line 3: a member that no record has; 2 records are committed" "$OUT"
eq "what stands before it is committed" $((n + 2)) "$(end_offset)"
status 1 bash -c "echo x | klog append nosuch/p0"
status 2 bash -c "echo x | klog append t1"
topic compacted 1 cleanup.policy=compact
status 1 bash -c "printf 'k\tv\n\\\\N\tv\n' | klog append compacted/tsv/p0"
has "the broker's refusal, and its line" "line 2: .*; 1 records are committed" "$OUT"
status 0 klog append t1/p0 </dev/null
seq 200000 | klog append copy/p0 || fail "many"
eq "many" "$(seq 200000 | md5sum)" "$(klog tail -n 200000 copy/p0 | md5sum)"

# ---- tail ----
eq "the last" "$(seq 199998 200000)" "$(klog tail -n 3 copy/p0)"
eq "ten" "$(seq 199991 200000)" "$(klog tail copy/p0)"
eq "none" "" "$(klog tail -n 0 copy/p0)"
eq "all there are" "hello a b  last x y " "$(klog tail -n 100 t1/p0 | tr '\n' ' ')"
eq "of a range" "$(printf 'a\nb')" "$(klog tail -n 2 t1/:3/p0)"
eq "headers" "$(printf '==> t1/-1/p0 <==\ny\n\n==> copy/-1/p0 <==\n200000')" "$(klog tail t1/-1/p0 copy/-1/p0)"
klog tail -f -n 1 t1/json/p0 >tailed & TAIL=$!
klog cat t1/follow/p0 >catted & CAT=$!
klog tail -f -n 0 keyed/all >tailed.all & ALL=$!
wait_lines tailed 1
wait_lines catted 7
echo one | grow
wait_lines tailed 2
for i in 1 2 3; do
    for p in 0 1 2 3 4; do echo "r$i$p" | produce -t keyed -p $p -X linger.ms=0; done
done
wait_lines tailed.all 15
kill $TAIL $CAT $ALL
wait $TAIL $CAT $ALL
eq "what tail saw" "y one" "$(jq -r .value tailed | tr '\n' ' ' | sed 's/ $//')"
eq "what cat saw" "hello a b  last x y one " "$(tr '\n' ' ' <catted)"
eq "all, each once" "$(for i in 1 2 3; do for p in 0 1 2 3 4; do echo "r$i$p"; done; done | sort)" "$(sort tailed.all)"

# ---- trim ----
status 0 klog trim copy:0 --to 100
eq "where it begins" 100 "$(start_offset copy)"
status 0 klog trim copy --to -5
eq "five are left" "$(seq 199996 200000)" "$(cat "$M/copy/p0")"
klog trim orders --to @1700000020 >rows || fail "by time"
eq "rows" 4 "$(wc -l <rows)"
"$PY" - <<'X' || fail "by time"
from kwire import Conn
for p in range(3):
    c = Conn()
    r = c.records("orders", p, c.list_offset("orders", p, -2)[2])
    assert r[0][1] >= 1700000020000, r[0]
X
status 2 klog trim orders
status 2 klog trim orders --to 1:2
status 1 klog trim orders:7 --to 1
status 1 klog trim nosuch --to 1
