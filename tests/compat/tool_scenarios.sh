# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Apache Kafka's own command-line tools on a broker at $B whose log directory is $D: prints each command and what it said, in a
# form that does not depend on the broker's ids or clock. Run against Apache Kafka it made tool_scenarios.expected; what klogd
# may answer otherwise stands, with the reason, in tool_scenarios.differences. Sourced; needs kcat and $JARS.
tools=org.apache.kafka.tools
# Kafka's lines, less what no two runs have in common: ids, times, the sizes of batches that clients built in a hurry; and less Java's stack
# traces and log lines. Tabs and columns become single spaces.
normal() {
    sed -E 's/\}\{"key"/}\n{"key"/g; s/\}\[main\] ERROR/}\n[main] ERROR/' |
        sed -E "s|$D|DATA|g; s/[[:space:]]+/ /g; s/ \$//; /^\$/d; /^ ?at /d; /^\[[^]]*\] (ERROR|WARN) /d; /KIP-848/d" |
        sed -E 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g; s/console-consumer-[0-9]+/console-consumer-N/g; s/TopicId: ?[-_A-Za-z0-9]{22}/TopicId: ID/
            s/((Create|commit|state|max)?Timestamp"?|CreateTime): ?1[0-9]{12}/\1:TIME/Ig; s/producerId: [0-9]+/producerId: N/; s/crc: [0-9]+/crc: N/
            s/( size| position): [0-9]+/\1: N/g; s/"topicId":"[-_A-Za-z0-9]{22}"/"topicId":"ID"/g; s/("avg_throughput":)[0-9.]+/\1N/
            s/"partition":([0-9]+),"topic":"([^"]*)"/"topic":"\2","partition":\1/g'
}
# tool CLASS ARGUMENT...: as it is, to look at. The first leaves an archive of its classes, with which the others start twice as fast.
ARCHIVE=$T/tools.jsa
tool() {
    local cds=(-XX:SharedArchiveFile="$ARCHIVE")
    [ -f "$ARCHIVE" ] || cds=(-XX:ArchiveClassesAtExit="$ARCHIVE" '-Xlog:cds+dynamic=off')
    timeout 120 java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.io.tmpdir="$TMPDIR" "${cds[@]}" -Xlog:cds=off \
        -Djava.awt.headless=true -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$JARS/*" $tools."$@" 2>&1
}
# show NAME CLASS ARGUMENT...: printed as a user would type it
show() {
    local name=$1 class=$2
    shift 2
    echo "  \$ $name $*" | sed "s|$D|DATA|g"
    [ "$name" = kafka-dump-log ] || set -- --bootstrap-server "$B" "$@"
    tool "$class" "$@" | normal | ${FILTER:-cat} | sed 's/^/    /'
}
topics() { show kafka-topics TopicCommand "$@"; }
configs() { show kafka-configs ConfigCommand "$@"; }
groups() { show kafka-consumer-groups consumer.group.ConsumerGroupCommand "$@"; }
produce() { show kafka-console-producer ConsoleProducer "$@"; }
consume() { show kafka-console-consumer consumer.ConsoleConsumer "$@"; }
offsets() { show kafka-get-offsets GetOffsetShell "$@"; }
title() { echo "$*"; }
sorted() { FILTER=sort "$@"; }

title "kafka-topics: create, list, describe, alter, delete"
topics --create --topic t --partitions 3 --replication-factor 1 --config retention.ms=1234567 --config cleanup.policy=delete
topics --create --topic t
topics --create --topic t --if-not-exists
topics --create --topic one
topics --create --topic 'a/b'
topics --create --topic bad --replication-factor 3
topics --list
topics --describe --topic t
topics --describe --topics-with-overrides
topics --describe --under-replicated-partitions
topics --describe --unavailable-partitions
topics --describe --topic nowhere
topics --alter --topic t --partitions 4
topics --alter --topic t --partitions 2
topics --describe --topic t
topics --delete --topic one
topics --delete --topic one
topics --list

title "kafka-configs: topics and brokers"
configs --describe --topic t
configs --alter --topic t --add-config retention.ms=7654321,max.message.bytes=2000000
configs --alter --topic t --add-config 'cleanup.policy=[compact,delete]'
sorted configs --describe --topic t
configs --alter --topic t --delete-config retention.ms,cleanup.policy
configs --describe --topic t
configs --alter --topic t --add-config retention.ms=soon
configs --alter --topic t --add-config no.such.setting=1
configs --describe --topic nowhere
configs --alter --topic nowhere --add-config retention.ms=1
configs --alter --topic t --delete-config max.message.bytes
configs --describe --topic t
sorted configs --describe --topic t --all
configs --describe --broker 1
configs --describe --broker 7
configs --describe --broker-defaults

title "kafka-console-producer and -consumer: keys, headers, groups, positions, codecs"
topics --create --topic c
printf 'k1\tv1\nk2\t\n\tv3\n' | produce --topic c --reader-property parse.key=true
printf 'a:1,b:2\tk4\tv4\n' | produce --topic c --reader-property parse.key=true --reader-property parse.headers=true
printf 'k5|NULL\nNULL|v6\n' | produce --topic c --reader-property parse.key=true --reader-property key.separator='|' --reader-property null.marker=NULL
for z in none gzip snappy lz4 zstd; do
    seq -f "$z %.0f" 3 | produce --topic c --compression-codec $z
done
echo 'no answer' | produce --topic c --request-required-acks 0
echo 'one answer' | produce --topic c --request-required-acks 1
echo 'not idempotent' | produce --topic c --command-property enable.idempotence=false
all=(--formatter-property print.key=true --formatter-property print.headers=true --formatter-property print.offset=true
    --formatter-property print.partition=true --formatter-property print.timestamp=true --formatter-property null.literal=NULL)
consume --topic c --from-beginning --max-messages 24 "${all[@]}"
consume --topic c --partition 0 --offset 20 --max-messages 2
consume --topic c --partition 0 --offset earliest --max-messages 1 --isolation-level read_committed
consume --topic c --group g --from-beginning --max-messages 10
groups --describe --group g
consume --topic c --group g --max-messages 2
consume --topic c --group g --timeout-ms 10000
groups --describe --group g
echo fresh | produce --topic fresh
consume --topic fresh --from-beginning --max-messages 1
consume --include 'fr.*|one' --from-beginning --max-messages 1

title "kafka-verifiable-producer and -consumer"
topics --create --topic v
show kafka-verifiable-producer VerifiableProducer --topic v --max-messages 3 --value-prefix 7
show kafka-verifiable-producer VerifiableProducer --topic v --max-messages 2 --acks 1 --repeating-keys 2
show kafka-verifiable-consumer VerifiableConsumer --topic v --group-id vg --max-messages 5 --reset-policy earliest --verbose
show kafka-verifiable-consumer VerifiableConsumer --topic v --group-id vs --group-instance-id i1 --max-messages 5 --reset-policy earliest
groups --describe --group vg
groups --describe --group vs --members
"$PY" -c "from kgroup import GroupConn; assert GroupConn('$B').leave('vs', ('', 'i1')) == (0, [0])" || fail "the static member was not removed"

title "kafka-get-offsets"
offsets --topic-partitions c:0,t:0-9,v
offsets --topic c --time earliest
offsets --topic c --time max-timestamp
offsets --topic c --time 1000
offsets --topic c --time 4000000000000
offsets --topic c --time earliest-local
offsets --topic c --time latest-tiered
offsets --topic nowhere
offsets --exclude-internal-topics

title "kafka-delete-records"
cut() { printf '{"version":1,"partitions":[%s]}' "$1" >cut.json; show kafka-delete-records DeleteRecordsCommand --offset-json-file cut.json; }
cut '{"topic":"c","partition":0,"offset":7}'
offsets --topic c --time earliest
cut '{"topic":"c","partition":0,"offset":99}'
cut '{"topic":"c","partition":0,"offset":3}'
cut '{"topic":"c","partition":0,"offset":-1}'
offsets --topic c --time earliest

title "kafka-log-dirs"
show kafka-log-dirs LogDirsCommand --describe --topic-list fresh
show kafka-log-dirs LogDirsCommand --describe --broker-list 7

title "kafka-dump-log reads the segments"
topics --create --topic d
for z in none gzip snappy lz4 zstd; do
    printf "k1:%s 1\nk2:%s 2\n" $z $z | produce --topic d --reader-property parse.key=true --reader-property key.separator=: --compression-codec $z
done
segment=$D/d-0/00000000000000000000
show kafka-dump-log DumpLogSegments --files "$segment.log" --print-data-log
show kafka-dump-log DumpLogSegments --files "$segment.log" --deep-iteration
# a full segment, whose indexes are done: each line of them has a batch in the log
topics --create --topic full --config segment.bytes=1048576
seq -f '%.0f, a record of some length' 60000 | $K -P -t full -p 0 -X batch.num.messages=200
segment=$D/full-0/00000000000000000000
rows() { sed -E 's/[0-9]{2,}/N/g' | uniq; }
for f in index timeindex; do
    FILTER=rows show kafka-dump-log DumpLogSegments --files "$segment.$f"
    show kafka-dump-log DumpLogSegments --files "$segment.$f" --verify-index-only
done
show kafka-dump-log DumpLogSegments --files "$segment.index" --index-sanity-check

title "kafka-consumer-groups: list, describe, members, state, offsets"
sorted groups --list
topics --create --topic gt --partitions 2
seq 100 | $K -P -t gt -p 0
seq 50 | $K -P -t gt -p 1
kcat -b "$B" -q -G jg -X client.id=kc -X session.timeout.ms=6000 -X auto.offset.reset=earliest gt >/dev/null &
member=$!
cleanup_fn 'kill -9 $member 2>/dev/null'
wait_for 30 "the member has its partitions" eval '[ "$("$PY" "$TESTLIB/group.py" owners jg | wc -l)" = 2 ]'
wait_for 30 "the member has committed" eval '[ "$("$PY" "$TESTLIB/group.py" position jg gt 0)$("$PY" "$TESTLIB/group.py" position jg gt 1)" = 10050 ]'
groups --describe --group jg
groups --describe --group jg --verbose
groups --describe --group jg --members
groups --describe --group jg --members --verbose
groups --describe --group jg --state
groups --describe --group jg --state --verbose
groups --describe --group jg --group g
sorted groups --list --state
sorted groups --list --state Stable
sorted groups --list --state Empty
sorted groups --list --type
sorted groups --list --type classic
sorted groups --list --type consumer
groups --describe --group nobody
groups --reset-offsets --group jg --all-topics --to-earliest --execute
groups --delete --group jg
groups --delete-offsets --group jg --topic gt
groups --delete-offsets --group jg --topic c
kill $member
wait_gone $member 20
wait $member 2>/dev/null
groups --describe --group jg
groups --describe --group jg --members

title "kafka-consumer-groups: reset-offsets in all its forms"
reset() { groups --reset-offsets --group jg "$@"; }
sorted reset --topic gt --to-earliest --dry-run
reset --topic gt:0 --to-earliest --execute
reset --topic gt:0 --to-offset 7 --execute
reset --topic gt:0 --to-offset 1000 --execute
reset --topic gt:1 --shift-by -3 --execute
reset --topic gt:1 --shift-by -1000 --execute
reset --topic gt:1 --to-current --execute
sorted reset --topic gt:0,1 --to-latest --execute
sorted reset --all-topics --to-datetime 2001-01-01T00:00:00.000 --execute
sorted reset --all-topics --to-datetime 2096-01-01T00:00:00.000 --execute
sorted reset --topic gt --by-duration P1D --execute
sorted reset --topic gt --to-latest --export
echo '"gt",0,11
"gt",1,12' >plan.csv
sorted reset --from-file plan.csv --execute
groups --describe --group jg
reset --topic nowhere --to-earliest --execute
sorted groups --reset-offsets --group made --topic gt --to-offset 3 --execute
groups --describe --group made
sorted groups --reset-offsets --all-groups --topic gt --to-latest --dry-run

title "kafka-consumer-groups: delete-offsets, delete"
groups --delete-offsets --group jg --topic gt:0
groups --delete-offsets --group jg --topic gt:0
groups --delete-offsets --group jg --topic nowhere
groups --delete-offsets --group nobody --topic gt
groups --describe --group jg
groups --delete --group jg
groups --delete --group jg
groups --delete --group made --group nobody
groups --describe --group jg
sorted groups --list

title "__consumer_offsets, as Kafka's formatters show it"
partition_of() {
    "$PY" -c "
h = 0
for c in b'$1': h = h * 31 + c & 0xffffffff
print((h if h < 1 << 31 else h - (1 << 32)).__abs__() % 50)"
}
history() { # GROUP FORMATTER
    consume --topic __consumer_offsets --partition "$(partition_of "$1")" --offset earliest --timeout-ms 8000 --formatter $tools.consumer."$2" |
        sed 's/--partition [0-9]*/--partition P/' | grep "\"group\":\"$1\"\\|\\$"
}
groups --reset-offsets --group hg --topic gt:0 --to-offset 3 --execute
groups --reset-offsets --group hg --topic gt:0 --to-offset 5 --execute
groups --reset-offsets --group hg --topic gt:1 --to-offset 6 --execute
groups --delete-offsets --group hg --topic gt:1
history hg OffsetsMessageFormatter
groups --delete --group hg
history hg OffsetsMessageFormatter
history vg OffsetsMessageFormatter
history vg GroupMetadataMessageFormatter
history vs GroupMetadataMessageFormatter
