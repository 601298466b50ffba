# SPDX-License-Identifier: Apache-2.0
# Bytes go bad in the logs of three brokers, that run or are stopped: in closed segments and in the newest one, of followers and of the
# leader; files are removed, the front and the index too. Nobody is served what was not written, nothing that was acknowledged is lost, and
# in the end the three have the same bytes again, without a hand laid on.
requires kcat jq
# timeout: 180
. "$TESTLIB/cluster.sh"
zookeeper_start
o=(--override log.scrub.interval.ms=300 --override min.insync.replicas=2 --override log.segment.bytes=4096 --override flush.policy=commit)
for n in 1 2 3; do broker_spawn $n "${o[@]}"; done
for n in 1 2 3; do wait_for 20 "broker $n listens" broker_up $n; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
A=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093
status 0 klog topic create r -p 1 -r 3 -b $A
n_sent=0
send() { # ROUND: 20 batches of 5 records
    seq -f "$1 %g $(printf %060d 7)" 100 | kcat -E -P -b $A -t r -p 0 -X acks=all -X enable.idempotence=true -X batch.num.messages=5 2>>kcat.log ||
        fail "kcat ends with $?"
    n_sent=$((n_sent + 100))
}
leader() { klog topic describe r -b $A --json 2>/dev/null | jq '.leader // empty'; }
all_in_sync() { [ "$(klog topic describe r -b $A --json 2>/dev/null | jq -c '.isr | sort')" = '[1,2,3]' ]; }
bytes_of() { (cd "$T/b$1/r-0" && md5sum -- *.log | sort -k 2); }
are_the_same() { all_in_sync && [ "$(bytes_of 1)" = "$(bytes_of 2)" ] && [ "$(bytes_of 1)" = "$(bytes_of 3)" ]; }
log_of() { echo "$T/b$1/r-0/$(printf %020d.log 0)"; }
newest_of() { ls "$T/b$1"/r-0/*.log | tail -n 1; }
third_of() { ls "$T/b$1"/r-0/*.log | sed -n 3p; }
flip() { # FILE: a byte in its middle
    $PY -c 'import os, sys
f = open(sys.argv[1], "r+b"); at = os.path.getsize(sys.argv[1]) // 2
f.seek(at); b = f.read(1); f.seek(at); f.write(bytes([b[0] ^ 0x41]))' "$1"
}
check() { # WHAT
    wait_for 60 "$1: all are in sync, with the same bytes" are_the_same
    kcat -C -b $A -t r -p 0 -o beginning -e -q 2>/dev/null | sort >got
    eq "$1: records" "$n_sent" "$(wc -l <got)"
    eq "$1: other records" 0 "$(sort -u got | grep -cvE '^[a-z]+ [0-9]+ 0{59}7$')"
    eq "$1: twice" 0 "$(uniq -d got | wc -l)"
}
send a
check "at first"
l=$(leader) f=$((l % 3 + 1))

flip "$(third_of $f)"
wait_for 30 "the follower finds out" grep -q "r-0: records from offset .* cannot be read (they are damaged)" "$T/klogd$f.log"
send b
check "a follower's closed segment"

flip "$(third_of "$l")"
wait_for 30 "the leader finds out" grep -q "r-0: records from offset .* cannot be read (they are damaged)" "$T/klogd$l.log"
send c
check "the leader's closed segment"
[ "$(leader)" != "$l" ] || grep -q "r-0: broker [^$l] leads" "$T"/klogd?.log || fail "it went on leading"

l=$(leader) f=$((l % 3 + 1))
rm "$(third_of $f)"
wait_for 30 "a missing file is found" grep -q "r-0: records from offset .* cannot be read (No such file" "$T/klogd$f.log"
check "a file was removed from a running follower"
flip "$(newest_of $f)"
send d
check "a follower's newest segment"

broker_stop $f
rm "$(log_of $f)"
broker_start $f "${o[@]}"
check "the front is missing"
broker_kill $f
flip "$(third_of $f)"
truncate -s 0 "$(newest_of $f)"
rm "$T/b$f"/r-0/*index
broker_start $f "${o[@]}"
send e
check "damaged while it was stopped"
