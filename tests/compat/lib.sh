# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the client tests: five records that differ in what clients confuse, and 500 more that make compression worth
# it. Every client prints what it read in one normal form, a record a line: OFFSET KEY VALUE HEADERS, null as ~, text as <text>,
# headers as name=value joined by commas or -.
CODECS="none gzip snappy lz4 zstd"
expected() {
    echo '0 <k1> <v1> h=1,h=2'
    echo '1 ~ <v2> -'
    echo '2 <> <v3> -'
    echo '3 <k4> <> -'
    echo '4 <k5> ~ -'
    seq -f '%.0f' 5 504 | awk '{ printf "%d <b> <bulk %d of five hundred, alike enough to shrink> -\n", $1, $1 }'
}
# The same as the mount shows it: values only.
expected_lines() { expected | cut -d' ' -f3- | sed 's/ [^ ]*$//; s/^~$//; s/^<//; s/>$//'; }

kcat_produce() { # TOPIC CODEC
    local o=(-P -t "$1" -p 0 -z "$2" -X linger.ms=50)
    [ "$2" != none ] || o=(-P -t "$1" -p 0 -X linger.ms=50)
    printf 'k1:v1\n' | $K "${o[@]}" -K: -H h=1 -H h=2
    printf 'v2\n:v3\nk4:\n' | $K "${o[@]}" -K:
    printf 'k5:\n' | $K "${o[@]}" -K: -Z
    expected | tail -n +6 | sed 's/^[0-9]* <b> <\(.*\)> -$/b:\1/' | $K "${o[@]}" -K:
}
kcat_consume() { # TOPIC
    consume "$1" -X check.crcs=true -f '%o\t%K\t%k\t%S\t%s\t%h\n' | awk -F'\t' '{
        print $1, ($2 < 0 ? "~" : "<" $3 ">"), ($4 < 0 ? "~" : "<" $5 ">"), ($6 == "" ? "-" : $6) }'
}
codec_on_disk() { # TOPIC NUMBER: some batch has that codec, and every batch is as its client sealed it
    "$PY" - "$2" "$D/$1-0/00000000000000000000.log" <<'X' || fail "stored batches of $1"
import sys
from kwire import batches
b = batches(open(sys.argv[2], "rb").read())
assert int(sys.argv[1]) in {x.attributes & 7 for x in b}, [x.attributes for x in b]
assert all(x.crc_good() for x in b)
X
}
codec_number() { case $1 in none) echo 0 ;; gzip) echo 1 ;; snappy) echo 2 ;; lz4) echo 3 ;; zstd) echo 4 ;; esac; }

# ---- what came of it, for the table in docs/COMPATIBILITY.md ----
RESULTS=$BUILDDIR/tests/compat/results
# results_begin FILE CLIENT: CLIENT as the table names it, its version last; failed, unless results_end says otherwise
results_begin() {
    mkdir -p "$RESULTS"
    RESULTS_FILE=$RESULTS/$1.tsv
    CLIENT=$2
    printf '%s\tall\tfailed\n' "$CLIENT" >"$RESULTS_FILE"
}
# result FEATURE RESULT [NOTE]
result() { printf '%s\t%s\t%s\t%s\n' "$CLIENT" "$1" "$2" "${3:-}" >>results; }
results_end() { mv results "$RESULTS_FILE"; }

# For a client that cannot write all of it: a filter from what it should write to what it does, and which of the two it lacks, and how.
as_written() { cat; }
NO_HEADERS='' NO_EMPTY=''

# exchange NAME COMMAND...: the client writes a topic for each codec, which kcat and the mount read; and reads what kcat wrote.
# COMMAND produce TOPIC CODEC exits 78 when the client has no such codec here; COMMAND consume TOPIC prints the normal form.
exchange() {
    local name=$1 z tried=0
    shift
    expected >want
    as_written <want >want.written
    expected_lines >want.lines
    for z in $CODECS; do
        topic "$name-$z"
        "$@" produce "$name-$z" $z >said 2>&1
        case $? in
        0) ;;
        78)
            echo "$name has no $z here: $(tail -n1 said)"
            result "writes $z" "-"
            continue
            ;;
        *) fail "$name could not write with $z: $(tail -n5 said)" ;;
        esac
        tried=$((tried + 1))
        kcat_consume "$name-$z" >got
        same "kcat reads what $name wrote with $z" want.written got
        codec_on_disk "$name-$z" "$(codec_number $z)"
        [ -z "$KLOGFS_PID" ] || same "the mount shows what $name wrote with $z" want.lines "$M/$name-$z/p0"
        result "writes $z" yes
    done
    [ $tried -ge 2 ] || fail "$name tried $tried codecs"
    for z in $CODECS; do
        topic "kcat-$z"
        kcat_produce "kcat-$z" $z || fail "kcat could not write with $z"
        "$@" consume "kcat-$z" $z >got 2>said
        case $? in
        0)
            same "$name reads what kcat wrote with $z" want got
            result "reads $z" yes
            ;;
        78)
            echo "$name has no $z here"
            result "reads $z" "-"
            ;;
        *) fail "$name could not read $z: $(tail -n5 said)" ;;
        esac
    done
    result headers "$([ -z "$NO_HEADERS" ] && echo yes || echo partly)" "$NO_HEADERS"
    result "null, empty" "$([ -z "$NO_EMPTY" ] && echo yes || echo partly)" "$NO_EMPTY"
}

# ---- groups, positions, times, administration, idempotence ----
# feature NAME WANTED COMMAND...: the client's answer is exact; exit status 78 says that it has no such thing
feature() {
    local name=$1 want=$2 got status
    shift 2
    got=$(timeout 60 "$@" 2>said)
    status=$?
    if [ $status = 78 ]; then
        result "$name" "-" "$got"
        return
    fi
    [ $status = 0 ] || fail "$CLIENT, $name: exit status $status, $(tail -n5 said)"
    eq "$CLIENT, $name" "$want" "$got"
    result "$name" yes
}
# features COMMAND...: what the client program is asked for, beyond produce and consume
#   group GROUP TOPIC N     joins, reads N records, prints "PARTITION OFFSET" of each, sorted; commits, leaves
#   positions GROUP TOPIC   prints "PARTITION POSITION" of each partition
#   time TOPIC MS...        prints for each time the first offset of partition 0 that is not older, or "end"
#   topics                  makes topic "made" with 2 partitions, grows it to 5, deletes it; prints what it sees of it each time
#   settings TOPIC          prints retention.ms of it, sets it to 54321, prints it again
#   forget GROUP            prints its state, deletes it, sees that it is gone
#   idempotent TOPIC        writes to partition 0, in more than one batch, as an idempotent producer
features() {
    topic shared 2
    topic once retention.ms=12345
    "$PY" "$SRCDIR/tests/compat/records.py" timed shared || fail "the records"
    local all position=("$PY" "$TESTLIB/group.py" position features shared)
    all=$(for p in 0 1; do seq -f "$p %.0f" 0 9; done)
    feature groups "$all" "$@" group features shared 20
    eq "$CLIENT's positions" "10 10" "$("${position[@]}" 0) $("${position[@]}" 1)"
    eq "commit" NONE "$("$PY" "$TESTLIB/group.py" commit features shared 0 7)"
    feature positions $'0 7\n1 10' "$@" positions features shared
    feature groups $'0 7\n0 8\n0 9' "$@" group features shared 3
    feature "by time" "0 2 3 end" "$@" time shared 1000 3000 3001 10001
    feature topics $'made 2\ngrown 5\ngone' "$@" topics
    feature settings $'12345\n54321' "$@" settings once
    feature "deletes groups" $'Empty\ngone' "$@" forget features
    feature idempotence "" "$@" idempotent once
    [ "$(tail -n1 results)" != "$CLIENT"$'\tidempotence\tyes\t' ] ||
        "$PY" "$SRCDIR/tests/compat/records.py" idempotent "$D/once-0/00000000000000000000.log" || fail "the batches of an idempotent producer"
    results_end
}
