# SPDX-License-Identifier: Apache-2.0
# On a partition of 2 GB, tail -n 3, wc -c and stat read almost nothing, right after a restart as well; nor do a read in the middle, an
# offset by time, and the start of klogd after a clean stop.
# timeout: 240
[ "$(df --output=avail -B1M "$T" | tail -n1)" -gt 6000 ] || skip "needs 6 GB of disk"
klogd_start --override flush.policy=async
topic big
mount_start
P=$M/big/p0
"$PY" - <<'X' || fail "filling"
from kwire import Conn, batch
c = Conn(timeout=60)
lines = [b"line %07d of a batch, " % i + b"." * 975 for i in range(1000)]      # 1000 bytes and the newline
body = c.produce_body("big", 0, batch(lines, ts=1700000000000))
waiting = []
for i in range(2048):
    waiting.append((i, c.send(0, 7, body)))
    if len(waiting) > 4:
        n, corr = waiting.pop(0)
        assert c.produced(c.reply(corr)) == (0, n * 1000)
for n, corr in waiting:
    assert c.produced(c.reply(corr)) == (0, n * 1000)
X
size=$((2048 * 1000 * 1001))
eq "size" $size "$(stat -c %s "$P")" # the first look may have to build the text index
io() { cat "/proc/$KLOGD_PID/io" "/proc/$KLOGFS_PID/io" | awk '$1 == "rchar:" { n += $2 } END { print n + 0 }'; }
quick() { # quick WHEN
    local read
    read=$(io)
    eq "wc -c ($1)" $size "$(wc -c <"$P")"
    eq "stat ($1)" $size "$(stat -c %s "$P")"
    tail -n 3 "$P" >last
    eq "lines of tail ($1)" "line 0000997 line 0000998 line 0000999" "$(cut -c1-12 last | tr '\n' ' ' | sed 's/ $//')"
    dd if="$P" bs=1001 skip=1234567 count=1 status=none >middle
    eq "the line there ($1)" "line 0000567" "$(cut -c1-12 middle)"
    between "bytes read for all that ($1)" 0 33554432 $(($(io) - read))
}
quick "warm"
mount_stop
klogd_stop
klogd_restart
between "bytes read by the start after a clean stop" 0 16777216 "$(awk '$1 == "rchar:" { print $2 }' "/proc/$KLOGD_PID/io")"
mount_start
quick "after a clean restart"
klogd_kill
klogd_restart
wait_for 20 "the mount is back" test -s "$P"
quick "after kill -9"
read=$(io)
eq "record by offset" 2000000 "$($KC -t big -p 0 -o 2000000 -c1 -f '%o')"
eq "offset by time" "(0, 0)" "$("$PY" -c "
from kwire import Conn
print(Conn().list_offset('big', 0, 1600000000000)[::2])")"
between "bytes read for both" 0 33554432 $(($(io) - read))
