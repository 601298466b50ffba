# SPDX-License-Identifier: Apache-2.0
# 200 KB of random bytes on the port, twenty times: the same process goes on, others are served meanwhile.
klogd_start
topic t1
pid=$KLOGD_PID
"$PY" - <<'X' || fail "random bytes"
import os, random, socket
from kwire import Conn, batch
seed = int.from_bytes(os.urandom(4), "big")
print("seed", seed)
rnd = random.Random(seed)
other = Conn()
for i in range(20):
    s = socket.create_connection(("127.0.0.1", 9092), timeout=10)
    try:
        s.sendall(rnd.randbytes(200000) if i % 2 else (100000).to_bytes(4, "big") + rnd.randbytes(199996))
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    except OSError:
        pass
    s.close()
    assert other.produce("t1", 0, batch([b"%d" % i])) == (0, i)
X
gone "$pid" && fail "klogd died"
consume | cmp - <(seq 0 19) || fail "records"
