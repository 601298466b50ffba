# SPDX-License-Identifier: Apache-2.0
# klogd takes Kafka's names from a file and from --override; an unknown key or a bad value is refused with a hint.
requires_klogd
fails 'log.retention.ms' timeout 10 klogd --override log.retention.mss=5 --override log.dirs="$D"
fails 'num.partitions' timeout 10 klogd --override num.partitions=many --override log.dirs="$D"
fails 'nosuch.properties' timeout 10 klogd "$T/nosuch.properties"
cat >server.properties <<X
# a comment
listeners = PLAINTEXT://127.0.0.1:9092
log.dirs=$D
num.partitions=3
X
klogd --override auto.create.topics.enable=true server.properties >>"$KLOGD_LOG" 2>&1 19>&- &
KLOGD_PID=$!
wait_for 15 "klogd listens" klogd_up
gone "$KLOGD_PID" && fail "klogd ended: $(tail -n3 "$KLOGD_LOG")"
echo v | produce -t new
eq "num.partitions of the file" 3 "$("$PY" -c "from kwire import Conn; print(Conn().metadata(['new'])['new'][1])")"
klogd_stop
printf 'log.dirs=%s\nlog.dir.typo=1\n' "$D" >server.properties
fails 'server.properties.*2' timeout 10 klogd server.properties
status 0 klogd --help
has "--help" '--override' "$OUT"
status 0 klogd --version
has "--version" '[0-9]+\.[0-9]+' "$OUT"
