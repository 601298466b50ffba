# SPDX-License-Identifier: Apache-2.0
# NUL, CR and bytes that are not UTF-8 pass both ways.
# https://github.com/edenhill/kcat/issues/142 https://github.com/edenhill/kcat/pull/133
scene
head -c 300000 /dev/urandom | tr '\n' x >r
(cat r; echo) >>"$P"
consume t1 -f %s | same "through kcat" - r
head -c 300000 "$P" | same "through the mount" - r
printf 'x\0y\n' | grow
eq "NUL" "x \\0 y \\n" "$(tail -n1 "$P" | od -An -c | tr -s ' ' | sed 's/^ //')"
printf 'dos\r\n' >>"$P"
eq "CR" 4 "$(consume t1 -o -1 -f '%S')"
