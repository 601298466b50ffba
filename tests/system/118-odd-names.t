# SPDX-License-Identifier: Apache-2.0
# Illegal topic names are EINVAL to mkdir, unknown ones ENOENT to a look-up; looking creates nothing.
# https://github.com/fusepy/fusepy/issues/133 https://github.com/LinearTapeFileSystem/ltfs/issues/106
# https://github.com/apache/pulsar/issues/6885
scene
before=$(ls "$M")
for n in 'a b' $'x\ny' $'\xff\xfe' '日本' 'a:b' 'a,b' '-é' "$(printf 'n%.0s' $(seq 250))"; do
    "$PY" - "$M/$n" <<'X' || fail "name '$n'"
import errno, os, sys
p = os.fsencode(sys.argv[1])
try:
    os.mkdir(p)
except OSError as e:
    assert e.errno in ((errno.EINVAL, errno.ENAMETOOLONG) if len(p) > 250 else (errno.EINVAL,)), e
else:
    raise AssertionError("mkdir worked")
try:
    os.stat(p)
except OSError as e:
    assert e.errno in (errno.ENOENT, errno.ENAMETOOLONG), e
X
done
no='No such file or directory'
fails "$no" cat "$M/nosuch/p0"
fails "$no" cat "$M/t1/p1"
fails "$no" cat "$M/t1/p99"
fails "$no" cat "$M/t1/p00"
fails "$no" cat "$M/t1/p-1"
fails "$no" cat "$M/t1/p+0"
fails "$no" cat "$M/t1/p4294967296"
fails "$no" cat "$M/t1/P0"
fails "$no" cat "$M/t1/nosuchview/p0"
fails "$no" ls "$M/.nosuch"
fails 'File exists' mkdir "$M/t1"
eq "topics listed" "$before" "$(ls "$M")"
eq "topics of the broker" t1 "$("$PY" "$TESTLIB/topic.py" list)"

# The longest legal name, and every legal character.
long=$(printf 'n%.0s' $(seq 249))
for n in "$long" 'Az09._-x' '-dash' '...'; do
    mkdir -- "$M/$n" || fail "legal name '$n'"
    echo v >>"$M/$n/p0" || fail "append to '$n'"
    eq "content of '$n'" v "$(cat "$M/$n/p0")"
done
