# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Every example line of docs/filesystem.md section 1 works as it stands there, in bash, dash and busybox's shell, and does what it says.
requires kcat jq dash
klogd_start
for t in a b; do topic $t; done
topic app 2
topic users 2 cleanup.policy=compact
mount_start
sed -n '/^Examples that must work as written/,/^$/p' "$SRCDIR/docs/filesystem.md" | tr '\n' ' ' | grep -o '`[^`]*`' | tr -d '`' >examples
eq "examples" 11 "$(wc -l <examples)"
empty() { [ "$("$PY" "$TESTLIB/group.py" state billing)" = Empty ]; }
run_line() { # run_line SHELL LINE: in the mount; its output and status are kept
    (cd "$M" && timeout "${LIMIT:-20}" "${SHELLS[@]}" -c "work() { echo \"worked on \$1\"; }; $1") >out 2>err
}
example() { # the only line that begins so
    eq "lines that begin with $1" 1 "$(grep -cF -- "$1" examples)" >&2
    grep -F -- "$1" examples
}
shells=(bash dash)
command -v busybox >/dev/null && shells+=("busybox sh")
printf 'k9:ERROR one\nk9:fine\n' | produce -t app -p 0 -K:
printf 'k8:ERROR two\n' | produce -t app -p 1 -K:
for shell in "${shells[@]}"; do
    read -r -a SHELLS <<<"$shell"

    run_line "$(example 'grep -c ERROR')" || fail "$shell: grep: $(cat err)"
    eq "$shell: ERRORs of the last hour" "app/@-1h/p0:1 app/@-1h/p1:1" "$(tr '\n' ' ' <out | sed 's/ $//')"

    run_line "$(example 'jq -r .key')" || fail "$shell: jq: $(cat err)"
    eq "$shell: keys" "k9" "$(sort -u out | grep k9)"

    run_line "$(example 'cat app/-100')" || fail "$shell: cat -100: $(cat err)"
    cat "$M/app/p0" | tail -n 100 | cmp - out || fail "$shell: the last 100"

    LIMIT=2 run_line "$(example 'tail -f')"
    eq "$shell: tail -f goes on until it is stopped" 124 $?
    tail -n 10 "$M/app/p0" | cmp - out || fail "$shell: tail -f"

    LIMIT=4 run_line "$(example 'while read -r l')"
    eq "$shell: the loop goes on until it is stopped" 124 $?
    has "$shell: the loop works on lines" "worked on ERROR one" "$(cat out)"
    wait_for 15 "the group has no members" empty

    before=$(cat "$M"/app/p* | wc -l)
    run_line "$(example "printf 'k1\\tv1")" || fail "$shell: printf tsv: $(cat err)"
    eq "$shell: one record" $((before + 1)) "$(cat "$M"/app/p* | wc -l)"
    eq "$shell: it" 'k1	v1' "$(cat "$M"/app/tsv/p* | grep '^k1' | sort -u)"

    run_line "$(example "printf 'k1\\t\\\\N")" || fail "$shell: tombstone: $(cat err)"
    eq "$shell: a tombstone" '"k1" null' "$(cat "$M"/users/json/p* | tail -n 1 | jq -c '.key, .value' | tr '\n' ' ' | sed 's/ $//')"

    run_line "$(example 'echo 0 >')" || fail "$shell: echo 0: $(cat err)"
    run_line "$(example 'cat app/.groups')" || fail "$shell: cat position: $(cat err)"
    eq "$shell: the position" 0 "$(cat out)"
    run_line "$(example 'echo @-1h')" || fail "$shell: echo @-1h: $(cat err)"
    eq "$shell: the position an hour ago" 0 "$(cat "$M/app/.groups/billing/p0")"

    echo "$shell" >>"$M/a/p0"
    before=$(cat "$M/b/p0" | wc -l)
    run_line "$(example 'cp a/json/p0')" || fail "$shell: cp: $(cat err)"
    eq "$shell: all of a is behind b" $((before + $(wc -l <"$M/a/p0"))) "$(wc -l <"$M/b/p0")"
    tail -n "$(wc -l <"$M/a/p0")" "$M/b/p0" | cmp - "$M/a/p0" || fail "$shell: cp"
done
