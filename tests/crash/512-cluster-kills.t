# SPDX-License-Identifier: Apache-2.0
# Three brokers, replication 3, acks=all: at random moments one, two or all of them get SIGKILL and come back, while a producer writes. What it
# wrote is there once, and the three logs of each partition are the same bytes. CYCLES=100 for longer, SEED=N for the same choices once more.
# timeout: 600
requires jq java kcat
requires_klogd
[ -e /usr/share/java/zookeeper.jar ] || skip "needs libzookeeper-java"
C=$T/cluster
A=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094
cleanup_fn '[ ! -d $C ] || klog cluster stop --dir "$C"; cat "$C"/*/*.log >"$T/cluster.log"'
RANDOM=${SEED:=$RANDOM}
echo "SEED=$SEED"
status 0 klog cluster start --dir "$C" --brokers 3
status 0 klog topic create orders -b $A -p 4 --replication-factor 3 --config min.insync.replicas=2 --config segment.bytes=20000

n=0
writers=
# That many lines more, by a producer of their own, which is waited for at the end of a cycle.
write() {
    seq -f "line %g" $((n + 1)) $((n + $1)) | kcat -E -P -b $A -t orders -X acks=all -X enable.idempotence=true -X message.timeout.ms=300000 \
        -X linger.ms=5 >>kcat.log 2>&1 19>&- &
    writers+=" $!"
    n=$((n + $1))
}
ends() { klog topic describe orders -b $A --json 2>/dev/null | jq -s 'map(.end // 0) | add // 0'; }
all_is_there() { [ "$(ends)" = $n ]; }

write 100
wait_for 60 "the producer has written" all_is_there
for cycle in $(seq ${CYCLES:-8}); do
    first=$((RANDOM % 3 + 1))
    case $((RANDOM % 6)) in
    0) victims="1 2 3" ;;
    1 | 2) victims="$first $((first % 3 + 1))" ;;
    *) victims=$first ;;
    esac
    write $((RANDOM % 300 + 1))
    for b in $victims; do
        status 0 klog cluster kill --dir "$C" $b
        write $((RANDOM % 100 + 1))
    done
    for b in $(shuf -e $victims --random-source=<(yes $RANDOM)); do
        status 0 klog cluster start-broker --dir "$C" $b
        write $((RANDOM % 100 + 1))
    done
    wait_for 90 "all is there after cycle $cycle ($victims)" all_is_there
    for w in $writers; do
        wait $w || fail "a producer ends with $?: $(tail -n3 kcat.log)"
    done
    writers=
done
kcat -C -b $A -t orders -o beginning -e 2>/dev/null | sort -t' ' -k2n >got
seq -f "line %g" $n | cmp - got || fail "what is there is not what was written"

same() {
    for b in 1 2 3; do cat "$C/broker-$b/data/orders-$1"/*.log | md5sum; done | sort -u | wc -l
}
in_sync() { [ "$(klog topic describe orders -b $A --json | jq -c '.isr | sort' | sort -u)" = '[1,2,3]' ]; }
wait_for 60 "all replicas are in sync" in_sync
status 0 klog cluster stop --dir "$C"
for p in 0 1 2 3; do
    eq "logs of partition $p" 1 "$(same $p)"
done
