# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# A stopped broker: every call on the mount ends within one time-out, however many wait for each other, look-ups of known names and df are
# answered from what is known, and when the broker goes on all works at once. Thirty time-outs are more than this test has.
scene
status 0 stat $P
status 0 stat -f $M
echo kept >>$P
mount_stop
mount_start -o timeout=8
status 0 stat $P
status 0 stat -f $M
# run N COMMAND: N of it at once, of which none succeeds
run() {
    local n=$1 i pids=()
    shift
    for ((i = 0; i < n; i++)); do
        bash -c "$*" >/dev/null 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" && fail "'$*' succeeded without a broker"
    done
}
klogd_pause
run 30 "echo x >>$P"
run 30 "stat -c %s $P"
run 30 "cat $P; ls $M/unknown"
# known names, df: without waiting, so that a hundred of them take no time-out
for ((i = 0; i < 100; i++)); do
    [ -d $M/t1 ] || fail "the topic's directory"
    stat -f $M >/dev/null || fail "df"
done
kill -CONT "$KLOGD_PID"
# An append that succeeds has shown that the broker is there: whatever is asked next need not find that out by failing once more.
appends() { echo more >>$P; }
wait_for 10 "appends work again" appends
eq "the first line, at once" kept "$(head -n 1 $P)"
eq "the last line" more "$(tail -n 1 $P)"
