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

# exchange NAME COMMAND...: the client writes a topic for each codec, which kcat and the mount read; and reads what kcat wrote.
# COMMAND produce TOPIC CODEC exits 78 when the client has no such codec here; COMMAND consume TOPIC prints the normal form.
exchange() {
    local name=$1 z tried=0
    shift
    expected >want
    expected_lines >want.lines
    for z in $CODECS; do
        topic "$name-$z"
        "$@" produce "$name-$z" $z >said 2>&1
        case $? in
        0) ;;
        78)
            echo "$name has no $z here: $(tail -n1 said)"
            continue
            ;;
        *) fail "$name could not write with $z: $(tail -n5 said)" ;;
        esac
        tried=$((tried + 1))
        kcat_consume "$name-$z" >got
        same "kcat reads what $name wrote with $z" want got
        codec_on_disk "$name-$z" "$(codec_number $z)"
        [ -z "$KLOGFS_PID" ] || same "the mount shows what $name wrote with $z" want.lines "$M/$name-$z/p0"
    done
    [ $tried -ge 2 ] || fail "$name tried $tried codecs"
    for z in $CODECS; do
        topic "kcat-$z"
        kcat_produce "kcat-$z" $z || fail "kcat could not write with $z"
        "$@" consume "kcat-$z" $z >got 2>said
        case $? in
        0) same "$name reads what kcat wrote with $z" want got ;;
        78) echo "$name has no $z here" ;;
        *) fail "$name could not read $z: $(tail -n5 said)" ;;
        esac
    done
}
