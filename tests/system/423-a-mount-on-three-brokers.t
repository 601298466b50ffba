# SPDX-License-Identifier: Apache-2.0
# A mount on three brokers that was told of two of them: the leader of what it writes is killed, then both of the brokers whose
# addresses it was given. Writers, follow/, as/ and views go on with the one that is left and with those that come back; sizes
# never shrink, every confirmed line is there once, and .status tells who leads, who is in sync and who is missing.
# timeout: 400
requires jq java
requires_fuse
[ -e /usr/share/java/zookeeper.jar ] || skip "needs libzookeeper-java"
C=$T/cluster
A=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094
cleanup_fn '[ ! -d $C ] || klog cluster stop --dir "$C"; cat "$C"/*/*.log >"$T/cluster.log"'
whole() { klog cluster start --dir "$C" --brokers 3 >start.out; }
wait_for 60 "all is made and runs" whole
status 0 klog topic create orders -b $A -p 3 --replication-factor 3 --config min.insync.replicas=1 --timeout 60
leader() { klog topic describe orders -b $A --json 2>/dev/null | jq 'select(.partition == 0).leader // empty'; }
in_sync() { [ "$(klog topic describe orders -b $A --json 2>/dev/null | jq -c '.isr | sort' | sort -u)" = '[1,2,3]' ]; }
wait_for 60 "all replicas are in sync" in_sync
mkdir -p "$M"
klogfs -f 127.0.0.1:9092,127.0.0.1:9093 "$M" >>"$KLOGFS_LOG" 2>&1 19>&- &
KLOGFS_PID=$!
wait_for 15 "klogfs mounts" mount_answers
P=$M/orders/p0
eq ".status of the cluster" "1 2 3" "$(awk '$2 ~ /^127/ { print $1 }' "$M/.status" | xargs)"
has "and that all is well" "every partition has its leader and all its replicas in sync" "$(cat "$M/.status")"
sorted() { tr , '\n' <<<"$1" | sort | paste -sd,; }
eq ".status of the topic" "0 1,2,3 1,2,3;1 1,2,3 1,2,3;2 1,2,3 1,2,3" \
    "$(awk 'NR > 1 { print $1, $3, $4 }' "$M/orders/.status" | while read -r p r i; do echo "$p $(sorted "$r") $(sorted "$i")"; done | paste -sd';')"

cat "$M/orders/follow/p0" >followed 2>followed.err 19>&- & readers=$!
cat "$M/orders/json/follow/p0" >followed.json 2>json.err 19>&- & readers="$readers $!"
cat "$M/orders/as/g/follow/p0" >read.as 2>as.err 19>&- & readers="$readers $!"
cleanup_fn 'kill $readers 2>/dev/null'
cat >sizes.py <<'X'
import os, sys
names = ["p0", "json/p0", "0/p0"]
held = [os.open(os.path.join(sys.argv[1], n), os.O_RDONLY) for n in names]
last, seen = [0] * 6, 0
while not os.path.exists("stop"):
    for i, (n, f) in enumerate(zip(names, held)):
        for j, stat in enumerate((lambda: os.stat(os.path.join(sys.argv[1], n)), lambda: os.fstat(f))):
            try:
                size = stat().st_size
            except OSError:
                continue # while nobody leads
            assert size >= last[2 * i + j], (n, j, size, last[2 * i + j])
            last[2 * i + j] = size
            seen += 1
    with open("sizes.seen", "w") as out:
        out.write("%d\n" % seen)
print(last)
X
"$PY" sizes.py "$M/orders" >sizes.out 2>&1 19>&- & sizes=$!
(
    n=0
    while [ ! -e stop ]; do
        n=$((n + 1))
        if echo "line $n" >>"$P"; then echo "line $n" >>good; else echo "line $n" >>bad; fi
    done
) 19>&- 2>/dev/null &
writer=$!
touch good bad
wait_lines good 30 60
wait_lines read.as 10 # so that the topic of positions is there; with one broker left as/ is to commit, too
status 0 klog config set topic __consumer_offsets min.insync.replicas=1 -b $A

# the leader
old=$(leader)
status 0 klog cluster kill --dir "$C" "$old"
was=$(wc -l <good)
wait_lines good $((was + 30)) 60
lame() { grep -q "^under-replicated  orders/p0  in sync 2 of 3" "$M/.status" && ! grep -q "^$old  *127" "$M/.status"; }
wait_for 60 ".status tells that a broker is missing" lame
has ".status of the topic names the new leader" "^0 +[123] " "$(grep '^0' "$M/orders/.status")"
wait_for 60 "broker $old is back" klog cluster start-broker --dir "$C" "$old"
wait_for 60 "all is in sync again" in_sync
well() { grep -q "^every partition has its leader" "$M/.status"; }
wait_for 60 ".status tells that it is well" well

# every address that the mount was given
status 0 klog cluster kill --dir "$C" 1
third() { [ "$(leader)" != 1 ] && [ -n "$(leader)" ]; }
wait_for 60 "another leads" third
status 0 klog cluster kill --dir "$C" 2
was=$(wc -l <good)
wait_lines good $((was + 30)) 60
eq "who is left" 3 "$(awk '$2 ~ /^127/ { print $1 }' "$M/.status" | xargs)"
same_lines() { [ "$(wc -l <followed)" -gt "$was" ] && [ "$(wc -l <read.as)" -gt "$was" ] && [ "$(wc -l <followed.json)" -gt "$was" ]; }
wait_for 60 "those who follow go on" same_lines
for b in 1 2; do wait_for 60 "broker $b is back" klog cluster start-broker --dir "$C" $b; done
wait_for 60 "all is in sync at the end" in_sync
touch stop
wait $writer
wait $sizes || fail "sizes: $(cat sizes.out)"
[ "$(cat sizes.seen)" -gt 100 ] || fail "sizes were seen $(cat sizes.seen) times"
cat "$P" >all || fail "cat"
eq "lines that are there twice" "" "$(sort all | uniq -d | head -n3)"
eq "confirmed lines that are missing" "" "$(comm -23 <(sort good) <(sort all) | head -n3)"
eq "lines that nobody wrote" "" "$(comm -13 <(sort good bad) <(sort all) | head -n3)"
jq -r .value <"$M/orders/json/p0" | same "json" - all
has_all() { cmp -s followed all && cmp -s read.as all && jq -r .value followed.json | cmp -s - all; }
wait_for 30 "all who follow have all lines" has_all
kill $readers
wait $readers 2>/dev/null
echo "$(wc -l <good) lines confirmed, $(wc -l <bad) not; sizes: $(cat sizes.out)"
mount_stop
status 0 klog cluster stop --dir "$C"
