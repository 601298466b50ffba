# SPDX-License-Identifier: Apache-2.0
# A consumer that ends at the end does so with most partitions empty, and soon.
# https://github.com/edenhill/kcat/issues/33 https://github.com/edenhill/kcat/issues/163
# https://github.com/thomhurst/Dekaf/pull/1002 https://github.com/confluentinc/confluent-kafka-go/issues/278
klogd_start
topic m8 8
seq 5 | $K -P -t m8 -p 3
t0=$(now_ms)
eq "records" 5 "$($K -C -t m8 -o beginning -e | wc -l)"
between "milliseconds" 0 3000 $(($(now_ms) - t0))
t0=$(now_ms)
status 0 $K -C -t m8 -p 7 -o end -e
between "milliseconds" 0 3000 $(($(now_ms) - t0))
