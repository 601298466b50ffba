# SPDX-License-Identifier: Apache-2.0
# While a group has members, its positions are theirs: reading is fine, every change says EBUSY; afterwards it is fine again.
requires kcat
requires_python kafka
scene
seq 1 100 >>"$P"
G=$M/t1/.groups
mkdir "$G/busy"
timeout 60 kcat -b $B -q -u -G busy -X auto.offset.reset=earliest t1 >drunk 2>kcat.err &
KCAT=$!
cleanup_fn "kill $KCAT 2>/dev/null"
wait_lines drunk 100
member_shows() { tr -s ' ' <"$G/busy/.status" | grep -qE '^0 [0-9]+ 100 [0-9]+ [^ -]'; }
wait_for 10 "the member in .status" member_shows
fails 'Device or resource busy' bash -c 'echo 0 >"$1"' _ "$G/busy/p0"
fails 'Device or resource busy' rm "$G/busy/p0"
fails 'Device or resource busy' rmdir "$G/busy"
cat "$G/busy/p0" >/dev/null || fail "reading a position of a group with members"
kill -TERM $KCAT
wait $KCAT
eq "the position that kcat left" 100 "$(cat "$G/busy/p0")"
echo 7 >"$G/busy/p0" || fail "moving it when the member has gone"
eq "moved" 7 "$(cat "$G/busy/p0")"
rmdir "$G/busy" || fail "rmdir"
