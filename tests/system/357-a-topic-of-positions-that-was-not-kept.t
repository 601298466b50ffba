# SPDX-License-Identifier: Apache-2.0
# Earlier versions let __consumer_offsets be set to cleanup.policy=delete, and be grown. The first is treated as compact, and of both
# the log says what to do.
klogd_start --override offsets.topic.num.partitions=2
"$PY" - <<'X' || fail "before"
from kgroup import *
from kwire import *
c = GroupConn(timeout=30)
assert c.create_topic("t")[0] == 0
c.until_loaded()
for g in "g", "h":
    while c.commit(g, {"t": [(0, 5)]}) != {("t", 0): 0}: pass
# a record of the group where it would stand if there were only one partition: "h" is 104, "g" 103
key = i16(1) + string("g") + string("t") + i32(0)
value = i16(3) + i64(77) + i32(-1) + string("") + i64(1 << 60)
body = string(None) + i16(-1) + i32(5000) + array([string("__consumer_offsets") + array([i32(0) + data(batch([(key, value)]))])])
r = c.reply(c.send(0, 7, body, client="__admin_client"))
r.i32(), r.string(), r.i32(), r.i32()
assert r.i16() == 0
X
klogd_stop
# an entry of the journal: the settings of the topic, as an earlier version could leave them
"$PY" - "$D/registers.journal" <<'X' || fail "settings"
import struct, sys
from kwire import CRC_TABLE
def crc(c, b):
    c ^= 0xFFFFFFFF
    for x in b:
        c = CRC_TABLE[(c ^ x) & 255] ^ (c >> 8)
    return c ^ 0xFFFFFFFF
b = bytearray(open(sys.argv[1], "rb").read())
seed = struct.unpack_from(">I", b, 12)[0]
at, changed = 48, 0
while b[at:at + 4] == b"KRGF":
    n = struct.unpack_from(">I", b, at + 4)[0]
    end = at + 20 + n
    if b"/config/topics/__consumer_offsets" in b[at:end]:
        new = b[at:end].replace(b'"cleanup.policy":"compact"', b'"cleanup.policy":"delete" ')
        changed += new != b[at:end]
        b[at:end] = new
        struct.pack_into(">I", b, at + 8, crc(seed, b[at + 12:end]))
    at = end
assert changed == 1, changed
open(sys.argv[1], "wb").write(b)
X
klogd_start --override offsets.topic.num.partitions=2
has "settings" 'cleanup.policy +compact' "$(klog config get topic __consumer_offsets)"
has "log" 'WARN .*topic __consumer_offsets: its cleanup.policy is delete, .* treated as compact; klog config set topic __consumer_offsets cleanup.policy=compact makes it so' "$(cat "$KLOGD_LOG")"
"$PY" - <<'X' || fail "positions"
from kgroup import *
c = GroupConn(timeout=30)
for g in "g", "h":
    while True:
        code, got = c.positions(g)
        if code == 0: break
    assert got[("t", 0)][0] == 5, (g, got)
assert sorted(c.groups()[1]) == ["g", "h"]
assert c.delete_groups("g") == {"g": 0} and sorted(c.groups()[1]) == ["h"]
X
wait_for 10 "the log says it" grep -q 'WARN .*__consumer_offsets-0: 1 records are of groups that belong to other partitions of the 2: the topic has been grown; .* klog group reset' "$KLOGD_LOG"
status 0 klog config set topic __consumer_offsets cleanup.policy=compact
klogd_stop
klogd_start
eq "lines after it was set" 1 "$(grep -c 'treated as compact' "$KLOGD_LOG")"
klogd_stop
