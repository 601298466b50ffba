# SPDX-License-Identifier: Apache-2.0
# What json/ and tsv/ print can be appended again and is the same record; a line that is not of the form is EINVAL, and what stands
# before it is committed and counted. `any` puts a key where every other client puts it. Case B07 of public reports: null, empty
# and absent keys and values survive.
# https://github.com/ag2ai/faststream/pull/2932 https://github.com/twmb/kcl/issues/11
requires jq kcat
klogd_start
for t in t1 a b c d; do topic $t; done
topic many 5
topic users 2 cleanup.policy=compact
mount_start
"$PY" - <<'X' || fail "produce"
from kwire import *
c = Conn()
rows = [(b"k", b"v"), (None, b"nokey"), (b"", b"emptykey"), (b"k2", b""), (b"k3", None), (None, None),
        (b"a\tb\\\n\"", b"\r\n\t\\N"), (b"\xff\x00", b"\x80\x81"), ("ключ".encode(), "値".encode(), [(b"h", b"1"), (b"h", None), (b"", b"\xff")]),
        (b"\\N", b"\\N"), (b"k", b"x" * 300000)]
for i, r in enumerate(rows):
    assert c.produce("a", 0, batch([r], ts=1700000000000 + i))[0] == 0
X
cat >same.py <<'X'
import sys
from kwire import Conn
form, x, y = sys.argv[1:]
a, b = Conn().records(x), Conn().records(y)
keep = (lambda r: r[1:]) if form == "json" else (lambda r: r[2:4])
assert [keep(r) for r in a] == [keep(r) for r in b], (len(a), len(b))
X
cat "$M/a/json/p0" >>"$M/b/json/p0" || fail "cat json"
"$PY" same.py json a b || fail "json round trip"
cat "$M/a/tsv/p0" >>"$M/c/tsv/p0" || fail "cat tsv"
"$PY" same.py tsv a c || fail "tsv round trip"
same "a record prints the same wherever it lies" <(cat "$M/a/json/p0") <(cat "$M/b/json/p0")
cp "$M/a/json/p0" /dev/stdout >>"$M/d/json/any" || fail "cp json"
"$PY" same.py json a d || fail "cp round trip"
# as kcat sees them: lengths of key and value
eq "what kcat has" "1/1 -1/5 0/8 2/0 2/-1 -1/-1" "$($K -C -t c -p 0 -o beginning -c 6 -f '%K/%S ' | sed 's/ $//')"

# ---- lines by hand ----
printf 'k1\tv1\n' >>"$M/t1/tsv/p0" || fail "tsv"
printf '{"value":"v2","key":"k2","headers":[{"key":"h","value":"1"}],"timestamp":1700000000123,"offset":99}\n' >>"$M/t1/json/p0" || fail "json"
printf 'k1\t\\N\n' >>"$M/t1/tsv/p0" || fail "tombstone"
printf '{"value":' >>"$M/t1/json/p0"
printf '{"value":"no newline"}' >>"$M/t1/json/p0" || fail "the last line"
wait_for 5 "the last line comes" test "$(end_offset)" = 4
eq "records" "k1|v1 k2|v2 k1|null null|no newline" "$(jq -r '"\(.key)|\(.value)"' <"$M/t1/json/p0" | tr '\n' ' ' | sed 's/ $//')"
eq "time and headers" '1700000000123 [{"key":"h","value":"1"}]' "$(jq -r '"\(.timestamp) \(.headers)"' <"$M/t1/json/1:2/p0")"
grep -q "the last line of a closed file, which had no newline, was not appended: a string is missing" "$KLOGFS_LOG" || fail "log of the bad last line"

# ---- a line that is no record ----
"$PY" - "$M/t1" <<'X' || fail "malformed lines"
import errno, os, sys
from kwire import Conn
def end(): return Conn().list_offset("t1", 0, -1)[2]
def refused(f, *a):
    try:
        f(*a)
    except OSError as e:
        assert e.errno == errno.EINVAL, e
    else:
        raise AssertionError("not refused")
for form, good, bad in (("json", b'{"value":"x"}\n', b'{"vlaue":"x"}\n'), ("tsv", b"a\tb\n", b"ab\n")):
    fd = os.open("%s/%s/p0" % (sys.argv[1], form), os.O_WRONLY | os.O_APPEND)
    n = end()
    refused(os.write, fd, bad)
    refused(os.write, fd, bad + good)
    assert end() == n
    assert os.write(fd, good + good + bad + good) == 2 * len(good)
    assert end() == n + 2
    refused(os.write, fd, bad + good)
    assert os.write(fd, good) == len(good)
    # in pieces: the line is judged when its end comes, and the piece stays
    assert os.write(fd, bad[:2]) == 2
    refused(os.write, fd, bad[2:])
    refused(os.write, fd, bad[2:])
    os.close(fd)
    assert end() == n + 3, (form, end(), n)
X
fails "Invalid argument" bash -c "echo not json >>$M/t1/json/p0"
fails "Operation not permitted" bash -c "echo x >$M/t1/json/p0"

# ---- any ----
seq 200 | sed 's/.*/key&\tvalue&/' >rows
cat rows >>"$M/many/tsv/any" || fail "tsv any"
tr '\t' : <rows | $K -P -K: -t many -X topic.partitioner=murmur2 || fail "kcat"
for p in 0 1 2 3 4; do
    cut -f1 "$M/many/tsv/p$p" | sort | uniq -c | awk '{ print $1 }' | sort -u >counts
    eq "each key of p$p is there twice, by klogfs and by librdkafka" 2 "$(cat counts)"
done
eq "all of them" 400 "$(cat "$M"/many/tsv/p* | wc -l)"
jq -c 'select(.key == "key7")' <<<"$(cat "$M"/many/json/p*)" | head -n1 >>"$M/many/json/any" || fail "json any"
eq "a key has one place" 1 "$(grep -l '"key":"key7"' "$M"/many/json/p* | wc -l)"
printf 'k1\t\\N\n' >>"$M/users/tsv/any" || fail "a tombstone by any"
eq "it is there" 'k1	\N' "$(cat "$M"/users/tsv/p*)"
fails "Invalid argument" bash -c "printf '\\\\N\tx\n' >>$M/users/tsv/any"
"$PY" - "$M/many/tsv/any" <<'X' || fail "a malformed line among keys"
import errno, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
good = b"".join(b"n%d\tv\n" % i for i in range(100))
assert os.write(fd, good + b"bad\n" + good) == len(good)
X
eq "what stood before it" 501 "$(cat "$M"/many/tsv/p* | wc -l)"
status 0 sh -c "echo plain >>$M/many/any"

# ---- as/ prints in the view's form ----
eq "as/G/json" "k1 k2" "$(head -n2 "$M/t1/as/g/json/p0" | jq -r .key | tr '\n' ' ' | sed 's/ $//')"
eq "as/G/tsv" "k1	v1" "$(head -n1 "$M/t1/tsv/as/g2/p0")"

# ---- a RANGE takes what the plain file takes, wherever it begins and ends: what is appended stands at the log's end ----
topic part 1
seq 1 10 >>"$M/part/p0"
echo eleven >>"$M/part/:5/p0" || fail "a range that has ended"
printf 'k\ttwelve\n' >>"$M/part/tsv/-2/p0" || fail "a range of tsv"
echo thirteen >>"$M/part/@-1h/p0" || fail "a range of times"
echo '{"key":"k","value":"fourteen"}' >>"$M/part/100:200/json/any" || fail "any below a range that is not there yet"
eq "all of them" "$(seq 1 10 | xargs) eleven twelve thirteen fourteen" "$(xargs <"$M/part/p0")"
eq "the range stays what it is" "1 2 3 4 5" "$(xargs <"$M/part/:5/p0")"
fails "Operation not permitted" bash -c "echo x >$M/part/:5/p0"
