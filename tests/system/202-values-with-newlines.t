# SPDX-License-Identifier: Apache-2.0
# A value with newlines is one record; the mount shows its bytes and one newline after them.
# https://github.com/edenhill/kcat/issues/44 https://github.com/edenhill/kcat/issues/142
scene
printf 'l1\nl2\n' >f
produce -t t1 -p 0 f
eq "length" 6 "$(consume t1 -f '%S\n')"
printf 'l1\nl2\n\n' | same "file" - "$P"
eq "size" 7 "$(stat -c %s "$P")"
