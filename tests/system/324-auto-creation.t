# SPDX-License-Identifier: Apache-2.0
# Topics are made only by those who ask for it; with the switch on, the first record arrives soon.
# https://github.com/streamnative/kop/pull/274 https://github.com/confluentinc/confluent-kafka-dotnet/issues/1622
# https://github.com/confluentinc/librdkafka/issues/3395
scene
has "listing" 'Unknown topic or partition' "$(timeout 20 kcat -b $B -L -t typo1 -X allow.auto.create.topics=false 2>&1)"
fails 'Unknown topic or partition' timeout 20 kcat -b $B -C -t typo2 -e -X allow.auto.create.topics=false
fails 'No such file' cat "$M/typo3/p0"
eq "topics on the mount" t1 "$(ls "$M")"
eq "topics" t1 "$("$PY" "$TESTLIB/topic.py" list)"
"$PY" - <<'X' || fail "flag in the request"
from kwire import Conn, array, string, i8, batch
c = Conn()
def ask(version, name, flag):
    r = c.ask(3, version, array([string(name)]) + i8(flag))
    r.i32()
    r.array(lambda: (r.i32(), r.string(), r.i32(), r.string()))
    r.string(), r.i32(), r.i32()
    return r.i16()
assert ask(4, "typo4", 0) == 3
assert ask(4, "typo4", 0) == 3
assert "typo4" not in c.metadata()
assert c.produce("typo5", 0, batch([b"x"]))[0] == 3, "producing alone makes nothing"
assert "typo5" not in c.metadata()
X

echo v | timeout 20 kcat -b $B -q -P -t new1 || fail "produce to a new topic"
eq "the record" v "$(consume new1)"
wait_for 3 "the mount lists it" test -e "$M/new1/p0"
mount_stop
klogd_stop
klogd_start --override auto.create.topics.enable=false
fails . timeout 20 kcat -b $B -P -t new2 -X message.timeout.ms=2000 /etc/hostname
has_not "topics with the switch off" new2 "$("$PY" "$TESTLIB/topic.py" list)"
