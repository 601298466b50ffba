# SPDX-License-Identifier: Apache-2.0
# Shared maps either work and show the file, or fail with ENODEV as docs say; private maps and tools that map work.
# https://github.com/jacobsa/fuse/issues/82 https://github.com/iowarp/clio-core/pull/601
# https://github.com/libfuse/libfuse/pull/870
scene
seq 1 20000 >>"$P"
"$PY" - "$P" "$SRCDIR/README.md" <<'X' || fail "mmap"
import errno, mmap, os, sys
f = open(sys.argv[1], 'rb')
try:
    m = mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
    assert m[:4] == b'1\n2\n' and len(m) == os.fstat(f.fileno()).st_size
except OSError as e:
    assert e.errno == errno.ENODEV, e
    assert 'ENODEV' in open(sys.argv[2]).read(), "the README does not say that shared maps fail"
m = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
assert m[:4] == b'1\n2\n' and len(m) == 108894 and m[-6:] == b'20000\n'
X
command -v git >/dev/null && eq "git grep" p0:38 "$(cd "$M/t1" && git grep --no-index -c 777 p0)"
eq "sort -n" 20000 "$(sort -n "$P" | tail -n1)"
