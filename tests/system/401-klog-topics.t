# SPDX-License-Identifier: Apache-2.0
# klog creates, lists, describes, alters and deletes topics; its exit status and JSON are for scripts.
requires jq
klogd_start
status 0 klog ping
status 0 klog topic create orders -p 3 -c retention.ms=86400000
status 1 klog topic create orders
has "the reason" 'orders.*TOPIC_ALREADY_EXISTS' "$OUT"
status 0 klog topic create orders --if-not-exists
status 1 klog topic create 'a b'
status 2 klog topic create
status 2 klog nosuchcommand
status 2 klog topic create x --nosuchoption
status 0 klog topic create nothing --dry-run
eq "names" orders "$(klog topic list -q)"
eq "partitions as JSON" 3 "$(klog topic list --json | jq -r 'select(.topic == "orders").partitions')"
seq 10 | produce -t orders -p 1
eq "end offsets" "0 10 0" "$(klog topic describe orders --json | jq -r '.end // .latest' | tr '\n' ' ' | sed 's/ $//')"
status 0 klog topic alter orders -p 5 -c segment.bytes=1048576
eq "partitions" 5 "$("$PY" -c "from kwire import Conn; print(Conn().metadata(['orders'])['orders'][1])")"
status 1 klog topic alter orders -p 2
status 0 klog topic delete orders
status 1 klog topic delete orders
status 0 klog topic delete orders --if-exists
eq "names" "" "$(klog topic list -q)"
status 1 klog ping -b 127.0.0.1:9099 --timeout 2
KLOG_BROKERS=127.0.0.1:9099 status 1 klog topic list --timeout 2
KLOG_BROKERS=127.0.0.1:9099 status 0 klog topic list -b $B
