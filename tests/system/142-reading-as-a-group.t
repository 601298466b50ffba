# SPDX-License-Identifier: Apache-2.0
# as/G/pN starts at the committed position; reading on commits whole records, at most up to the place of the read, and close commits nothing more.
requires getfattr
scene
A=$M/t1/as/g/p0
G=$M/t1/.groups/g/p0
at() { cat "$G" 2>/dev/null || echo none; }
seq 1 10 >>"$P"
eq "as/ lists nothing" "" "$(ls -A "$M/t1/as")"
eq "a group's partitions" p0 "$(ls -A "$M/t1/as/g")"
eq "looking commits nothing" none "$(at)"
eq "the first line" 1 "$(head -c 2 "$A")"
eq "reading a line and closing" none "$(at)"
exec 5<"$A"
read -r a <&5
read -r b <&5
eq "two lines" "1 2" "$a $b"
exec 5<&-
eq "the second read acknowledged the first line" 1 "$(at)" # who comes next on this mount sees it at once
fails 'Operation not permitted' bash -c 'echo x >>"$1"' _ "$A"
exec 5<"$A"
fails 'Device or resource busy' cat "$A"
fails 'Device or resource busy' dd if="$M/t1/as/g/follow/p0" iflag=nonblock status=none
fails 'Device or resource busy' dd if="$M/t1/follow/as/g/p0" iflag=nonblock status=none
fails 'Device or resource busy' bash -c 'echo 0 >"$1"' _ "$G"
fails 'Device or resource busy' rm "$G"
fails 'Device or resource busy' rmdir "${G%/p0}"
eq "another group is free" 10 "$(wc -l <"$M/t1/as/other/p0")"
exec 5<&-
eq "cat" "$(seq 2 10)" "$(cat "$A")"
eq "cat commits all" 10 "$(at)"
eq "nothing is left" "" "$(cat "$A")"
eq "lag" 0 "$(getfattr --absolute-names --only-values -n user.klog.lag "$G")"
seq 11 12 >>"$P"
echo 4 >"$G"
eq "moved" "$(seq 5 12)" "$(cat "$A")"

# records with newlines in them, and whole records only
printf 'a\nb' | $K -P -t t1 -D '' -l /dev/stdin 2>/dev/null || "$PY" -c "
from kafka import KafkaProducer
p = KafkaProducer(bootstrap_servers='$B'); p.send('t1', b'a\nb', partition=0).get(20); p.close()"
echo c >>"$P"
echo end >"$G"
echo $(($(end_offset) - 2)) >"$G"
before=$(at)
exec 5<"$A"
read -r x <&5
read -r y <&5
read -r z <&5
exec 5<&-
eq "lines" "a b c" "$x $y $z"
eq "the record of two lines" $((before + 1)) "$(at)"

# a loop commits line by line
echo start >"$G"
n=0
while read -r l; do
    n=$((n + 1))
    [ $n -lt 5 ] || break
done <"$A"
eq "four lines are committed" 4 "$(at)"

# who opens it next waits a moment: what a killed shell had started may still have it open
exec 5<"$A"
head -n 1 "$A" >waited 5<&- &
opening() { [ "$(cat /proc/$!/wchan)" = request_wait_answer ]; }
wait_for 5 "the second open waits" opening
exec 5<&-
wait $!
eq "what the second reads" 5 "$(cat waited)"
exec 5<"$A"
fails 'Device or resource busy' dd if="$A" iflag=nonblock status=none
exec 5<&-
