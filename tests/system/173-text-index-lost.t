# SPDX-License-Identifier: Apache-2.0
# All .text files of a log whose front is gone are lost, and its checkpoint too: the mount shows as many bytes as can be read, at the
# positions where they are read, while files stay open over it and afterwards.
requires kcat
klogd_start --override log.retention.check.interval.ms=50
topic t1 segment.bytes=2048
mount_start
lines() { seq -f 'line %06g' "$1" "$2" | $K -P -t t1 -p 0 -X batch.num.messages=20; }
lines 1 2000
status 0 klog config set topic t1 retention.bytes=8000
front_gone() { [ "$(start_offset)" -gt 1000 ]; }
wait_for 10 "retention" front_gone
right() {
    local size
    consume >want
    size=$(stat -c %s want)
    eq "$1: size" "$size" "$(stat -c %s $P)"
    same "$1: cat" want <(cat $P)
    eq "$1: tail" "$(tail -n 2 want)" "$(tail -n 2 $P)"
    for at in 0 12 1200 $((size - 60)); do
        eq "$1: at $at" "$(tail -c +$((at + 1)) want | head -c 24)" "$(dd if=$P iflag=skip_bytes,count_bytes skip=$at count=24 status=none)"
    done
    eq "$1: past the end" "" "$(dd if=$P iflag=skip_bytes skip=$size count=1 status=none 2>&1)"
}
right "before"
tail -f -n 1 $P >tailed & TAIL=$!
wait_lines tailed 1
klogd_stop
rm "$D"/t1-0/*.text
klogd_restart
same "what can be read" want <(consume)
lines 2001 2010
wait_lines tailed 11
eq "tail -f over it" "$(seq -f 'line %06g' 2000 2010)" "$(cat tailed)"
kill $TAIL
wait $TAIL
settled() { [ "$(stat -c %s $P)" = "$(consume | wc -c)" ]; }
wait_for 10 "the right size" settled
right "the text index is gone"
klogd_stop
rm "$D"/t1-0/*.text "$D/t1-0/partition.checkpoint"
klogd_restart
wait_for 10 "the right size" settled
right "the checkpoint is gone too"
lines 2011 2020
right "new lines after that"
