# SPDX-License-Identifier: Apache-2.0
# Appends to TOPIC/any are shared out among the partitions; the lines of one write stay together. Any is not listed and not read.
scene
topic spread 3
A=$M/spread/any
for i in 1 2 3 4 5 6; do echo "line $i" >>"$A" || fail "append $i"; done
for p in 0 1 2; do eq "lines in p$p" 2 "$(wc -l <"$M/spread/p$p")"; done
cat "$M"/spread/p? | sort | cmp - <(seq -f 'line %g' 1 6) || fail "lines"
printf 'a\nb\nc\n' >>"$A"
eq "one write in one place" 1 "$(grep -c '^b$' "$M"/spread/p? | grep -c ':1$')"
eq "its lines together" "a b c" "$(grep -h '^[abc]$' "$M"/spread/p? | tr '\n' ' ' | sed 's/ $//')"
has_not "any is not listed" any "$(ls -A "$M/spread")"
fails 'Permission denied' cat "$A"
# it has no content that could be written over, so every way to open it appends
dd of="$A" if=/etc/hostname status=none || fail "dd"
eq "what dd wrote" 1 "$(cat "$M"/spread/p? | grep -cxf /etc/hostname)"
fails 'No such file or directory' cat "$M/any"
