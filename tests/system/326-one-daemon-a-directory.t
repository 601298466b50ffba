# SPDX-License-Identifier: Apache-2.0
# Two daemons on one directory, or another cluster's directory: the second is refused at once with a reason, the first unharmed.
# https://github.com/wurstmeister/kafka-docker/issues/748 https://github.com/bitnami/charts/issues/16044
# https://github.com/jpotts/alfresco-kafka/issues/6
klogd_start
topic t1
fails "$D" timeout 20 klogd --override listeners=PLAINTEXT://127.0.0.1:9099 --override log.dirs="$D"
eq "lines it says" 1 "$(grep -c . <<<"$OUT")"
echo ok | grow
eq "the first is unharmed" ok "$(consume)"
fails 'ddress|9092|in use' timeout 20 klogd --override listeners=PLAINTEXT://127.0.0.1:9092 --override log.dirs="$T/data2"
klogd_kill
klogd_restart
echo ok2 | grow
eq "after kill -9" "ok ok2" "$(consume | tr '\n' ' ' | sed 's/ $//')"
klogd_stop
cp -a "$D" "$T/k2"
find "$T/k2" -type f -exec md5sum {} + | sort >before
fails "$T/k2" timeout 20 klogd --override listeners=PLAINTEXT://127.0.0.1:9092 --override log.dirs="$T/k2" --override cluster.id=AAAAAAAAAAAAAAAAAAAAAA
fails "$T/k2" timeout 20 klogd --override listeners=PLAINTEXT://127.0.0.1:9092 --override log.dirs="$T/k2" --override broker.id=77
find "$T/k2" -type f -exec md5sum {} + | sort | cmp before - || fail "the refused directory was touched"
