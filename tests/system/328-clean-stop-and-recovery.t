# SPDX-License-Identifier: Apache-2.0
# A clean stop drains and leaves a marker, so that the next start scans nothing; a start after kill -9 is quick as well.
klogd_start
topic t1
(seq 1 300000 | $K -P -t t1 -p 0) &
writer=$!
wait_for 20 "load" eval '[ "$(end_offset)" -gt 10000 ]'
klogd_stop
klogd_restart
wait $writer
eq "the writer went on" 0 $?
consume | cmp - <(seq 1 300000) || fail "records around a clean stop"
for i in 1 2 3; do
    klogd_kill
    t0=$(now_ms)
    klogd_restart
    between "milliseconds of a start after kill -9" 0 2000 $(($(now_ms) - t0))
done
consume | cmp - <(seq 1 300000) || fail "records after kill -9"
