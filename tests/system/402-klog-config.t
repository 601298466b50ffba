# SPDX-License-Identifier: Apache-2.0
# klog shows and changes settings of topics and brokers, all of a call or none.
requires jq
klogd_start
topic t1
get() { klog config get topic t1 "$1" --json | jq -r .value; }
eq "default" 604800000 "$(get retention.ms)"
status 0 klog config set topic t1 retention.ms=5000 max.message.bytes=2000
eq "new value" "5000 2000" "$(get retention.ms) $(get max.message.bytes)"
status 1 klog config set topic t1 retention.ms=7000 max.message.bytes=many
eq "nothing changed" "5000 2000" "$(get retention.ms) $(get max.message.bytes)"
status 1 klog config set topic t1 no.such.key=1
status 0 klog config set topic t1 --delete retention.ms
eq "back to the default" 604800000 "$(get retention.ms)"
eq "in force" 10 "$("$PY" -c "
from kwire import Conn, batch
print(Conn().produce('t1', 0, batch([bytes(3000)]))[0])")"
status 1 klog config get topic nosuch
klogd_kill
klogd_restart
eq "after kill -9" 2000 "$(get max.message.bytes)"
broker=$(klog topic describe t1 --json | jq -r .leader)
has "broker settings" num.partitions "$(klog config get broker "$broker")"
