#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers, replication 3, min.insync.replicas 2, acks=all: klog beside Apache Kafka, one after the other in one run, each on the
# whole machine. Each figure is the median of $SAMPLES samples after one that is thrown away (a JVM has to get warm).
# Usage: make bench-cluster. Needs Debian's ZooKeeper for klog; java 17 and mvn for Kafka, whose column is empty without them.
set -u
b=${BUILDDIR:-$PWD}
src=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jars=$b/tests/clients/maven/jars
if [ -z "${BENCH_INSIDE:-}" ]; then
    [ -d "$jars" ] || bash "$src/tests/compat/fetch.sh" "$b/tests/clients" maven >&2 || echo "Apache Kafka could not be fetched: its column is empty" >&2
    BENCH_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private bash "$0" "$@"
fi
ip link set lo up || exit 1
samples=${SAMPLES:-3}
secs=${SECS:-3}
s=$(mktemp -d "${BENCH_DIR:-$b}/bench.XXXXXX")
pids=()
klog=$b/src/klog
finish() {
    "$klog" cluster stop --dir "$s/klog" >/dev/null 2>&1
    [ ${#pids[@]} = 0 ] || kill -9 "${pids[@]}" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$s"
}
trap finish EXIT
trap 'exit 130' INT TERM

median() { sort -g "$s/sample.$1" 2>/dev/null | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
# take NAME FIELD FACTOR COMMAND...: one sample, FACTOR times the value of the line that begins with FIELD
take() {
    local name=$1 field=$2 factor=$3
    shift 3
    "$@" 2>>"$s/log" | awk -v f="$field" -v by="$factor" '$1 == f { print $2 * by; exit }' >>"$s/sample.$name"
}
# in_sync TOPIC: each replica of it is; else the first sample would measure how one comes
in_sync() {
    local i
    for ((i = 0; i < 600; i++)); do
        "$klog" topic describe "$1" -b 127.0.0.1:9092 --json 2>/dev/null | jq -se 'length > 0 and all(.isr | length == 3)' >/dev/null && return
        sleep 0.1
    done
    echo "the replicas of $1 do not get in sync" >&2
    exit 1
}
leader_port() { "$klog" topic describe "$1" -b 127.0.0.1:9092 --json | jq -r '9091 + .leader'; }

# measure SYSTEM TOPIC: a topic of one partition, what librdkafka's defaults (acks=all) get into it, and how soon one record is acknowledged
measure() {
    local system=$1 topic=$2 size i
    for size in 1024 200 100; do
        for ((i = 0; i <= samples; i++)); do
            take "$system.$size" produce "$size" "$b/bench/rdkafka-load" produce -b 127.0.0.1:9092 -t "$topic" -s $size -T "$secs"
            [ $i -gt 0 ] || rm -f "$s/sample.$system.$size"
        done
    done
    for ((i = 0; i <= samples; i++)); do
        "$b/bench/load" latency -b "127.0.0.1:$(leader_port "$topic")" -t "$topic" -s 200 -r 500 -c 2000 >"$s/out" 2>>"$s/log"
        [ $i -gt 0 ] || continue
        for f in ack.p50 ack.p99 end-to-end.p50 end-to-end.p99; do awk -v f=$f '$1 == f { print $2 }' "$s/out" >>"$s/sample.$system.$f"; done
    done
}

"$klog" cluster start --brokers 3 --dir "$s/klog" >"$s/log" 2>&1 || { cat "$s/log" >&2; exit 1; }
for policy in async commit; do
    "$klog" topic create $policy -p 1 --replication-factor 3 --config min.insync.replicas=2 --config flush.policy=$policy >>"$s/log" 2>&1 || exit 1
    in_sync $policy
    measure $policy $policy
done
"$klog" cluster stop --dir "$s/klog" >>"$s/log" 2>&1

port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
kafka_start() {
    local n
    for n in 1 2 3; do
        mkdir -p "$s/kafka$n"
        printf '%s\n' process.roles=broker,controller node.id=$n controller.listener.names=CONTROLLER log.dirs="$s/kafka$n" \
            controller.quorum.voters=1@127.0.0.1:9191,2@127.0.0.1:9192,3@127.0.0.1:9193 \
            listeners=PLAINTEXT://127.0.0.1:909$((n + 1)),CONTROLLER://127.0.0.1:919$n advertised.listeners=PLAINTEXT://127.0.0.1:909$((n + 1)) \
            listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT min.insync.replicas=2 >"$s/kafka$n.properties"
        java -cp "$jars/*" kafka.tools.StorageTool format -t 5sWV2IB1SiKxgm4OxPU5Gg -c "$s/kafka$n.properties" >>"$s/log" 2>&1 || return 1
    done
    for n in 1 2 3; do
        java -Xms1g -Xmx1g -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 -Djava.awt.headless=true \
            -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$jars/*" kafka.Kafka "$s/kafka$n.properties" >>"$s/log" 2>&1 &
        pids+=($!)
    done
    for n in 9092 9093 9094; do
        until port_open $n; do kill -0 "${pids[@]}" || return 1; sleep 0.1; done
    done
}
if [ -d "$jars" ] && command -v java >/dev/null; then
    kafka_start || { tail -n 5 "$s/log" >&2; exit 1; }
    "$klog" topic create kafka -p 1 --replication-factor 3 --config min.insync.replicas=2 --timeout 60 >>"$s/log" 2>&1 || exit 1
    in_sync kafka
    measure kafka kafka
fi

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a == "" || b == "" || b == 0) print "-"; else printf "%.2f\n", a / b }'; }
# row TEXT UNIT NAME DIVISOR
row() {
    local c a k
    c=$(median "commit.$3") a=$(median "async.$3") k=$(median "kafka.$3")
    printf '%-40s %-6s %9s %9s %9s %11s %11s\n' "$1" "$2" "$(awk -v v="$c" -v d="$4" 'BEGIN { printf "%.1f", v / d }')" \
        "$(awk -v v="$a" -v d="$4" 'BEGIN { printf "%.1f", v / d }')" "$(awk -v v="$k" -v d="$4" 'BEGIN { if (v == "") print "-"; else printf "%.1f", v / d }')" \
        "$(ratio "$c" "$k")" "$(ratio "$a" "$k")"
}
printf '%-40s %-6s %9s %9s %9s %11s %11s\n' 'replication 3, min ISR 2, acks=all' '' 'klog' 'klog' 'Kafka' 'klog/Kafka' 'klog/Kafka'
printf '%-40s %-6s %9s %9s %9s %11s %11s\n' '' '' 'commit' 'async' '' 'commit' 'async'
for size in 1024 200 100; do row "produce $size B, librdkafka's defaults" MB/s $size 1e6; done
for f in ack.p50 ack.p99 end-to-end.p50 end-to-end.p99; do row "one record, 500/s: $f (less is better)" us $f 1; done
