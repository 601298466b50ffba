# SPDX-License-Identifier: Apache-2.0
# .config shows every setting and takes lines that change them; a bad one is refused at write. .status tells leader and ends.
scene
has "retention" '^retention.ms=604800000$' "$(cat "$M/t1/.config")"
echo retention.ms=12345 >>"$M/t1/.config" || fail "a setting"
has "the new value, at once" '^retention.ms=12345$' "$(cat "$M/t1/.config")"
fails 'Invalid argument' bash -c 'echo retention.ms=soon >>"$1"' _ "$M/t1/.config"
fails 'Invalid argument' bash -c 'echo no.such.key=1 >>"$1"' _ "$M/t1/.config"
has "retention" '^retention.ms=12345$' "$(cat "$M/t1/.config")"
eq "size of .config" "$(cat "$M/t1/.config" | wc -c)" "$(stat -c %s "$M/t1/.config")"
for i in {1..20}; do # what is opened tells of everything before
    echo "$i" >>"$P"
    has ".status after $i records" "^0 +1 +1 +1 +0 +$i +[0-9]+\$" "$(cat "$M/t1/.status")"
done
for i in 2 3 4; do
    status 0 klog topic alter t1 --partitions $i
    eq "lines of .status with $i partitions" $((i + 1)) "$(wc -l <"$M/t1/.status")"
done
cat "$M/.status" >status || fail "cluster status"
has "cluster status" '127.0.0.1:9092' "$(cat status)"
fails . bash -c 'echo x >>"$1"' _ "$M/t1/.status"
