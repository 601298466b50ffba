# SPDX-License-Identifier: Apache-2.0
# What docs/CLUSTER.md says of days of a cluster, on six brokers in three racks: a rack is lost and comes back, a broker is replaced by one with
# empty disks, one is added, partitions are moved to it at a rate, and one is emptied and goes. A writer with acks=all goes on all the time.
# timeout: 600
requires jq java kcat script
requires_klogd
[ -e /usr/share/java/zookeeper.jar ] || skip "needs libzookeeper-java"
C=$T/cluster
A=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094,127.0.0.1:9095,127.0.0.1:9096,127.0.0.1:9097
export KLOG_BROKERS=$A
cleanup_fn '[ ! -d $C ] || klog cluster stop --dir "$C"; cat "$C"/*/*.log >"$T/cluster.log"'
cluster() { klog cluster "$1" --dir "$C" "${@:2}"; }
status 0 cluster start --brokers 6 --rack A,B,C
status 0 klog topic create orders -p 12 --replication-factor 3 --config min.insync.replicas=2 --timeout 60
in_sync() { [ -z "$(klog topic describe orders --json | jq -c 'select(.isr | length < (.replicas | length))')" ]; }
wait_for 60 "in sync" in_sync
racks() { klog topic describe orders --json | jq -c '[.replicas[] % 3] | sort'; }
eq "each partition is in each rack" "[0,1,2]" "$(racks | sort -u)"

n=0 writers=
write() {
    seq -f "line %g" $((n + 1)) $((n + $1)) | kcat -E -P -b $A -t orders -X acks=all -X enable.idempotence=true -X message.timeout.ms=300000 \
        -X linger.ms=5 >>kcat.log 2>&1 19>&- &
    writers+=" $!"
    n=$((n + $1))
}
written() {
    local w
    for w in $writers; do wait "$w" || fail "a producer ends with $?: $(tail -n3 kcat.log)"; done
    writers=
    kcat -C -b $A -t orders -o beginning -e 2>/dev/null | sort -t' ' -k2n >got
    seq -f "line %g" $n | cmp - got || fail "$1: what is there is not what was written"
}

# ---- a rack is lost ----
write 500
for b in 1 4; do status 0 cluster kill $b; done
write 2000
led() { [ -z "$(klog topic describe orders --json 2>/dev/null | jq -c 'select(.leader == null or .leader == 1 or .leader == 4)')" ]; }
wait_for 60 "all are led by others" led
written "without a rack"
for b in 1 4; do status 0 cluster start-broker $b; done
wait_for 60 "in sync again" in_sync

# ---- a broker is dead for good ----
write 500
status 0 cluster kill 2
rm -rf "$C/broker-2/data"
mkdir "$C/broker-2/data"
status 0 cluster start-broker 2
wait_for 120 "the new one has copied everything" in_sync
written "with a broker replaced"
for f in "$C"/broker-2/data/orders-*; do
    p=${f##*-}
    other=$(klog topic describe orders --json | jq "select(.partition == $p) | [.replicas[] | select(. != 2)][0]")
    same "logs of partition $p" "$f/00000000000000000000.log" "$C/broker-$other/data/orders-$p/00000000000000000000.log"
done

# ---- partitions are moved: all away from one, then its share back ----
write 500
klog reassign plan --drain 3 >plan.json 2>said || fail "no plan: $(cat said)"
script -qec 'klog reassign run plan.json --throttle 50000000' tty.out >/dev/null 2>&1 </dev/null || fail "run: $(cat tty.out)"
eq "nothing is left at 3" "" "$(klog topic describe --json | jq -c 'select(.replicas | index(3))')"
eq "each partition is in each rack" "[0,1,2]" "$(racks | sort -u)"
status 0 klog reassign status
klog reassign plan --add 3 >plan.json 2>said || fail "no plan: $(cat said)"
# at a rate that makes it last, so that the bar is seen
script -qec 'klog reassign run plan.json --throttle 20000' tty.out >/dev/null 2>&1 </dev/null || fail "run: $(cat tty.out)"
has "the bar" '\[[#.]{30}\] +[0-9]+ % of ' "$(tr '\r' '\n' <tty.out)"
eq "each partition is in each rack" "[0,1,2]" "$(racks | sort -u)"
status 0 klog leader elect
written "moved"
wait_for 60 "in sync" in_sync
status 0 cluster status
status 0 cluster stop
