# SPDX-License-Identifier: Apache-2.0
# One line written in pieces by several processes through one descriptor is one record: it ends at the newline or at the last
# close, never at a FLUSH (which every child that inherits the descriptor causes).
# https://github.com/unxed/f4/pull/782
scene
mkfifo gate
exec 3>>"$P"
/usr/bin/printf a >&3
/usr/bin/printf b >&3
echo >&3
(
    read -r _ <gate
    echo late >&3
) &
late=$!
exec 3>&-
echo go >gate
wait $late
eq "records" "0 2 ab
1 4 late" "$(consume t1 -f '%o %S %s\n')"

# A tail without newline that many children inherit becomes one record, at the last close.
exec 3>>"$P"
for i in 1 2 3 4 5; do /usr/bin/printf "$i" >&3; done
eq "nothing yet" 2 "$(end_offset)"
exec 3>&-
wait_for 5 "the tail is committed" eval '[ "$(end_offset)" = 3 ]'
eq "the tail" "2 5 12345" "$(consume t1 -o 2 -f '%o %S %s\n')"
