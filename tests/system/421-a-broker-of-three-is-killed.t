# SPDX-License-Identifier: Apache-2.0
# What docs/CLUSTER.md shows first: three brokers, a mount over two of their addresses, and the leader of a partition killed under a writer
# and a reader. Every line that echo confirmed is there once, in order; tail -f goes on; klog tells who leads.
# timeout: 400
requires jq java
requires_fuse
[ -e /usr/share/java/zookeeper.jar ] || skip "needs libzookeeper-java"
C=$T/cluster
A=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094
cleanup_fn '[ ! -d $C ] || klog cluster stop --dir "$C"; cat "$C"/*/*.log >"$T/cluster.log"'
whole() { klog cluster start --dir "$C" --brokers 3 --rack A,B,C >start.out; }
wait_for 60 "all is made and runs" whole
# Longer sessions than one who tries it wants: a busy machine must not look like a dead broker.
status 0 klog cluster stop --dir "$C"
sed -i 's/^zookeeper.session.timeout.ms=.*/zookeeper.session.timeout.ms=8000/' "$C"/broker-*/klogd.properties
wait_for 60 "all runs again" whole
status 0 klog topic create orders -b $A -p 4 --replication-factor 3 --config min.insync.replicas=2 --timeout 60
leader() { klog topic describe orders -b $A --json 2>/dev/null | jq 'select(.partition == 0).leader // empty'; }
in_sync() { [ "$(klog topic describe orders -b $A --json | jq -c '.isr | sort' | sort -u)" = '[1,2,3]' ]; }
wait_for 60 "all replicas are in sync" in_sync
eq "racks" "A B C" "$(klog ping -b $A --json | jq -r .rack | sort | paste -sd' ')"

mkdir -p "$M"
klogfs -f 127.0.0.1:9092,127.0.0.1:9093 "$M" >>"$KLOGFS_LOG" 2>&1 19>&- &
KLOGFS_PID=$!
wait_for 15 "klogfs mounts" mount_answers
P=$M/orders/p0
tail -n +1 -f "$P" >followed 2>tail.err 19>&- &
tail=$!
cleanup_fn 'kill $tail 2>/dev/null'
(
    n=0
    while [ ! -e stop ]; do
        n=$((n + 1))
        if echo "line $n" >>"$P"; then echo "line $n" >>good; else echo "line $n" >>bad; fi
    done
) 19>&- 2>/dev/null &
writer=$!
touch good bad
wait_lines good 50
for turn in 1 2; do
    old=$(leader)
    status 0 klog cluster kill --dir "$C" "$old"
    was=$(wc -l <good)
    wait_lines good $((was + 50)) 60
    status 1 klog cluster status --dir "$C"
    led() { local l; l=$(leader) && [ -n "$l" ] && [ "$l" != "$old" ]; }
    wait_for 60 "another leads" led
    wait_for 60 "broker $old is back" klog cluster start-broker --dir "$C" "$old"
    wait_for 60 "broker $old is in sync again" in_sync
done
wait_for 60 "all is well" klog cluster status --dir "$C"
for g in a b c d e f g h; do status 0 klog group reset $g -b $A -t orders --to-earliest --execute; done
eq "the groups, whose coordinators are three" "a b c d e f g h" "$(ls "$M/orders/.groups" | xargs)"
touch stop
wait $writer
cat "$P" >all || fail "cat"
eq "lines that are there twice" "" "$(sort all | uniq -d | head -n3)"
eq "confirmed lines that are missing" "" "$(comm -23 <(sort good) <(sort all) | head -n3)"
eq "lines that nobody wrote" "" "$(comm -13 <(sort good bad) <(sort all) | head -n3)"
cut -d' ' -f2 all | sort -nc || fail "another order"
same_now() { cmp -s followed all; }
wait_for 20 "tail -f has all lines" same_now
kill $tail
wait $tail 2>/dev/null
echo "$(wc -l <good) lines confirmed, $(wc -l <bad) not"
mount_stop
status 0 klog cluster stop --dir "$C"
