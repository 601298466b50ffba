# SPDX-License-Identifier: Apache-2.0
# One of two log directories of a broker dies under load: what it led there others lead, its other directory goes on, nothing that was
# acknowledged is lost. Started again without that directory the broker copies into the good one what it had in the dead one.
# timeout: 120
requires kcat jq mkfs.ext4 losetup
. "$TESTLIB/cluster.sh"
truncate -s 48M disk.img
mkfs.ext4 -q -F disk.img || skip "mkfs.ext4 fails"
mkdir -p "$T/b1" "$T/b1x"
mount -o loop disk.img "$T/b1x" 2>/dev/null || skip "needs loop devices"
cleanup_fn 'umount -l "$T/b1x" 2>/dev/null'
zookeeper_start
o=(--override min.insync.replicas=2 --override auto.leader.rebalance.enable=false --override log.dirs="$T/b1,$T/b1x")
broker_spawn 1 "${o[@]}"
for n in 2 3; do broker_spawn $n --override min.insync.replicas=2; done
for n in 1 2 3; do wait_for 20 "broker $n listens" broker_up $n; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 2"
A=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9091
status 0 klog topic create r -p 6 -r 3 -b $A
n_sent=0
send() {
    local p
    for p in 0 1 2 3 4 5; do
        seq -f "$1 $p %g" 50 | timeout 60 kcat -E -P -b $A -t r -p $p -X acks=all -X enable.idempotence=true 2>>kcat.log || fail "$1: kcat ends with $?"
    done
    n_sent=$((n_sent + 300))
}
send before
in_dead=$(cd "$T/b1x" && echo r-*)
eq "partitions in the second directory" 3 "$(wc -w <<<"$in_dead")"
$PY -c 'import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack("I", 2))' "$T/b1x" || skip "the file system cannot be shut down"
send while
members_of() { partitions_of 2 r | sed -n "s/^$1 leader \([0-9-]*\) .* isrs \(.*\)/\1 \2/p"; }
gone_from_dead() { local p; for p in $in_dead; do [[ $(members_of "${p#r-}") != *1* ]] || return 1; done; }
wait_for 30 "others lead what lay there, and do not wait for it" gone_from_dead
for p in 0 1 2 3 4 5; do
    [[ " $in_dead " == *" r-$p "* ]] || has "partition $p in the good directory" ' 1,2,3$' "$(members_of $p)"
done
gone "${BROKER_PIDS[1]}" && fail "the broker ended"
has "the log says so" "log directory $T/b1x failed: .*; its partitions are offline" "$(cat "$T/klogd1.log")"
send after

kill -TERM "${BROKER_PIDS[1]}"
wait "${BROKER_PIDS[1]}"
eq "exit status after a directory has failed" 4 $?
umount -l "$T/b1x"
broker_start 1 --override min.insync.replicas=2 --override auto.leader.rebalance.enable=false --override log.dirs="$T/b1"
all_in_sync() { [ "$(partitions_of 2 r | grep -c ' isrs 1,2,3$')" = 6 ]; }
wait_for 30 "all are in sync again" all_in_sync
same_bytes() { local p; for p in 0 1 2 3 4 5; do [ "$(md5sum "$T"/b[123]/r-$p/*.log | cut -c 1-32 | sort -u | wc -l)" = 1 ] || return 1; done; }
wait_for 20 "the logs are the same bytes, all in the good directory" same_bytes
eq "records" "$n_sent" "$(for p in 0 1 2 3 4 5; do kcat -C -b $A -t r -p $p -o beginning -e -q 2>/dev/null; done | sort -u | wc -l)"
