# SPDX-License-Identifier: Apache-2.0
# SIGKILL of klog run at 50 random moments: no record is skipped, none is out of order, and after a kill at most the batch that
# was not committed is given again. Then of klogd under it, and of COMMAND.
# timeout: 300
requires kcat
klogd_start --override group.initial.rebalance.delay.ms=0
topic t1 2
seq 0 999 | produce -t t1 -p 0
seq 0 999 | produce -t t1 -p 1
cat >notes <<'E'
#!/bin/sh
exec >>"$NOTES.$KLOG_PARTITION"
echo "# $KLOG_OFFSET"
exec cat
E
chmod +x notes
mkdir n1 n2
loop() { "$PY" "$SRCDIR/tests/crash/run_loop.py" "$@"; }
NOTES=$PWD/n1/n loop "${KILLS:-50}" "${SEED:-$RANDOM$RANDOM}" 7 1000 \
    klog run -g g1 --instance i -n 7 -P 2 t1 -- ./notes || fail "klog run killed, see above"
NOTES=$PWD/n2/n loop "${KILLS:-20}" "${SEED:-$RANDOM$RANDOM}" 1 1000 \
    klog run -g g2 --instance i -n 100 -P 2 t1 -- ./notes || fail "klog run with larger batches killed, see above"

# the broker is killed again and again under one klog run, which waits for it
klog run -g g3 -f -n 20 t1 -- sh -c 'cat >>"all.$KLOG_PARTITION"' 2>said 19>&- &
runner=$!
for i in 1 2 3 4 5; do
    wait_lines all.0 $((i * 100)) 30
    klogd_kill
    klogd_restart
done
wait_lines all.0 1000 60
wait_lines all.1 1000 60
kill -TERM $runner
wait $runner
eq "exit status" 0 $?
for p in 0 1; do
    sort -nu all.$p | cmp - <(seq 0 999) || fail "partition $p: $(cat said)"
done
