# SPDX-License-Identifier: Apache-2.0
# A batch over max.message.bytes is error 10; its neighbours are stored, the connection stays.
# https://github.com/OTRF/Security-Datasets/issues/1 https://github.com/confluentinc/librdkafka/issues/2385
klogd_start
topic small 1 max.message.bytes=1000
(
    echo ok1
    head -c 5000 /dev/urandom | base64 -w0
    echo
    echo ok2
) | timeout 20 kcat -b $B -P -t small -p 0 -X linger.ms=0 -X batch.num.messages=1 2>err
eq "exit status of kcat" 1 $?
has "its message" 'Message size too large' "$(cat err)"
eq "stored" "ok1 ok2" "$(consume small | tr '\n' ' ' | sed 's/ $//')"
"$PY" - <<'X' || fail "error codes"
import os
from kwire import Conn, batch
c = Conn()
fits = 1000 - len(batch([b'']))
while len(batch([bytes(fits)])) > 1000:
    fits -= 1
assert len(batch([bytes(fits)])) == 1000
assert c.produce("small", 0, batch([bytes(fits)])) == (0, 2)
assert c.produce("small", 0, batch([bytes(fits + 1)]))[0] == 10
# What counts is the batch as sent: 100,000 bytes that compress well fit.
assert c.produce("small", 0, batch([bytes(100000)], squeeze=9)) == (0, 3)
assert c.produce("small", 0, batch([b'same connection'])) == (0, 4)
X
eq "end offset" 5 "$(end_offset small)"
