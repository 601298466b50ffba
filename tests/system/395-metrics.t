# SPDX-License-Identifier: Apache-2.0
# What klogd tells those who watch it: figures that agree with what clients did, in text that Prometheus takes, and paths that
# say whether the broker lives and serves.
requires kcat curl
klogd --help >/dev/null || fail "klogd"
U=http://127.0.0.1:9644
status 1 klogd --override http.listener=9644 --print-config
has "a wrong address" 'http.listener: "9644" is not HOST:PORT' "$OUT"
klogd_start --override http.listener=127.0.0.1:9644 --override group.initial.rebalance.delay.ms=0
grep -q 'http.listener: .*built without libmicrohttpd' "$KLOGD_LOG" && skip "built without libmicrohttpd"
value() { "$PY" "$TESTLIB/scrape.py" $U/metrics "$@" | paste -sd' '; }
is() { [ "$(value "$2")" = "$1" ]; }
T=kafka_server_brokertopicmetrics

# a second one at the same address ends at once, and says what to do
status 2 klogd --override http.listener=127.0.0.1:9644 --override listeners=PLAINTEXT://127.0.0.1:0 --override log.dirs="$PWD/other"
has "an address in use" 'http.listener: 127.0.0.1:9644: Address already in use; stop what listens there or choose another port' "$OUT"

eq "alive" ok "$(curl -s $U/healthz)"
eq "ready" ok "$(curl -s $U/readyz)"

# records: three in a batch of 100 bytes, read twice, one of them by a group that goes as far as 2
topic t1 2
printf 'one\ntwo\nsix\n' | produce -t t1 -p 0
n=$(stat -c %s "$D/t1-0/"*.log)
$KC -t t1 -p 0 -o beginning -e >/dev/null || fail "read"
$KC -t t1 -p 0 -o beginning -e >/dev/null || fail "read again"
eq "in and out" "3 3 $n $n $((2 * n))" "$(value ${T}_messagesin_total ${T}_messagesin_total{topic=\"t1\"} ${T}_bytesin_total ${T}_bytesin_total{topic=\"t1\"} ${T}_bytesout_total{topic=\"t1\"})"
eq "the log" "$n 0 3 0 0" "$(value 'kafka_log_log_size{topic="t1",partition="0"}' 'kafka_log_log_logstartoffset{topic="t1",partition="0"}' \
    'kafka_log_log_logendoffset{topic="t1",partition="0"}' 'kafka_log_log_size{topic="t1",partition="1"}' 'kafka_log_log_logendoffset{topic="t1",partition="1"}')"
eq "replicas" "2 2 0 0 1 0 1 2 1" "$(value kafka_server_replicamanager_{partitioncount,leadercount,underreplicatedpartitions,offlinereplicacount} \
    kafka_controller_kafkacontroller_{activecontrollercount,offlinepartitionscount,globaltopiccount,globalpartitioncount} kafka_brokers)"
eq "requests" 1 "$(value 'kafka_network_requestmetrics_totaltimems_count{request="Produce"}')"
between "flushes" 1 100 "$(value kafka_log_logflushstats_logflushrateandtimems_count)"

# errors by code
eq "no error yet" - "$(value 'kafka_network_requestmetrics_errors_total{request="OffsetForLeaderEpoch",error="UNKNOWN_TOPIC_OR_PARTITION"}')"
"$PY" -c 'from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
for i in range(2):
    c.ask_msg("OffsetForLeaderEpoch", 2, topics=[dict(name="none", partitions=[dict(partition=p, current=-1, epoch=0) for p in range(3)])])' || fail "ask"
eq "six errors in two answers" "6 2" "$(value 'kafka_network_requestmetrics_errors_total{request="OffsetForLeaderEpoch",error="UNKNOWN_TOPIC_OR_PARTITION"}' \
    'kafka_network_requestmetrics_totaltimems_count{request="OffsetForLeaderEpoch"}')"

# a group, whose name is anything
"$PY" - <<'X' || fail "commit"
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
def commit():
    r = c.ask_msg("OffsetCommit", 2, group='a"\\\n<b>', generation=-1, member="", retention=-1,
        topics=[dict(name="t1", partitions=[dict(partition=0, offset=2, metadata="")])])
    return r["topics"][0]["partitions"][0]["error"]
import time
c.ask_msg("FindCoordinator", 0, key='a"\\\n<b>')
until = time.monotonic() + 20
while (e := commit()) in (14, 15, 16) and time.monotonic() < until:
    c.ask_msg("FindCoordinator", 0, key='a"\\\n<b>')
assert e == 0, e
X
G='consumergroup="a\"\\\n<b>",topic="t1",partition="0"'
eq "group" "1 2 1" "$(value kafka_coordinator_group_groupmetadatamanager_numgroups "kafka_consumergroup_current_offset{$G}" "kafka_consumergroup_lag{$G}")"
has "JSON" '"id":"a\\"\\\\\\u000a\\u003cb\\u003e"' "$(curl -s $U/status.json)"
curl -s $U/status.json | "$PY" -c 'import json, sys
s = json.load(sys.stdin)
t = [t for t in s["topics"] if t["name"] == "t1"][0]
assert (t["records_in"], t["n_partitions"], t["partitions"][0]["end"], s["groups"][0]["lag"]) == (3, 2, 3, 1), s' || fail "status.json"
curl -s $U/history.json | "$PY" -c 'import json, sys; h = json.load(sys.stdin); assert len(h["samples"]) >= 1 and len(h["samples"][0]) == len(h["fields"])' || fail "history.json"

# connections: the listener's are counted while they are open, this one's too
eq "none" 0 "$(value 'klog_connections{listener="PLAINTEXT"}')"
exec 3<>/dev/tcp/127.0.0.1/9092
wait_for 10 "one connection" is 1 'klog_connections{listener="PLAINTEXT"}'
exec 3>&-
wait_for 10 "none" is 0 'klog_connections{listener="PLAINTEXT"}'
eq "nothing is under way" "0 0" "$(value klog_requests_under_way klog_flush_queue_partitions)"

# a deleted topic's series go, its share of the totals stays
before=$(value ${T}_bytesout_total)
eq "read" $((2 * n)) "$before"
"$PY" "$TESTLIB/topic.py" delete t1 || fail "delete"
eq "deleted" "- $before" "$(value ${T}_bytesout_total{topic=\"t1\"} ${T}_bytesout_total)"

# Prometheus' own judge, where there is one
if command -v promtool >/dev/null; then
    curl -s $U/metrics | promtool check metrics || fail "promtool"
fi

# ---- strangers ----
code() { curl -s -o /dev/null -w '%{http_code}' "$@"; }
eq "codes" "404 404 405 405 200 200" "$(code $U/etc/passwd) $(code --path-as-is $U/../../etc/passwd) $(code -X POST -d x $U/metrics) $(code -X DELETE $U/) $(code -I $U/metrics) $(code "$U/metrics?x=1")"
# requests that are none, never end, or have no end of headers; and more connections than are taken
"$PY" - <<'X' || fail "strangers"
import socket
def say(data):
    s = socket.create_connection(("127.0.0.1", 9644), timeout=20)
    try:
        s.sendall(data)
    except ConnectionError:
        pass
    s.close()
for data in (b"\0" * 1000, b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
             b"GET / HTTP/1.1\r\nHost: a\r\n" + b"x: y\r\n" * 20000, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n" + b"z" * 70000,
             b"GET /%00%ff%2e%2e/ HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"):
    say(data)
idle = [socket.create_connection(("127.0.0.1", 9644)) for _ in range(200)]
for s in idle:
    s.close()
X
wait_for 20 "it answers again" curl -sf $U/healthz
echo more | produce -t t2 -p 0

# ---- stopping ----
klogd_stop
fails 'Failed to connect|Connection refused|Couldn.t connect' curl -sS $U/healthz
has_not "sanitizers" 'ERROR|runtime error' "$(cat "$KLOGD_LOG")"
