#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# klog beside its floors, in one run: figures of different runs or machines do not compare, ratios do. Each figure is the median of
# $SAMPLES samples, taken in turns. Usage: make bench, or BENCH_ONLY='echo|cat' make bench for some of the rows.
# Runs in a network of its own, so that ports are free and no other traffic is there.
set -u
if [ -z "${BENCH_INSIDE:-}" ]; then
    BENCH_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private bash "$0" "$@"
fi
ip link set lo up || exit 1
b=${BUILDDIR:-$PWD}
samples=${SAMPLES:-3}
secs=${SECS:-1.5}
only=${BENCH_ONLY:-.}
klogd=127.0.0.1:9092 null=127.0.0.1:9093
s=$(mktemp -d "${BENCH_DIR:-$b}/bench.XXXXXX")
pids=()
finish() {
    umount "$s/mnt" "$s/async" "$s/null" "$s/null-acked" 2>/dev/null
    kill "${pids[@]}" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$s"
}
trap finish EXIT
trap 'exit 130' INT TERM
up() {
    local i
    for ((i = 0; i < 200; i++)); do
        (exec 3<>"/dev/tcp/127.0.0.1/${1#*:}") 2>/dev/null && return
        sleep 0.05
    done
    echo "nothing on $1" >&2
    exit 1
}
start() { "$@" >>"$s/log" 2>&1 & pids+=($!); }
mounted() {
    local i
    for ((i = 0; i < 200; i++)); do
        grep -q " $1 " /proc/self/mounts && return
        sleep 0.05
    done
    echo "$1 was not mounted" >&2
    exit 1
}

mkdir -p "$s/data" "$s/null-data" "$s/mnt" "$s/async" "$s/null" "$s/null-acked"
start "$b/daemon/klogd" --override listeners="PLAINTEXT://$klogd" --override log.dirs="$s/data" --override log.level=warn
start "$b/bench/null-broker" -l "${null#*:}" -d "$s/null-data"
up $klogd
up $null
topic() { "$b/src/klog" topic create "$1" -b $klogd --config "flush.policy=$2" >/dev/null 2>&1; }
topic commit commit
topic async async

# take NAME FIELD COMMAND...: one sample, the value of the line that begins with FIELD
take() {
    local name=$1 field=$2
    shift 2
    "$@" 2>>"$s/log" | awk -v f="$field" '$1 ~ f { print $2; exit }' >>"$s/sample.$name"
}
median() { sort -g "$s/sample.$1" 2>/dev/null | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
short() { awk -v v="$1" 'BEGIN { if (v == "") print "-"; else if (v >= 1e6) printf "%.2f M\n", v / 1e6; else if (v >= 1e4) printf "%.0f k\n", v / 1e3; else if (v >= 100) printf "%.0f\n", v; else printf "%.1f\n", v }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a == "" || b == "" || b == 0) print "-"; else printf "%.0f %%\n", 100 * a / b }'; }
# row TEXT UNIT KLOG ASYNC FLOOR
row() {
    local k a f
    k=$(median "$3") a=$(median "$4") f=$(median "$5")
    printf '%-46s %-10s %9s %9s %9s %8s %8s\n' "$1" "$2" "$(short "$k")" "$(short "$a")" "$(short "$f")" "$(ratio "$k" "$f")" "$(ratio "$a" "$f")"
}
want() { grep -qE "$only" <<<"$1"; }

printf '%-46s %-10s %9s %9s %9s %8s %8s\n' '' '' 'klog' 'klog' 'floor' 'klog' 'klog'
printf '%-46s %-10s %9s %9s %9s %8s %8s\n' '' '' 'commit' 'async' '' 'commit' 'async'
for size in 100 1024; do
    [ -x "$b/bench/rdkafka-load" ] && want "produce $size" || continue
    for ((i = 0; i < samples; i++)); do
        take p$size.c produce "$b/bench/rdkafka-load" produce -b $klogd -t commit -s $size -T $secs
        take p$size.a produce "$b/bench/rdkafka-load" produce -b $klogd -t async -s $size -T $secs
        take p$size.n produce "$b/bench/rdkafka-load" produce -b $null -t t$size -s $size -T $secs
    done
    row "produce $size B, librdkafka's defaults" records/s p$size.c p$size.a p$size.n
done
for size in 100 1024; do
    want "produce raw $size" || continue
    n=$((size == 100 ? 1000 : 240))
    for ((i = 0; i < samples; i++)); do
        take r$size.c produce "$b/bench/load" produce -b $klogd -t commit -s $size -n $n -k 8 -T $secs
        take r$size.a produce "$b/bench/load" produce -b $klogd -t async -s $size -n $n -k 8 -T $secs
        take r$size.n produce "$b/bench/load" produce -b $null -t t$size -s $size -n $n -k 8 -T $secs
    done
    row "produce $size B, batches of $n sent raw" records/s r$size.c r$size.a r$size.n
done
for k in 1 100; do
    want "batch of one $k" || continue
    for ((i = 0; i < samples; i++)); do
        take o$k.c produce "$b/bench/load" produce -b $klogd -t commit -s 200 -n 1 -k $k -T $secs
        take o$k.a produce "$b/bench/load" produce -b $klogd -t async -s 200 -n 1 -k $k -T $secs
        take o$k.n produce "$b/bench/load" produce -b $null -t one -s 200 -n 1 -k $k -T $secs
    done
    row "produce batches of one, $k in flight" records/s o$k.c o$k.a o$k.n
done
if want fetch; then
    topic fetch async
    for at in $klogd $null; do "$b/bench/load" produce -b $at -t fetch -s 1024 -n 60 -k 8 -T 0.5 >/dev/null; done
    for ((i = 0; i < samples; i++)); do
        take f.a fetch "$b/bench/load" fetch -b $klogd -t fetch -T $secs
        take f.n fetch "$b/bench/load" fetch -b $null -t fetch -T $secs
    done
    row "fetch, replies of 1 MiB" MB/s - f.a f.n
    if [ -x "$b/bench/rdkafka-load" ]; then
        for ((i = 0; i < samples; i++)); do
            take c.a consume "$b/bench/rdkafka-load" consume -b $klogd -t fetch
            take c.n consume "$b/bench/rdkafka-load" consume -b $null -t fetch
        done
        row "consume 1 KiB, librdkafka's defaults" records/s - c.a c.n
    fi
fi
if want latency; then
    for ((i = 0; i < samples; i++)); do
        for t in c:$klogd:commit a:$klogd:async n:$null:latency; do
            IFS=: read -r name host port topic <<<"$t"
            "$b/bench/load" latency -b "$host:$port" -t "$topic" -s 200 -r 1000 -c 2000 2>>"$s/log" >"$s/out"
            for f in ack.p50 ack.p99 end-to-end.p50 end-to-end.p99; do awk -v f=$f '$1 == f { print $2 }' "$s/out" >>"$s/sample.$f.$name"; done
        done
    done
    for f in ack.p50 ack.p99 end-to-end.p50 end-to-end.p99; do row "latency, 200 B, 1000/s: $f (less is better)" us $f.c $f.a $f.n; done
fi

# ---- the mount ----
[ -x "$b/fuse/klogfs" ] && [ -c /dev/fuse ] || { echo "no mount here: the rows of the shell are left out"; exit 0; }
start "$b/fuse/klogfs" -f $klogd "$s/mnt"
start "$b/fuse/klogfs" -f $klogd "$s/async" -o async
start "$b/bench/null-fuse" "$s/null"
start "$b/bench/null-fuse" -B $null "$s/null-acked"
for m in mnt async null null-acked; do mounted "$s/$m"; done
echo_rate() { # echo_rate FILE COUNT
    local t0=${EPOCHREALTIME/./} i
    for ((i = 0; i < $2; i++)); do echo "line $i, of some eighty bytes in all, as a shell script would write it to a log" >>"$1"; done
    awk -v n="$2" -v d=$((${EPOCHREALTIME/./} - t0)) 'BEGIN { print "echo", n * 1e6 / d }'
}
synced_rate() { # synced_rate FILE COUNT: one process, O_DSYNC
    local t0=${EPOCHREALTIME/./}
    dd if=/dev/zero of="$1" bs=80 count="$2" oflag=append,dsync conv=notrunc status=none
    awk -v n="$2" -v d=$((${EPOCHREALTIME/./} - t0)) 'BEGIN { print "echo", n * 1e6 / d }'
}
cat_rate() { # cat_rate FILE
    local t0=${EPOCHREALTIME/./}
    cat "$1" >/dev/null
    awk -v n="$(stat -c %s "$1")" -v d=$((${EPOCHREALTIME/./} - t0)) 'BEGIN { print "cat", n / d }'
}
printf '\n%-46s %-10s %9s %9s %9s %8s %8s\n' '' '' 'sync' 'async' 'floor' 'sync' 'async'
if want echo; then
    topic echo commit
    topic echo2 commit
    topic echo3 async
    : >"$s/file"
    for ((i = 0; i < samples; i++)); do
        take e.c echo echo_rate "$s/mnt/echo/p0" 1000
        take e.a echo echo_rate "$s/async/echo2/p0" 2000
        take e.p echo echo_rate "$s/mnt/echo3/p0" 2000
        take e.n echo echo_rate "$s/null/p0" 4000
        take e.b echo echo_rate "$s/null-acked/p0" 2000
        take e.e echo echo_rate "$s/file" 4000
        take e.s echo synced_rate "$s/file" 2000
    done
    row "echo >>, floor: null FUSE" times/s e.c e.a e.n
    row "echo >>, floor: null FUSE + null broker" times/s e.c e.a e.b
    row "echo >>, topic without fsync, same floor" times/s e.p - e.b
    row "echo >>, floor: this disk's file system" times/s e.c e.a e.e
    row "echo >>, floor: append + fdatasync on it" times/s e.c e.a e.s
fi
for size in 100 200 1024; do
    want "cat $size" || continue
    topic cat$size async
    "$b/bench/load" produce -b $klogd -t cat$size -s $((size - 1)) -n $((100000 / size)) -k 8 -T 0.7 >/dev/null
    cat "$s/mnt/cat$size/p0" >"$s/file"
    for ((i = 0; i < samples; i++)); do
        take cat$size.k cat cat_rate "$s/mnt/cat$size/p0"
        take cat$size.n cat cat_rate "$s/null/p0"
        take cat$size.e cat cat_rate "$s/file"
    done
    row "cat, lines of $size B, floor: null FUSE" MB/s cat$size.k - cat$size.n
    row "cat, lines of $size B, floor: this file system" MB/s cat$size.k - cat$size.e
done

# ---- who waits on a mount is woken ----
if want wakes && command -v python3 >/dev/null; then
    topic wakes async
    for ((i = 0; i < samples; i++)); do
        PYTHONPATH="${0%/*}/../tests/lib" python3 "${0%/*}/wakes.py" "$s/mnt" wakes 300 >"$s/wakes" 2>>"$s/log" || break
        while read -r name value; do echo "$value" >>"$s/sample.$name"; done <"$s/wakes"
    done
    for f in follow inotify inotify-json; do
        for p in p50 p99; do row "$f, woken after the produce: $p (less is better)" us $f.$p - -; done
    done
fi

# ---- views, beside the plain file and beside kcat ----
command -v kcat >/dev/null || { echo "no kcat here: the rows of views are left out"; exit 0; }
lines_rate() { # lines_rate COMMAND...: of the records of views/p0
    local t0=${EPOCHREALTIME/./}
    "$@" >/dev/null
    awk -v n="$n" -v d=$((${EPOCHREALTIME/./} - t0)) 'BEGIN { print "lines", n * 1e6 / d }'
}
fresh_json() { # its size is not known yet: cat asks for it, and all is printed twice
    lines_rate cat "$s/mnt/views/0:$((n + RANDOM))/json/p0"
}
consume=(kcat -b $klogd -q -C -t views -p 0 -o beginning -e)
printf '\n%-46s %-10s %9s %9s %9s %8s %8s\n' '' '' 'klog' '' 'kcat' 'klog' ''
for size in 100 1024; do
    want "views $size" || continue
    "$b/src/klog" topic delete views --if-exists -b $klogd >/dev/null 2>&1
    topic views async
    "$b/bench/load" produce -b $klogd -t views -s "$size" -n $((100000 / size)) -k 8 -T 0.5 >/dev/null
    n=$("$b/src/klog" offsets views -b $klogd --json | sed 's/.*"latest": *\([0-9]*\).*/\1/')
    for ((i = 0; i < samples; i++)); do
        take v$size.kc lines lines_rate "${consume[@]}"
        take v$size.kj lines lines_rate "${consume[@]}" -J
        take v$size.c lines lines_rate "$b/src/klog" cat views/p0 -b $klogd
        take v$size.cj lines lines_rate "$b/src/klog" cat views/json/p0 -b $klogd
        take v$size.p lines lines_rate cat "$s/mnt/views/p0"
        take v$size.r lines lines_rate cat "$s/mnt/views/1/p0"
        take v$size.jf lines fresh_json
        take v$size.j lines lines_rate cat "$s/mnt/views/json/p0"
        take v$size.t lines lines_rate cat "$s/mnt/views/tsv/p0"
        take v$size.a lines lines_rate cat "$s/mnt/views/json/all"
    done
    row "klog cat, $size B, beside kcat -C" records/s v$size.c - v$size.kc
    row "klog cat json, $size B, beside kcat -C -J" records/s v$size.cj - v$size.kj
    row "cat p0, $size B, beside kcat -C" records/s v$size.p - v$size.kc
    row "cat 1/p0, $size B, beside kcat -C" records/s v$size.r - v$size.kc
    row "cat tsv/p0, $size B, beside kcat -C" records/s v$size.t - v$size.kc
    row "cat json/p0, $size B, beside kcat -C -J" records/s v$size.j - v$size.kj
    row "cat json/p0 the first time, same" records/s v$size.jf - v$size.kj
    row "cat json/all, $size B, beside kcat -C -J" records/s v$size.a - v$size.kj
done
