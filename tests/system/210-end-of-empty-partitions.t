# SPDX-License-Identifier: Apache-2.0
# A consumer that ends at the end does so with most partitions empty, and soon.
# https://github.com/edenhill/kcat/issues/33 https://github.com/edenhill/kcat/issues/163
# https://github.com/thomhurst/Dekaf/pull/1002 https://github.com/confluentinc/confluent-kafka-go/issues/278
klogd_start --override group.initial.rebalance.delay.ms=0
topic m8 8
seq 5 | produce -t m8 -p 3
eq "records" 5 "$($KC -t m8 -o beginning -e | wc -l)"
status 0 $KC -t m8 -p 7 -o end -e

# as a group, and on the mount
eq "records for kcat's group" 5 "$(timeout 20 kcat -b $B -q -G k -X auto.offset.reset=earliest -e m8 | wc -l)"
mount_start
eq "records of as/" "5 0" "$(wc -l <"$M/m8/as/g/all") $(wc -l <"$M/m8/as/g/all")"
eq "positions, where there was something" "p3 5 p3 5" "$(for g in k g; do echo $(ls "$M/m8/.groups/$g") $(cat "$M/m8/.groups/$g"/p*); done | xargs)"
