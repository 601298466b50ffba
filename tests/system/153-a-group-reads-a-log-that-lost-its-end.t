# SPDX-License-Identifier: Apache-2.0
# A log may lose its end in a power cut (flush.policy=async). A group's position behind it goes back to where the epoch of the record
# before it ended, or to the end where no epoch is known; that is said once, no record that comes then is skipped, none that is still
# there is given twice, and lag is never negative.
# https://github.com/confluentinc/librdkafka/pull/4122 https://issues.apache.org/jira/browse/KAFKA-6880
requires getfattr
klogd_start --override group.initial.rebalance.delay.ms=0
lines() { seq -f "$1%03g" "$2" "$3"; }
# each a batch of its own, 75 bytes
fill() { for i in $(seq "$2" "$3"); do printf '%s%03d\n' "$1" "$i"; done | $K -P -t "$4" -p 0 -X batch.num.messages=1; }
lose() { # TOPIC RECORDS: what was written after that many is gone, as after a power cut
    local log
    log=$(ls "$D/$1-0"/*.log)
    truncate -s $(($(stat -c %s "$log") / 20 * $2)) "$log"
}
said() { grep -c "$1" "$2"; }
for t in told untold grown stream run tool; do
    topic $t flush.policy=async
    fill old 0 19 $t
done
mount_start
for g in told grown; do eq "all is read" "$(lines old 0 19)" "$(cat "$M/$g/as/g/p0")"; done
for t in untold tool; do
    mkdir "$M/$t/.groups/g"
    echo 20 >"$M/$t/.groups/g/p0"
done
timeout 60 klog run -g g run -- cat >run.out || fail "klog run"
cat "$M/stream/as/g/follow/p0" >stream.out 19>&- &
reader=$!
wait_lines stream.out 20
klogd_kill
for t in told untold grown stream run tool; do lose $t 9; done
klogd_restart
eq "the log" "$(lines old 0 8)" "$(consume told)"
fill NEW 0 29 grown # past the position, before anybody looks
eq "lag as the mount tells it" 0 "$(getfattr --absolute-names --only-values -n user.klog.lag "$M/tool/.groups/g/p0")"
has_not "lag in .status" "-[0-9]" "$(cat "$M/tool/.groups/g/.status")"
has_not "lag of klog group describe" '-[0-9]' "$(klog group describe g 2>&1 | awk '{ print $5, $6 }')"
for t in told untold; do
    eq "$t: nothing is there to read" "" "$(cat "$M/$t/as/g/p0")"
    eq "$t: and that is the position" 9 "$(cat "$M/$t/.groups/g/p0")"
    fill NEW 0 4 $t
    eq "$t: what came" "$(lines NEW 0 4)" "$(cat "$M/$t/as/g/p0")"
    eq "$t: said once" 1 "$(said "$t/as/g/p0: the log lost its end: offsets 9 to 19 are gone, reading goes on at 9" "$KLOGFS_LOG")"
done
eq "a log that has grown past the position" "$(lines NEW 0 29)" "$(cat "$M/grown/as/g/p0")"
fill NEW 0 14 stream
wait_lines stream.out 35
kill $reader
wait_gone $reader
eq "a reader that waited" "$(lines old 0 19; lines NEW 0 14)" "$(cat stream.out)"
eq "it was told once" 1 "$(said "stream/as/g/p0: the log lost its end" "$KLOGFS_LOG")"
# klog run: by the epoch, and without one
eq "klog run: nothing is there" "" "$(timeout 60 klog run -g g run -- cat 2>run.err)"
eq "klog run: said once" 1 "$(said 'run partition 0: the log lost its end: offsets 9 to 19 are gone; going on at 9' run.err)"
fill NEW 0 4 run
eq "klog run: what came" "$(lines NEW 0 4)" "$(timeout 60 klog run -g g run -- cat 2>run.err)"
eq "klog run says nothing more" "" "$(cat run.err)"
eq "klog run: no epoch" "" "$(timeout 60 klog run -g g tool -- cat 2>run.err)"
has "klog run: no epoch" 'offsets 9 to 19 are gone; going on at 9' "$(cat run.err)"
fill NEW 0 4 tool
eq "klog run: what came" "$(lines NEW 0 4)" "$(timeout 60 klog run -g g tool -- cat)"
