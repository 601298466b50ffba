# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# What an earlier klog wrote is read by this one: each archive of tests/fixtures/data holds a data directory as a clean stop left
# it and one as kill -9 did, and what they hold: records as kcat -J tells them, positions, topic ids, and the text of each
# partition on the mount. A version that changes a format adds an archive of the one before.
requires kcat jq xz tar
requires_python json
settings=(--override offsets.topic.num.partitions=2 --override offsets.retention.minutes=2000000000
    --override log.retention.ms=-1 --override log.cleaner.enable=false)

# what_is_there EXPECTED: the same lines about the running broker, for the topics and groups that EXPECTED names
what_is_there() {
    local topics
    topics=$(awk '$1 == "topic" { print $2 }' "$1")
    for t in $(sort <<<"$topics"); do
        kcat -b $B -q -L -t "$t" -J | jq -r '.topics[].partitions[].partition' | sort -n | while read -r p; do
            $KC -t "$t" -p "$p" -o beginning -e -J 19>&-
        done
    done | "$PY" -c '
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    print(json.dumps([r["topic"], r["partition"], r["offset"], r["ts"], r.get("headers"), r["key"], r["payload"]], ensure_ascii=False))'
    echo "group GROUP TOPIC PARTITION CURRENT-OFFSET"
    for g in $(awk '$1 == "group" && $2 != "GROUP" { print $2 }' "$1"); do
        klog group describe "$g" --json 2>/dev/null | jq -r '"group \(.group) \(.topic) \(.partition) \(.current_offset)"'
    done
    klog topic list --json >topics.json
    for t in $topics; do jq -r --arg t "$t" 'select(.topic == $t) | "topic \($t) \(.topic_id)"' topics.json; done
    awk '$1 == "text" { print $2 }' "$1" | while read -r f; do
        echo "text $f $(stat -c %s "$M/$f") $(md5sum <"$M/$f" | cut -d' ' -f1)"
    done
}
has_positions() { [ "$(klog group list --json | jq -r .group | sort)" = "$(awk '$1 == "group" && $2 != "GROUP" { print $2 }' "$1" | sort -u)" ]; }
shows() { # WHAT EXPECTED
    wait_for 10 "groups are loaded" has_positions "$2"
    mount_start
    what_is_there "$2" >found.txt
    cmp found.txt "$2" || fail "$1: $(diff "$2" found.txt | head -n 5)"
    mount_stop
}

n=0
for archive in "$SRCDIR"/tests/fixtures/data/*.tar.xz; do
    n=$((n + 1))
    rm -rf old && mkdir old && tar -xJf "$archive" -C old || fail "cannot unpack $archive"
    for how in stopped running; do
        D=$PWD/old/$how
        what="${archive##*/}, $how"
        status 0 klog verify --no-progress "$D"
        has "$what: what klog verify says" ' 0 errors' "$OUT"
        : >"$KLOGD_LOG"
        klogd_start "${settings[@]}"
        shows "$what" old/expected.txt
        [ $how = running ] || eq "$what: warnings" "" "$(grep -E ' (WARN|ERROR) ' "$KLOGD_LOG")"
        klogd_stop
        klogd_restart
        shows "$what, after a clean stop" old/expected.txt
        klogd_kill
        klogd_restart
        shows "$what, after kill -9" old/expected.txt
        klogd_stop
        status 0 klog verify --no-progress "$D"
        has "$what: what klog verify says of it now" ' 0 errors, 0 warnings' "$OUT"
    done
done
[ $n -gt 0 ] || fail "no archive"
