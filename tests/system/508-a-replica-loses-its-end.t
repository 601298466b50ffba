# SPDX-License-Identifier: Apache-2.0
# A leader is killed, and its disk comes back without the end of what it had flushed. Had it been elected again, the others would have cut
# acknowledged records to match: it owns up instead, another leads, and it is copied until all three are the same bytes.
# timeout: 120
requires jq java kcat
requires_klogd
[ -e /usr/share/java/zookeeper.jar ] || skip "needs libzookeeper-java"
C=$T/cluster
A=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094
cleanup_fn '[ ! -d $C ] || klog cluster stop --dir "$C"; cat "$C"/*/*.log >"$T/cluster.log"'
status 0 klog cluster start --dir "$C" --brokers 3
status 0 klog topic create orders -b $A -p 1 --replication-factor 3 --config min.insync.replicas=2
for i in 1 2 3; do
    seq -f "line $i %g" 100 | kcat -E -P -b $A -t orders -p 0 -X acks=all -X linger.ms=1 2>>kcat.log || fail "kcat ends with $?"
done
leader() { klog topic describe orders -b $A --json 2>/dev/null | jq '.leader // empty'; }
in_sync() { [ "$(klog topic describe orders -b $A --json 2>/dev/null | jq -c '.isr | sort')" = '[1,2,3]' ]; }
old=$(leader)
status 0 klog cluster kill --dir "$C" "$old"
log=$C/broker-$old/data/orders-0/00000000000000000000.log
truncate -s -10 "$log"
status 0 klog cluster start-broker --dir "$C" "$old"
wait_for 30 "broker $old owns up" grep -q 'orders-0: it has less than it had acknowledged' "$C/broker-$old/klogd.log"
wait_for 60 "it is in sync again" in_sync
same() { [ "$(md5sum "$C"/broker-*/data/orders-0/00000000000000000000.log | cut -d' ' -f1 | sort -u | wc -l)" = 1 ]; }
wait_for 30 "the three logs are the same bytes" same
eq "records" 300 "$(kcat -C -b $A -t orders -p 0 -o beginning -e 2>/dev/null | sort -u | wc -l)"
