# SPDX-License-Identifier: Apache-2.0
# A log loses its tail (a power cut under flush.policy=async; an older copy of the data directory): the mount shows what kcat shows, also
# to those who had read what is gone; followers go on at the new end, and klogfs says once what was lost.
requires kcat
klogd_start --override flush.policy=async
topic t1
mount_start
one() { for i in $(seq "$2" "$3"); do echo "$1$i"; done | produce -t t1 -p 0 -X linger.ms=0 -X batch.num.messages=1; }
one old 100 119
eq "lines" 20 "$(wc -l <"$P")"
tail -n +1 -f "$P" >tailed 2>tail.err & TAIL=$!
cat "$M/t1/follow/p0" >followed & FOLLOW=$!
wait_lines tailed 20
wait_lines followed 20
cat >held.py <<'X'
import errno, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
end = os.open(sys.argv[1], os.O_RDONLY)
assert os.read(fd, 14) == b"old100\nold101\n"
assert len(os.read(end, 1000)) == 140 and os.read(end, 1000) == b""
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
new = b"".join(b"NEW%d\n" % i for i in range(200, 215))
assert os.fstat(fd).st_size == 140 + len(new), os.fstat(fd).st_size
assert os.read(end, 1000) == new, "who was at the end goes on at the new one"
assert os.pread(end, 1000, 140) == new
assert os.pread(fd, 14, 49) == b"old107\nold108\n", os.pread(fd, 14, 49)
for at in (70, 100, 139):
    try:
        raise SystemExit("%d: %r" % (at, os.pread(fd, 10, at)))
    except OSError as e:
        assert e.errno == errno.EIO, e
rest = b""
while b := os.read(fd, 1000):
    rest += b
assert rest == b"".join(b"old%d\n" % i for i in range(102, 109)) + new, rest
X
"$PY" held.py "$P" >held.out 2>&1 & HELD=$!
wait_for 10 "files are held" test -e ready
klogd_kill
log=$(ls "$D"/t1-0/*.log)
truncate -s $(($(stat -c %s "$log") * 9 / 20)) "$log"
rm -f "$D"/t1-0/partition.flushed # it tells of a disk that kept what it said
klogd_restart
eq "records that are left" 9 "$(consume | wc -l)"
one NEW 200 214
consume >want
cat "$P" >got
same "cat" want got
eq "size" "$(stat -c %s want)" "$(stat -c %s "$P")"
tac "$P" | tac >got
same "tac" want got
touch go
wait $HELD || fail "files held: $(cat held.out)"
wait_lines tailed 35
wait_lines followed 35
(seq -f 'old%g' 100 119; seq -f 'NEW%g' 200 214) >both
same "tail -f" both tailed
same "follow/" both followed
eq "complaints of tail" "" "$(cat tail.err)"
eq "told once" 1 "$(grep -c 't1/p0: the log has lost its tail: records 9 to 19' "$KLOGFS_LOG")"
kill $TAIL $FOLLOW
wait $TAIL $FOLLOW

# An older copy of the data directory: also its epochs are older.
klogd_stop
cp -a "$D" "$D.old"
klogd_restart
one more 300 309
eq "lines before" 34 "$(wc -l <"$P")"
exec 8<"$P"
cat <&8 >/dev/null
klogd_stop
rm -rf "$D"
mv "$D.old" "$D"
klogd_restart 8<&-
one then 400 404
consume >want
cat "$P" >got
same "cat after an older copy" want got
eq "size after an older copy" "$(stat -c %s want)" "$(stat -c %s "$P")"
eq "who was at the end" "$(seq -f 'then%g' 400 404)" "$(cat <&8)"
exec 8<&-
