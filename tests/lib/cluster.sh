# SPDX-License-Identifier: Apache-2.0
# Several brokers on one ZooKeeper, for tests that source it after functions.sh: broker N is 127.0.0.1:909N with its data in $T/bN.
ZOOKEEPER_JAR=/usr/share/java/zookeeper.jar
ZOOKEEPER_PID=
BROKER_PIDS=()

# zookeeper_start: a new one on port 2181, whose sessions may be short. Skips the test where there is none.
zookeeper_start() {
    requires java
    [ -r $ZOOKEEPER_JAR ] || skip "needs libzookeeper-java"
    grep -q '^#define HAVE_ZOOKEEPER 1' "$BUILDDIR/config.h" || skip "klogd was built without ZooKeeper"
    mkdir -p "$T/zookeeper"
    printf '%s\n' tickTime=100 minSessionTimeout=200 maxSessionTimeout=60000 "dataDir=$T/zookeeper" clientPort=2181 \
        clientPortAddress=127.0.0.1 admin.enableServer=false maxClientCnxns=0 '4lw.commands.whitelist=*' >"$T/zoo.cfg"
    java -Xms16m -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -XX:-UsePerfData -cp $ZOOKEEPER_JAR \
        -Dzookeeper.forceSync=no -Dzookeeper.preAllocSize=64 -Djava.awt.headless=true \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$T/zoo.cfg" >"$T/zookeeper.out" 2>&1 </dev/null 19>&- &
    ZOOKEEPER_PID=$!
    cleanup_fn cluster_down
    wait_for 30 "ZooKeeper serves" zookeeper_serves
}
zookeeper_serves() {
    local answer
    exec 8<>/dev/tcp/127.0.0.1/2181 || return 1
    printf srvr >&8
    answer=$(timeout 2 cat <&8)
    exec 8>&-
    [[ $answer == *Mode:* ]]
}

# broker_spawn N [--override key=value ...]
broker_spawn() {
    local n=$1
    shift
    klogd --override broker.id="$n" --override listeners="PLAINTEXT://127.0.0.1:909$n" --override log.dirs="$T/b$n" \
        --override zookeeper.connect=127.0.0.1:2181/klog --override zookeeper.session.timeout.ms=1000 "$@" >>"$T/klogd$n.log" 2>&1 19>&- &
    BROKER_PIDS[n]=$!
}
broker_up() { gone "${BROKER_PIDS[$1]}" || port_open "909$1"; }
broker_start() {
    broker_spawn "$@"
    wait_for 20 "broker $1 listens" broker_up "$1"
    gone "${BROKER_PIDS[$1]}" && fail "broker $1 ended at start: $(tail -n3 "$T/klogd$1.log")"
    return 0
}
broker_kill() {
    kill -KILL "${BROKER_PIDS[$1]}"
    wait "${BROKER_PIDS[$1]}" 2>/dev/null
    unset "BROKER_PIDS[$1]"
}
broker_stop() {
    local pid=${BROKER_PIDS[$1]}
    unset "BROKER_PIDS[$1]"
    kill -TERM "$pid"
    wait "$pid"
    eq "exit status of broker $1 after TERM" 0 $?
}
cluster_down() {
    local n
    for n in "${!BROKER_PIDS[@]}"; do broker_stop "$n"; done
    [ -z "$ZOOKEEPER_PID" ] || kill -KILL "$ZOOKEEPER_PID"
    wait "$ZOOKEEPER_PID" 2>/dev/null
    ZOOKEEPER_PID=
}

# As broker N tells it: "PARTITION leader L replicas R,R isrs I,I", a line each, in-sync set sorted.
partitions_of() {
    kcat -b "127.0.0.1:909$1" -L -J -t "$2" 2>/dev/null | jq -r --arg t "$2" '.topics[] | select(.topic == $t) | .partitions[] |
        "\(.partition) leader \(.leader) replicas \([.replicas[].id] | map(tostring) | join(",")) isrs \([.isrs[].id] | sort | map(tostring) | join(","))"'
}
brokers_of() { kcat -b "127.0.0.1:909$1" -L -J 2>/dev/null | jq -r '[.brokers[].name] | sort | join(" ")'; }
says() { [ "$(eval "$2")" = "$1" ]; } # says TEXT COMMAND
# wait_says WHAT TEXT COMMAND
wait_says() { wait_for 20 "$1: $2 (now: $(eval "$3"))" says "$2" "$3"; }
