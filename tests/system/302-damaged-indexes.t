# SPDX-License-Identifier: Apache-2.0
# Index files are caches: missing, empty, zeroed, too long or random ones are rebuilt without anybody's help.
# https://github.com/bitnami/bitnami-docker-kafka/issues/34 https://github.com/redpanda-data/redpanda/issues/10118
# https://github.com/nats-io/nats-server/issues/4842 https://github.com/nats-io/nats-streaming-server/issues/1086
# timeout: 120
klogd_start
topic ix 1 segment.bytes=1048576
for i in $(seq 40); do
    head -c 90000 /dev/urandom | base64 -w0
    echo
done | produce -t ix -p 0 -X batch.num.messages=1
want=$(consume ix | md5sum)
sizes=$(consume ix -f '%o %S\n')
looks() {
    eq "content ($1)" "$want" "$(consume ix | md5sum)"
    for o in 0 13 39; do
        eq "offset $o ($1)" "$(grep "^$o " <<<"$sizes")" "$($KC -t ix -p 0 -o $o -c1 -e -f '%o %S\n')"
    done
    eq "offset by time ($1)" "(0, 0)" "$("$PY" -c "
import time
from kwire import Conn
print(Conn().list_offset('ix', 0, int(time.time() * 1000) - 600000)[::2])")"
}
damage() {
    local f=("$D"/ix-0/*index)
    [ ${#f[@]} -ge 5 ] || fail "only ${#f[@]} index files"
    rm "${f[0]}"
    : >"${f[1]}"
    head -c 4096 /dev/zero >"${f[2]}"
    printf abc >>"${f[3]}"
    head -c 64 /dev/urandom | dd of="${f[4]}" conv=notrunc status=none
}
for way in kill stop; do
    klogd_$way
    damage
    klogd_restart
    looks "after $way and damage"
done
klogd_stop
rm "$D"/ix-0/*index
klogd_restart
looks "without any index"
# What index files there are after a clean stop are whole: each entry is 8 bytes and points at a batch.
klogd_stop
"$PY" - "$D/ix-0" <<'X' || fail "entries of the offset index"
import glob, struct, sys
for log in sorted(glob.glob(sys.argv[1] + "/*.log")):
    b = open(log, "rb").read()
    at, starts, base = 0, {}, int(log[-24:-4])
    while at < len(b):
        starts[at] = struct.unpack_from(">q", b, at)[0]
        at += 12 + struct.unpack_from(">i", b, at + 8)[0]
    try:
        ix = open(log[:-4] + ".index", "rb").read()
    except FileNotFoundError:
        continue
    assert len(ix) % 8 == 0, log
    was = -1
    for rel, pos in struct.iter_unpack(">ii", ix):
        assert pos in starts and pos > was, (log, rel, pos)
        was = pos
X
