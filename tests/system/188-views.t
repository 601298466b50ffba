# SPDX-License-Identifier: Apache-2.0
# json/, tsv/ and RANGE/ are files like the plain one: exact size, any position, the same bytes on every mount; a wrong piece of a
# path is not there. Two decoders of others (jq, Python's json) read what they print, and the protocol tells what is behind.
requires jq
klogd_start --override log.segment.bytes=100000
topic t1
topic many 3
mount_start
cat >fill.py <<'X'
import random
from kwire import *
random.seed(7)
c = Conn()
def text(n):
    kind = random.random()
    if kind < 0.5:
        return bytes(random.choice(b"abc xyz,.") for _ in range(n))
    if kind < 0.7:
        return bytes(random.choice(b"\"\\\n\t\r\0\x1f\x7fab") for _ in range(n))
    if kind < 0.9:
        return "".join(random.choice("aä€😀\"\n") for _ in range(n)).encode()
    return random.randbytes(n)
def maybe(n): return None if random.random() < 0.15 else text(random.randint(0, n))
base, offset = 1700000000000, 0
for i in range(60):
    n = random.choice([1, 2, 50])
    records = [(maybe(20), maybe(200), [(text(3).replace(b"\xff", b"") if False else b"h%d" % k, maybe(10)) for k in range(random.randint(0, 2))]) for _ in range(n)]
    b = batch(records, ts=base + i * 1000, squeeze=random.choice([None, 6]))
    assert c.produce("t1", 0, b) == (0, offset)
    offset += n
print(offset)
X
n=$("$PY" fill.py) || fail "produce"
V=$M/t1
for form in json tsv; do
    cat "$V/$form/p0" >"got.$form" || fail "cat $form"
    "$PY" "$TESTLIB/views.py" $form t1 0 "got.$form" || fail "$form"
    eq "size of $form" "$(stat -c %s "got.$form")" "$(stat -c %s "$V/$form/p0")"
    eq "wc -c of $form" "$(stat -c %s "got.$form")" "$(wc -c <"$V/$form/p0")"
    tail -n 3 "$V/$form/p0" >got.tail
    tail -n 3 "got.$form" | cmp - got.tail || fail "tail of $form"
    tac "$V/$form/p0" | tac | cmp - "got.$form" || fail "tac of $form"
    cp "$V/$form/p0" copy && same "cp of $form" copy "got.$form"
done
eq "jq counts them" "$n" "$(jq -c .offset <"$V/json/p0" | wc -l)"
eq "jq reads keys" "$("$PY" -c 'import json
for l in open("got.json"): print(json.dumps(json.loads(l).get("key")))' | md5sum)" "$(jq -a .key <"$V/json/p0" | md5sum)"

# ---- any position, cold and warm ----
mount_stop
mount_start
"$PY" - "$V" <<'X' || fail "positions"
import os, random, sys
random.seed(1)
for form in "json", "tsv", "200:700/json", "tsv/-300":
    path = "%s/%s/p0" % (sys.argv[1], form)
    fd = os.open(path, os.O_RDONLY)
    name = "got." + ("json" if "json" in form else "tsv")
    want = open(name, "rb").read()
    if "200" in form:
        want = b"".join(want.splitlines(True)[200:700])
    if "-300" in form:
        want = b"".join(want.split(b"\n")[i] + b"\n" for i in range(want.count(b"\n") - 300, want.count(b"\n")))
    for i in range(200):
        at, n = random.randint(0, len(want)), random.choice([1, 100, 5000, 200000])
        got = os.pread(fd, n, at)
        assert got == want[at:at + n], (form, at, n, len(got))
    assert os.fstat(fd).st_size == len(want), (form, os.fstat(fd).st_size, len(want))
    os.close(fd)
X

# ---- ranges by offset ----
range_is() { # range_is RANGE FROM TO
    cat "$V/$1/p0" >got || fail "cat $1"
    "$PY" "$TESTLIB/views.py" plain t1 0 got "$2" "$3" || fail "range $1"
    eq "size of $1" "$(stat -c %s got)" "$(stat -c %s "$V/$1/p0")"
    cat "$V/json/$1/p0" >got || fail "cat json/$1"
    "$PY" "$TESTLIB/views.py" json t1 0 got "$2" "$3" || fail "range json/$1"
    eq "size of json/$1" "$(stat -c %s got)" "$(stat -c %s "$V/$1/json/p0")"
}
range_is 100 100 "$n"
range_is 100:200 100 200
range_is :200 0 200
range_is -100 $((n - 100)) "$n"
range_is +10 10 "$n"
range_is +10:-10 10 $((n - 10))
range_is start 0 "$n"
range_is start:+1 0 1
range_is end 0 0
range_is 200:100 0 0
range_is $((n + 5)) 0 0
range_is 5:$((n + 5)) 5 "$n"
# ---- and by time ----
first=$("$PY" -c '
from kwire import Conn
print(min(r[0] for r in Conn().records("t1") if r[1] >= 1700000030000))')
last=$("$PY" -c '
from kwire import Conn
print(max(r[0] for r in Conn().records("t1") if r[1] < 1700000040000) + 1)')
range_is @1700000030 "$first" "$n"
range_is @1700000029001 "$first" "$n"
range_is @1700000030:1700000040 "$first" "$last"
range_is @2023-11-14T22:13:50Z:2023-11-14T22:14:00Z "$first" "$last"
range_is @:1700000040 0 "$last"
range_is @-1m 0 0
range_is @1700000040:1700000030 0 0

# ---- what is not there ----
for wrong in 1x p0/json @ @x json/json tsv/json 1:2:3 json/.config 5/.status @1/5 start/end nosuch; do
    fails "No such file|Not a directory" stat "$V/$wrong/p0"
done
eq "nothing is listed" "p0" "$(ls "$V")"
eq "a view lists its partitions" "p0 p1 p2" "$(ls "$M/many/json/-5" | tr '\n' ' ' | sed 's/ $//')"
eq "a crawler sees one file" "$V/p0" "$(find "$V" -name 'p*')"

# ---- growth ----
exec 4<"$V/$n/p0" 5<"$V/json/$n/p0" 6<"$V/$((n + 1)):$((n + 2))/p0"
eq "empty so far" "" "$(cat <&4)$(cat <&5)$(cat <&6)"
printf 'one\ntwo\nthree\n' | grow
eq "a range goes on with the log" "one two three" "$(cat <&4 | tr '\n' ' ' | sed 's/ $//')"
eq "json does" "one two three" "$(jq -r .value <&5 | tr '\n' ' ' | sed 's/ $//')"
eq "and an end that came later holds" "two" "$(cat <&6)"
eq "size then" "4" "$(stat -Lc %s /proc/self/fd/6)"
exec 4<&- 5<&- 6<&-
eq "the last two" "two three" "$(cat "$V/-2/p0" | tr '\n' ' ' | sed 's/ $//')"
eq "the last two, again" "two three" "$(jq -r .value <"$V/-2/json/p0" | tr '\n' ' ' | sed 's/ $//')"

# ---- a second mount prints the same bytes, under the same number ----
M2=$T/mnt2
mkdir "$M2"
klogfs -f $B "$M2" >>"$T/klogfs2.log" 2>&1 19>&- &
second=$!
wait_for 10 "the second mount" grep -q " $M2 fuse.klogfs " /proc/self/mounts
for p in json tsv 100:200 json/-50 @1700000030:1700000040; do
    same "$p on both mounts" "$V/$p/p0" "$M2/t1/$p/p0"
    eq "number of $p" "$(stat -c %i "$V/$p/p0")" "$(stat -c %i "$M2/t1/$p/p0")"
done
umount "$M2"
wait_gone "$second"
