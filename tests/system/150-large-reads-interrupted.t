# SPDX-License-Identifier: Apache-2.0
# Large reads are answered beside the main thread: interrupted, killed in the middle, or on their way when the mount is stopped, they
# give the right bytes or EINTR, and klogfs lives on.
scene
"$PY" -c 'import sys
for i in range(32 * 1024): sys.stdout.write("%01023d\n" % i)' >want # 32 MiB
cat want >>"$P" || fail "append"
"$PY" - "$P" <<'X' || fail "reads under a timer"
import ctypes, errno, os, signal, sys
want = open("want", "rb").read()
MiB = 1 << 20
signal.signal(signal.SIGALRM, lambda *a: None)
signal.siginterrupt(signal.SIGALRM, True)
libc = ctypes.CDLL(None, use_errno=True)        # python itself would go on after EINTR
libc.pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
libc.pread.restype = ctypes.c_ssize_t
f = os.open(sys.argv[1], os.O_RDONLY)
buf = ctypes.create_string_buffer(MiB)
good = 0
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
for turn in range(8):
    for at in range(0, len(want), MiB):
        n = libc.pread(f, buf, MiB, at)
        e = ctypes.get_errno()
        assert n == MiB or (n == -1 and e == errno.EINTR), (n, e)
        if n == MiB:
            assert buf.raw == want[at:at + MiB], at
            good += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert libc.pread(f, buf, MiB, 5 * MiB + 7) == MiB and buf.raw == want[5 * MiB + 7:6 * MiB + 7]
print(good, "of 256 reads were not interrupted")
X
for i in {1..30}; do
    dd if="$P" of="copy$((i % 3))" bs=1M status=none & pids[i]=$!
    [ $((i % 3)) != 0 ] || kill -9 "${pids[@]:i-2:2}"
done 2>/dev/null
wait "${pids[@]}" 2>/dev/null
same "after thirty readers, twenty of them killed" want <(cat "$P")
for i in 1 2 3; do while cat "$P" >/dev/null; do :; done 2>/dev/null & pids[i]=$!; done
kill -TERM "$KLOGFS_PID"
wait_for 20 "klogfs ends" gone "$KLOGFS_PID"
wait "${pids[@]:1:3}"
mount_start
same "after stopping with readers" want <(cat "$P")
