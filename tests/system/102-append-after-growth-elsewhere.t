# SPDX-License-Identifier: Apache-2.0
# The kernel's write offset is stale once somebody else grew the log: appends go to the end all the same, and a held
# reader sees every byte once, and at once.
# https://github.com/CurvineIO/curvine/pull/655 https://github.com/rclone/rclone/issues/3843
# https://github.com/libfuse/sshfs/issues/72 https://github.com/libfuse/libfuse/issues/191
mkdir "$D"
mount -t tmpfs -o size=1g none "$D" || skip "no tmpfs" # it acknowledges in less than a millisecond
cleanup_fn 'umount -l "$D"'
scene
exec 8<"$P"
exec 9>>"$P"
echo one >&9 || fail "first append"
cat <&8 >held
printf 'one\n' | same "held reader, first" - held
printf 'REMOTE\n' | grow
echo two >&9 || fail "append after growth elsewhere"
exec 9>&-
cat <&8 >held
printf 'REMOTE\ntwo\n' | same "held reader, on" - held
printf 'one\nREMOTE\ntwo\n' >want
same "file" want "$P"
eq "size" 15 "$(stat -c %s "$P")"
exec 8<&-

# The same many times over, with one descriptor kept: writes of both sides interleave, none is lost or misplaced.
exec 9>>"$P"
for i in 1 2 3 4 5 6 7 8 9 10; do
    echo "far $i" | grow
    echo "near $i" >&9 || fail "append $i"
    printf 'far %d\nnear %d\n' $i $i >>want
done
exec 9>&-
same "interleaved" want "$P"
consume >all
same "the same through kcat" want all

# pwrite on an append descriptor appends, as Linux has it for every file.
"$PY" -c "
import os
f = os.open('$P', os.O_RDWR | os.O_APPEND)
assert os.pwrite(f, b'placed\n', 0) == 7
" || fail "pwrite"
eq "first line" one "$(head -n1 "$P")"
eq "last line" placed "$(tail -n1 "$P")"

# What another client was told is stored is seen at once, however soon somebody looks and whoever looked just before.
"$PY" - "$P" <<'X' || fail "size and bytes right after another client's acknowledgement"
import os, sys
from kwire import Conn, batch
f = os.open(sys.argv[1], os.O_RDONLY)
c = Conn()
size = os.fstat(f).st_size
for i in range(300):
    v = b"value %d" % i
    b = batch([v])
    os.fstat(f)
    assert c.produce("t1", 0, b)[0] == 0
    if i % 2:
        assert os.pread(f, 100, size) == v + b"\n", i
    size += len(v) + 1
    assert os.fstat(f).st_size == size, i
X
