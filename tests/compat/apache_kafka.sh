# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Apache Kafka itself at $B, one combined broker and controller with its data in $D, to have its answers. Sourced; needs $JARS.
KAFKA_JAVA=(java -Xmx512m -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.io.tmpdir="$TMPDIR" -Djava.awt.headless=true
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$JARS/*")
# kafka_start [key=value ...]
kafka_start() {
    {
        cat <<E
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
advertised.listeners=PLAINTEXT://127.0.0.1:9092
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$D
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
offsets.retention.check.interval.ms=7200000
E
        [ $# = 0 ] || printf '%s\n' "$@"
    } >server.properties
    "${KAFKA_JAVA[@]}" kafka.tools.StorageTool format -t 5sWV2IB1SiKxgm4OxPU5Gg -c server.properties >kafka.out 2>&1 || fail "format: $(tail -n3 kafka.out)"
    "${KAFKA_JAVA[@]}" kafka.Kafka server.properties >>kafka.out 2>&1 19>&- &
    KAFKA_PID=$!
    cleanup_fn 'kill -9 $KAFKA_PID 2>/dev/null'
    wait_for 60 "Apache Kafka listens" port_open 9092
}
kafka_stop() {
    kill $KAFKA_PID
    wait_gone $KAFKA_PID 60
    wait $KAFKA_PID 2>/dev/null || :
}
