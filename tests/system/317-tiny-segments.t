# SPDX-License-Identifier: Apache-2.0
# A thousand tiny segments, three thousand in check-long: all readable, little more disk than data, and descriptors and maps stay bounded.
# https://github.com/rabbitmq/osiris/issues/170 https://github.com/apache/kafka/pull/983
# https://github.com/apache/kafka/pull/4358 https://github.com/utilitywarehouse/tf_kube_ignition/pull/185
# https://github.com/apache/kafka/pull/1353
# timeout: 300
N=${SEGMENTS:-1000}
klogd_start --override flush.policy=async
topic tiny 1 segment.bytes=1024
"$PY" - $N <<'X' || fail "produce"
import sys
from kwire import Conn, batch
c = Conn()
sent = []
for i in range(int(sys.argv[1])):
    sent.append(c.send(0, 7, c.produce_body("tiny", 0, batch([b"%d " % i + b"0" * 900]))))
    if len(sent) > 100:
        assert c.produced(c.reply(sent.pop(0)))[0] == 0
for s in sent:
    assert c.produced(c.reply(s))[0] == 0
X
files=$(ls "$D/tiny-0" | wc -l)
consume tiny | awk '{ print $1 }' | cmp - <(seq 0 $((N - 1))) || fail "records"
between "files of the segments" $((2 * N / 3)) $((16 * N / 3)) "$files"
between "kB on disk for 1 kB a segment" $((N * 9 / 10)) $((3 * N)) "$(du -s --apparent-size "$D/tiny-0" | cut -f1)"
# Closed segments that are not flushed yet keep theirs; the flusher may be some hundred behind.
few_descriptors() { [ "$(fd_count "$KLOGD_PID")" -le 600 ]; }
wait_for 60 "at most 600 descriptors" few_descriptors
between "maps" 1 2000 "$(wc -l <"/proc/$KLOGD_PID/maps")"
klogd_kill
klogd_restart
eq "records" $N "$(consume tiny | wc -l)"
between "files after the restart" $((files - 8)) $((files + 8)) "$(ls "$D/tiny-0" | wc -l)"
