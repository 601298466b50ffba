# SPDX-License-Identifier: Apache-2.0
# .config shows every setting and takes lines that change them; a bad one is refused at write. .status tells leader and ends.
scene
has "retention" '^retention.ms=604800000$' "$(cat "$M/t1/.config")"
echo retention.ms=12345 >>"$M/t1/.config" || fail "a setting"
wait_for 5 "the new value" grep -qx retention.ms=12345 "$M/t1/.config"
fails 'Invalid argument' bash -c 'echo retention.ms=soon >>"$1"' _ "$M/t1/.config"
fails 'Invalid argument' bash -c 'echo no.such.key=1 >>"$1"' _ "$M/t1/.config"
has "retention" '^retention.ms=12345$' "$(cat "$M/t1/.config")"
eq "size of .config" "$(cat "$M/t1/.config" | wc -c)" "$(stat -c %s "$M/t1/.config")"
seq 1 10 >>"$P"
wait_for 5 ".status has the end offset" grep -qE '^0 .*\b10\b' "$M/t1/.status"
cat "$M/.status" >status || fail "cluster status"
has "cluster status" '127.0.0.1:9092' "$(cat status)"
fails . bash -c 'echo x >>"$1"' _ "$M/t1/.status"
