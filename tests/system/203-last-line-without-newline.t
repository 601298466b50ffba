# SPDX-License-Identifier: Apache-2.0
# A last line without newline is a record at the last close, and not glued to the next writer's.
# https://github.com/edenhill/kcat/issues/296
scene
printf 'no-nl' >>"$P"
echo next >>"$P"
eq "records" "0 5 no-nl
1 4 next" "$(consume t1 -f '%o %S %s\n')"
printf 'no-nl\nnext\n' | same "file" - "$P"
printf 'one\ntwo\nthree' >>"$P"
wait_for 5 "the tail" eval '[ "$(end_offset)" = 5 ]'
eq "file" "no-nl next one two three" "$(tr '\n' ' ' <"$P" | sed 's/ $//')"
