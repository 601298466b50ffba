# SPDX-License-Identifier: Apache-2.0
# klog cluster import: a broker with topics, records, settings and a group becomes the first of a cluster, and keeps all of it;
# interrupted, it goes on; what cannot be is refused, and nothing is lost by it.
# timeout: 120
. "$TESTLIB/cluster.sh"
requires kcat jq
zookeeper_start
cleanup_fn cluster_down

cat >"$T/klogd.properties" <<EOF
listeners=PLAINTEXT://127.0.0.1:9092
log.dirs=$D
zookeeper.session.timeout.ms=1000
EOF
klogd "$T/klogd.properties" >>"$KLOGD_LOG" 2>&1 19>&- &
KLOGD_PID=$!
wait_for 15 "klogd listens" klogd_up
topic orders 3 retention.ms=7200000
seq 1 1000 | produce -t orders -p 1
status 0 klog group reset orders-readers --topic orders --to-offset 7 --execute -b $B
before=$(klog topic describe orders -b $B)
positions=$(klog group describe orders-readers -b $B)
klogd_stop

# without ZooKeeper named, with one that is silent, with a klogd on the directories: no
fails 'zookeeper.connect is not set' klog cluster import "$T/klogd.properties"
fails 'does not answer' klog cluster import "$T/klogd.properties" --zookeeper 127.0.0.1:2/klog
klogd "$T/klogd.properties" >>"$KLOGD_LOG" 2>&1 19>&- &
KLOGD_PID=$!
wait_for 15 "klogd listens" klogd_up
fails 'another (klogd|daemon|process)|is in use|already' klog cluster import "$T/klogd.properties" --zookeeper 127.0.0.1:2181/klog
klogd_stop
# and it does not start on ZooKeeper as if it had no topics
fails 'klog cluster import' klogd "$T/klogd.properties" --override zookeeper.connect=127.0.0.1:2181/klog
[ -e "$D/registers.journal" ] || fail "the registers are gone"

# interrupted at a write to ZooKeeper's port, it goes on
if command -v strace >/dev/null; then
    for n in 6 9; do
        strace -f -qq -o /dev/null -e trace=sendto,writev -e inject=sendto:signal=KILL:when=$n \
            klogd --import "$T/klogd.properties" --override zookeeper.connect=127.0.0.1:2181/klog >"$T/killed.log" 2>&1
        [ -e "$D/registers.journal" ] || break
    done
fi
if [ -e "$D/registers.journal" ]; then
    status 0 klog cluster import "$T/klogd.properties" --zookeeper 127.0.0.1:2181/klog
    has "what import says" '^[0-9]+ registers are at 127.0.0.1:2181/klog now' "$OUT"
fi
[ ! -e "$D/registers.journal" ] || fail "the journal is there still"
[ -e "$D/registers.journal.imported" ] || fail "the journal is gone"
fails 'imported before' klog cluster import "$T/klogd.properties" --zookeeper 127.0.0.1:2181/klog
fails 'registers' klogd "$T/klogd.properties"

echo "zookeeper.connect=127.0.0.1:2181/klog" >>"$T/klogd.properties"
klogd "$T/klogd.properties" >>"$KLOGD_LOG" 2>&1 19>&- &
KLOGD_PID=$!
wait_for 20 "klogd listens" klogd_up
consume orders -p 1 >"$T/consumed"
seq 1 1000 | same "the records" "$T/consumed" -
eq "the positions" "$positions" "$(klog group describe orders-readers -b $B)"
epochless() { sed 's/epoch [0-9]*//g' <<<"$1"; }
eq "the topic" "$(epochless "$before")" "$(epochless "$(klog topic describe orders -b $B)")"
seq 1001 1010 | produce -t orders -p 1
eq "records" 1010 "$(consume orders -p 1 | wc -l)"

# the path is another cluster's now
mkdir "$T/other"
sed "s,^log.dirs=.*,log.dirs=$T/other," "$T/klogd.properties" | grep -v zookeeper.connect >"$T/other.properties"
klogd --override listeners=PLAINTEXT://127.0.0.1:9099 --override log.dirs="$T/other" >"$T/other.log" 2>&1 19>&- &
other=$!
wait_for 15 "the other listens" port_open 9099
kill $other
wait $other
fails 'registers of another cluster' klog cluster import "$T/other.properties" --zookeeper 127.0.0.1:2181/klog
[ -e "$T/other/registers.journal" ] || fail "the other's registers are gone"
klogd_stop
