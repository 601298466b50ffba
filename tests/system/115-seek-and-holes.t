# SPDX-License-Identifier: Apache-2.0
# Seeking works as on any file without holes; grep sees text, cp --sparse ends.
# https://github.com/hanwen/go-fuse/issues/417 https://github.com/hanwen/go-fuse/issues/487
# https://github.com/mar-file-system/marfs/issues/122
scene
seq 1 1000 >>"$P"
eq "grep -c" 271 "$(grep -c 7 "$P")"
status 0 timeout 10 cp --sparse=always "$P" copy
same "copy" copy "$P"
"$PY" - "$P" <<'X' || fail "seeks"
import errno, os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
n = os.fstat(f).st_size
assert n == 3893
assert os.lseek(f, 0, os.SEEK_END) == n
assert os.lseek(f, 5, os.SEEK_DATA) == 5
assert os.lseek(f, 5, os.SEEK_HOLE) == n
for w in os.SEEK_DATA, os.SEEK_HOLE:
    try:
        os.lseek(f, n, w)
    except OSError as e:
        assert e.errno == errno.ENXIO, e
    else:
        raise AssertionError("no ENXIO")
assert os.pread(f, 10, n) == b''
assert os.pread(f, 10, n + 1000000) == b''
assert os.pread(f, 10, n - 3) == b'00\n'
X
