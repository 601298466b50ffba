# SPDX-License-Identifier: Apache-2.0
# A consumer that ends at the end does so with most partitions empty, and soon.
# https://github.com/edenhill/kcat/issues/33 https://github.com/edenhill/kcat/issues/163
# https://github.com/thomhurst/Dekaf/pull/1002 https://github.com/confluentinc/confluent-kafka-go/issues/278
klogd_start --override group.initial.rebalance.delay.ms=0
topic m8 8
seq 5 | produce -t m8 -p 3
t0=$(now_ms)
eq "records" 5 "$($K -C -t m8 -o beginning -e | wc -l)"
between "milliseconds" 0 3000 $(($(now_ms) - t0))
t0=$(now_ms)
status 0 $K -C -t m8 -p 7 -o end -e
between "milliseconds" 0 3000 $(($(now_ms) - t0))

# as a group, and on the mount
t0=$(now_ms)
eq "records for kcat's group" 5 "$(timeout 20 kcat -b $B -q -G k -X auto.offset.reset=earliest -e m8 | wc -l)"
between "milliseconds" 0 $((8000 * ${TEST_TIMEOUT_FACTOR:-1})) $(($(now_ms) - t0))
mount_start
t0=$(now_ms)
eq "records of as/" "5 0" "$(wc -l <"$M/m8/as/g/all") $(wc -l <"$M/m8/as/g/all")"
eq "positions, where there was something" "p3 5 p3 5" "$(for g in k g; do echo $(ls "$M/m8/.groups/$g") $(cat "$M/m8/.groups/$g"/p*); done | xargs)"
between "milliseconds" 0 $((3000 * ${TEST_TIMEOUT_FACTOR:-1})) $(($(now_ms) - t0))
