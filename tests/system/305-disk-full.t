# SPDX-License-Identifier: Apache-2.0
# A full disk is an error for writers only, no half batch shows, a start on the full disk works, and so does writing when there is
# space again.
# What empties the disk works on the full disk: retention, also where a segment must be rolled first, settings, and deleting a topic.
# What does not work leaves nothing behind.
# https://github.com/strimzi/strimzi-kafka-operator/issues/7484 https://github.com/getsentry/self-hosted/issues/3133
# https://github.com/operate-first/apps/issues/676 https://github.com/confluentinc/cp-helm-charts/issues/400
# timeout: 120
mkdir -p "$D"
mount -t tmpfs -o size=20m none "$D" || skip "no tmpfs"
cleanup_fn 'umount -l "$D"'
scene --override log.retention.check.interval.ms=100
topic spare
topic doomed
for t in spare doomed; do seq 1 10000 | grow $t; done
head -c 30000000 /dev/urandom | base64 -w 50000 | $K -P -t t1 -p 0 -X message.timeout.ms=4000 2>err
[ $? -ne 0 ] || fail "30 MB went into 20 MB"
line=$(head -c 50000 /dev/zero | tr '\0' z)
until ! echo "$line" 2>err >>"$P"; do :; done # what kcat's larger batches left
has "a shell's error" 'No space left on device' "$(cat err)"
consume >before || fail "reads on the full disk"
[ -s before ] || fail "nothing was stored"
awk 'length($0) != 50000 { exit 1 }' before || fail "half a line"
klogd_kill
klogd_restart
: >small
fill() { # whoever is quickest gets the last byte
    local n=0
    until [ $n -ge 20 ]; do if echo fill >>"$P"; then echo fill >>small; n=0; else n=$((n + 1)); fi; done 2>/dev/null
}
fill
cat small >>before
fails 'No space left on device' mkdir "$M/new"
fails 'No space left on device' touch "$M/t1/p1"
eq "what they left" "" "$(ls "$M" | grep new)$(ls "$M/t1" | grep p1)$(ls "$D" | grep -E '^(new|t1-1)')"
status 0 klog config set -b $B topic spare retention.ms=1
wait_for 10 "retention empties the full disk" eval '[ "$(start_offset spare)" -eq 10000 ]'
wait_for 5 "there is room again" eval 'echo fill 2>/dev/null >>"$P"'
echo fill >>before
: >small
fill
cat small >>before
status 0 "$PY" "$TESTLIB/topic.py" delete doomed
wait_for 5 "there is room again" eval 'echo fill 2>/dev/null >>"$P"'
echo fill >>before
consume | same "after a start on the full disk" before -
mount -o remount,size=60m none "$D"
klogd_stop
klogd_restart
echo again | grow
eq "the next record" again "$(consume | tail -n1)"
eq "nothing else" $(($(wc -l <before) + 1)) "$(consume | wc -l)"
