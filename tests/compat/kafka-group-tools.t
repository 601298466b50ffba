# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# Apache Kafka's own tools on klogd's groups: kafka-consumer-groups lists, describes, resets, deletes; kafka-console-consumer is a member
# and reads __consumer_offsets with Kafka's formatters. They come from Maven when that is there.
requires java kcat
JARS=$BUILDDIR/tests/maven/jars
[ -d "$JARS" ] || skip "Kafka's tools are not there (Maven not reached)"
klogd_start --override group.initial.rebalance.delay.ms=0
topic t 2
seq 1 100 | $K -P -t t -p 0
seq 1 50 | $K -P -t t -p 1
run() {
    timeout 60 java -Xmx256m -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.awt.headless=true \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$JARS/*" "$@" 2>&1
}
groups() { run org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server $B "$@"; }
console() { run org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server $B "$@"; }
squeeze() { sed -E 's/ +/ /g; s/ $//' | grep -v '^$'; }
# The row of `what` that begins with "GROUP ..."
row() { squeeze <<<"$2" | grep "^$1 "; }

console --group jg --topic t --from-beginning --max-messages 150 >got
grep -E '^[0-9]+$' got | sort -n | cmp - <({ seq 1 100; seq 1 50; } | sort -n) || fail "what the console consumer read: $(tail -n3 got)"
eq "list" jg "$(groups --list)"
out=$(groups --describe --group jg)
eq "describe, partition 0" "jg t 0 100 100 0 - - -" "$(row 'jg t 0' "$out")"
eq "describe, partition 1" "jg t 1 50 50 0 - - -" "$(row 'jg t 1' "$out")"
has "describe an empty group" "has no active members" "$out"

kcat -b $B -q -G jg -X client.id=kc -X session.timeout.ms=6000 t >/dev/null &
member=$!
cleanup_fn 'kill -9 $member 2>/dev/null'
wait_for 20 "the member is in" eval '[ "$("$PY" "$TESTLIB/group.py" owners jg | wc -l)" = 2 ]'
has "describe with a member" "^jg t 0 100 100 0 kc-[-0-9a-f]+ /127.0.0.1 kc$" "$(row 'jg t 0' "$(groups --describe --group jg)")"
has "members" "^jg kc-[-0-9a-f]+ /127.0.0.1 kc 2 - t:0,1 - -$" "$(row jg "$(groups --describe --group jg --members --verbose)")"
eq "state" "jg 127.0.0.1:9092 (1) range Stable 1" "$(row jg "$(groups --describe --group jg --state)")"
eq "list by state" "jg Stable" "$(row jg "$(groups --list --state stable)")"
eq "list by another state" "" "$(row jg "$(groups --list --state Empty)")"
has "reset under a member" "can only be reset if the group 'jg' is inactive" "$(groups --reset-offsets --group jg --all-topics --to-earliest --execute)"
has "delete under a member" "GroupNotEmptyException" "$(groups --delete --group jg)"
has "delete positions under a member" "GroupSubscribedToTopicException" "$(groups --delete-offsets --group jg --topic t)"
kill $member
wait_gone $member 20

eq "reset" "jg t 0 7" "$(row 'jg t 0' "$(groups --reset-offsets --group jg --topic t:0 --to-offset 7 --execute)")"
eq "after the reset" 7 "$("$PY" "$TESTLIB/group.py" position jg t 0)"
eq "dry run" "jg t 0 4" "$(row 'jg t 0' "$(groups --reset-offsets --group jg --topic t:0 --shift-by -3 --dry-run)")"
eq "after the dry run" 7 "$("$PY" "$TESTLIB/group.py" position jg t 0)"
has "delete positions" "t 0 Successful" "$(groups --delete-offsets --group jg --topic t:0 | squeeze)"
eq "after the deletion" -1 "$("$PY" "$TESTLIB/group.py" position jg t 0)"

read_offsets() {
    console --topic __consumer_offsets --partition "$1" --offset earliest --timeout-ms 5000 \
        --formatter "org.apache.kafka.tools.consumer.$2"
}
partition=$("$PY" -c "
h = 0
for c in b'jg': h = h * 31 + c
print(h % 50)")
out=$(read_offsets "$partition" OffsetsMessageFormatter)
has "positions, as Kafka's formatter shows them" \
    '\{"key":\{"type":1,"data":\{"group":"jg","topic":"t","partition":0\}\},"value":\{"version":3,"data":\{"offset":7,"leaderEpoch":-1,"metadata":"","commitTimestamp":[0-9]+\}\}\}' "$out"
has "a deleted position" '"topic":"t","partition":0\}\},"value":null\}' "$out"
out=$(read_offsets "$partition" GroupMetadataMessageFormatter)
has "a group, as Kafka's formatter shows it" '"group":"jg"\}\},"value":\{"version":3,"data":\{"protocolType":"consumer","generation":[0-9]+,"protocol":"range"' "$out"
has "an empty group" '"protocol":null,"leader":null,"currentStateTimestamp":[0-9]+,"members":\[\]' "$out"

has "delete" "Deletion of requested consumer groups \('jg'\) was successful" "$(groups --delete --group jg)"
has "describe what is gone" "does not exist" "$(groups --describe --group jg)"
eq "list afterwards" "" "$(groups --list)"
