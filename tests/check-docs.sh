#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Manuals say what the programs do: klogd.properties(5) is what the tables print, each option of a --help is in its manual page, every
# path that a document names in the tree exists, and README's links work.
set -u
src=$(cd "${srcdir:-.}" && pwd) || exit 99
b=${BUILDDIR:-$PWD}
bad=0
complain() {
    echo "$1"
    bad=1
}

if [ -x "$b/docs/print-keys" ]; then
    "$b/docs/print-keys" | diff "$src/docs/man/klogd.properties.5" - || complain "klogd.properties(5) is not what the tables say: make man"
fi
# What board and alerts ask for is there; a histogram has its buckets.
jq -e . "$src/packaging/grafana/klog.json" >/dev/null 2>&1 || ! command -v jq >/dev/null || complain "packaging/grafana/klog.json is not JSON"
for name in $(grep -ohE '\b(klog|klogfs|kafka)_[a-z0-9_]+' "$src/packaging/grafana/klog.json" "$src/packaging/prometheus/klog.rules.yml" | sed -E 's/_(bucket|count)$//' | sort -u); do
    grep -q "^| \`$name\` " "$src/docs/WATCHING.md" || complain "packaging/grafana or packaging/prometheus ask for $name, which nobody prints"
done
if [ -x "$b/docs/print-metrics" ]; then
    "$b/docs/print-metrics" klogd | diff <(sed -n '/^<!-- metrics/,/^<!-- end/p' "$src/docs/WATCHING.md" | grep '^| `') - ||
        complain "docs/WATCHING.md does not have the metrics that klogd prints: make watching"
    "$b/docs/print-metrics" klogfs | diff <(sed -n '/^<!-- klogfs metrics/,/^<!-- end/p' "$src/docs/WATCHING.md" | grep '^| `') - ||
        complain "docs/WATCHING.md does not have the metrics that klogfs prints: make watching"
fi
# options PROGRAM PAGE
options() {
    local o
    [ -x "$b/$1" ] && [ -f "$src/docs/man/$2" ] || return 0
    for o in $("$b/$1" --help 2>&1 | grep -oE '(^|[ ,])--[a-z][a-z-]+' | tr -d ' ,' | sort -u); do
        sed 's/\\-/-/g' "$src/docs/man/$2" | grep -qF -- "$o" || complain "$2 does not tell of $o"
    done
}
options daemon/klogd klogd.8
options fuse/klogfs klogfs.8

for doc in README.md docs/FAQ.md docs/ARCHITECTURE.md docs/HACKING.md docs/DISK-FORMAT.md docs/CLUSTER.md docs/WATCHING.md; do
    [ -f "$src/$doc" ] || { complain "$doc is missing"; continue; }
    for path in $(grep -oP '(?<![/\w])(lib|daemon|fuse|src|tests|docs|bench)/[A-Za-z0-9_./-]*[A-Za-z0-9_]' "$src/$doc" | sort -u); do
        case $path in *N* | *X* | *ROOM* | */x.c | */cmd_x.c | docs/print-keys | docs/print-metrics | src/klog | daemon/klogd | fuse/klogfs) continue ;; esac
        [ -e "$src/$path" ] || [ -e "$src/$path.c" ] || [ -e "$b/$path" ] || complain "$doc names $path, which is not there"
    done
    for link in $(grep -oE '\]\([^)#]+' "$src/$doc" | cut -c3- | grep -v ://); do
        [ -e "$src/$(dirname "$doc")/$link" ] || complain "$doc links to $link, which is not there"
    done
done
exit $bad
