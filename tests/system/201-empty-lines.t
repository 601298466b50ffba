# SPDX-License-Identifier: Apache-2.0
# An empty line is a record of length 0: not dropped, not null.
# https://github.com/edenhill/kcat/issues/52 https://github.com/redpanda-data/redpanda/pull/23264
scene
printf 'a\n\nb\n' >>"$P"
eq "offsets and lengths" "0 1
1 0
2 1" "$(consume t1 -f '%o %S\n')"
printf 'a\n\nb\n' | same "file" - "$P"
printf '\n\n\n' >>"$P"
eq "only empty lines" 6 "$(end_offset)"
eq "size" 8 "$(stat -c %s "$P")"
: >>"$P"
printf '' >>"$P"
eq "opens without a write" 6 "$(end_offset)"
