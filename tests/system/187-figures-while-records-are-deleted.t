# SPDX-License-Identifier: Apache-2.0
# Records are deleted one by one, at moments when others ask where the log begins: whoever asks is told, and nobody gets an error.
N=${DELETIONS:-1000} # check-long: 4000
scene
seq 1001 $((1000 + N)) | grow
"$PY" - "$P" $N <<'X' || fail "figures while records are deleted"
import os, sys, threading
from kwire import Conn, array, i32, i64, string
P, N = sys.argv[1], int(sys.argv[2])
last = b"%d\n" % (1000 + N)
errors, looks, done = [], [0, 0, 0, 0], threading.Event()
def look(i):
    while not done.is_set():
        try:
            size = os.stat(P).st_size
            with open(P, "rb", buffering=0) as f:
                assert f.read(1 << 20).endswith(last)
        except OSError as e:
            errors.append(str(e))
        assert size >= 5, size
        looks[i] += 1
threads = [threading.Thread(target=look, args=(i,)) for i in range(len(looks))]
for t in threads:
    t.start()
c = Conn()
for before in range(1, N):
    r = c.ask(21, 1, array([string("t1") + array([i32(0) + i64(before)])]) + i32(10000))
    assert r.i32() == 0 and r.array(lambda: (r.string(), r.array(lambda: (r.i32(), r.i64(), r.i16())))) == [("t1", [(0, before, 0)])]
done.set()
for t in threads:
    t.join(20)
print(looks, len(errors), set(errors))
assert not errors and min(looks) > 0
X
eq "what is left" $((1000 + N)) "$(cat "$P")"
