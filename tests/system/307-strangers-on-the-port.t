# SPDX-License-Identifier: Apache-2.0
# HTTP, TLS and absurd sizes are refused at once; half-sent claims of 100 MB reserve nothing and hinder nobody.
# https://github.com/quarkusio/quarkus-quickstarts/issues/1088 https://github.com/tulios/kafkajs/issues/1643
# https://github.com/apache/kafka/pull/3359 https://github.com/apache/kafka/pull/2330
klogd_start
topic t1
eq "HTTP" EOF "$(raw "$(printf 'GET / HTTP/1.0\r\n\r\n' | od -An -tx1 | tr -d ' \n')")"
eq "negative size" EOF "$(raw ffffffff)"
eq "size 0" EOF "$(raw 00000000)"
eq "size 2^31-1" EOF "$(raw 7fffffff)"
eq "one byte more than socket.request.max.bytes" EOF "$(raw 06400001)"
eq "the largest size" open "$(raw 06400000)"
eq "a header cut short" EOF "$(raw 00000002ffff)"
eq "unknown API" EOF "$(raw 0000000b7fff000000000001000178)"
command -v openssl >/dev/null && { timeout 5 openssl s_client -connect $B </dev/null >/dev/null 2>&1; [ $? -ne 124 ] || fail "TLS hello hangs"; }
before=$(rss_kb "$KLOGD_PID")
"$PY" - <<'X' &
import socket, sys, time
s = [socket.create_connection(("127.0.0.1", 9092)) for _ in range(200)]
for x in s:
    x.send(bytes.fromhex("06400000" "0000000000"))
open("claimed", "w").close()
s[0].recv(1)
X
claims=$!
wait_for 10 "200 half-sent claims" test -e claimed
between "growth of memory in kB" -100000 51200 $(($(rss_kb "$KLOGD_PID") - before))
echo ok | grow
eq "stored" ok "$(consume)"
kill $claims
wait $claims 2>/dev/null
for i in 1 2 3 4 5; do head -c 200000 /dev/urandom | timeout 5 nc -q1 127.0.0.1 9092 >/dev/null; done
gone "$KLOGD_PID" && fail "klogd died of random bytes"
eq "stored" ok "$(consume)"
