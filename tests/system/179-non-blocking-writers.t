# SPDX-License-Identifier: Apache-2.0
# A log's descriptor with O_NONBLOCK (haproxy sets it): while the broker does not answer what it writes gets EAGAIN and is not stored later
# either; what was taken is there once, in order.
scene
cat >writer.py <<'X'
import errno, fcntl, os, signal, sys
path, broker = sys.argv[1], int(sys.argv[2])
fd = os.open(path, os.O_WRONLY | os.O_APPEND)
fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
os.kill(broker, signal.SIGSTOP)  # before the mount has ever appended
for i in range(5):
    try:
        os.write(fd, b"refused %d\n" % i)
    except OSError as e:
        assert e.errno == errno.EAGAIN, e
    else:
        raise AssertionError("the broker is stopped, and %d was taken" % i)
os.kill(broker, signal.SIGCONT)
for i in range(20):
    while True:
        try:
            assert os.write(fd, b"taken %d\n" % i) == len(b"taken %d\n" % i)
            break
        except BlockingIOError:
            pass
os.close(fd)
X
status 0 timeout 60 "$PY" writer.py "$P" "$KLOGD_PID"
for i in {0..19}; do echo "taken $i"; done >expected
consume >got || fail "consume"
same "what was stored" expected got
