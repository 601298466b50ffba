# SPDX-License-Identifier: Apache-2.0
# A full disk is an error for writers only, no half batch shows, a start on the full disk works, and so does writing when there is
# space again.
# https://github.com/strimzi/strimzi-kafka-operator/issues/7484 https://github.com/getsentry/self-hosted/issues/3133
# https://github.com/operate-first/apps/issues/676 https://github.com/confluentinc/cp-helm-charts/issues/400
# timeout: 120
mkdir -p "$D"
mount -t tmpfs -o size=20m none "$D" || skip "no tmpfs"
cleanup_fn 'umount -l "$D"'
scene
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
consume | same "after a start on the full disk" before -
mount -o remount,size=60m none "$D"
klogd_stop
klogd_restart
echo again | grow
eq "the next record" again "$(consume | tail -n1)"
eq "nothing else" $(($(wc -l <before) + 1)) "$(consume | wc -l)"
