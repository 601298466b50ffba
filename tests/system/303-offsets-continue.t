# SPDX-License-Identifier: Apache-2.0
# Offsets go on over kill -9 and clean stops.
# https://github.com/apache/iggy/pull/2958
klogd_start
topic t1
for r in 1 2 3; do
    seq 10 | grow
    klogd_kill
    klogd_restart
    klogd_stop
    klogd_restart
done
eq "offsets" "$(seq 0 29 | tr '\n' ' ')" "$(consume t1 -f '%o ')"
