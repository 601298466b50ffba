#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What docs/HACKING.md asks of every file and a machine can see: licence line, banned calls, unfinished
# work. Prints file:line and the reason.
set -u
cd "${srcdir:-.}" || exit 99
bad=0
complain() {
    echo "$1"
    bad=1
}
sources() { find lib daemon fuse src tests bench -name '*.[ch]' -o -name '*.def' -o -name '*.t' -o -name '*.py' -o -name '*.sh' -o -name '*.mjs'; }

for f in $(sources); do
    head -n3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || complain "$f:1: no licence line in the first three"
done
# What a file is for stands at its head, so that nobody has to read it to know whether to read it.
for f in $(find lib daemon fuse src -name '*.c'); do
    sed -n '/\/\* SPDX-[^*]*\*\//d; /^$/d; /^\/\*/q; q1' "$f" || complain "$f:2: no head: what it owns, its thread, its rules"
done
while IFS=: read -r file line text; do
    complain "$file:$line: banned: $text"
done < <(find lib daemon fuse src -name '*.[ch]' -exec grep -nE '\b(strcpy|strcat|sprintf|vsprintf|strncpy|strtok|gets|usleep|alloca|system)[[:space:]]*\(' /dev/null {} + |
    grep -vE ':[[:space:]]*(/?\*|//)')
while IFS=: read -r file line text; do
    complain "$file:$line: unfinished: $text"
done < <(find lib daemon fuse src -name '*.[ch]' -exec grep -nE '\b(TODO|FIXME|XXX)\b' /dev/null {} +)
while IFS=: read -r file line _; do
    complain "$file:$line: config.h is forced by the build"
done < <(find lib daemon fuse src tests bench -name '*.[ch]' -exec grep -nE '#[[:space:]]*include[[:space:]]+[<"]config\.h' /dev/null {} +)
while IFS=: read -r file line _; do
    complain "$file:$line: a test that looks at the clock fails on a slow machine; count calls or bytes, or wait for the condition"
done < <(grep -nE 'between "(milli)?seconds' tests/system/*.t tests/crash/*.t /dev/null)
# What make check-mutants plants must still find its place.
/usr/bin/python3 tests/mutants/run.py --texts . || bad=1
exit $bad
