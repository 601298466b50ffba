# SPDX-License-Identifier: Apache-2.0
# Batches of every codec are stored and given back as they were sent; the mount shows their lines.
# https://github.com/IBM/sarama/issues/875 https://github.com/dpkp/kafka-python/pull/522
# https://github.com/dpkp/kafka-python/issues/2414 https://github.com/dpkp/kafka-python/issues/2187
# https://github.com/kafka-protocol-rs/kafka-protocol-rs/issues/148 https://github.com/aio-libs/aiokafka/issues/1112
scene
topic cz
for z in gzip snappy lz4 zstd; do seq 1000 | produce -t cz -p 0 -z $z -X linger.ms=50; done
want=$(for i in 1 2 3 4; do seq 1000; done | md5sum)
eq "through kcat" "$want" "$(consume cz -X check.crcs=true | md5sum)"
eq "through the mount" "$want" "$(cat "$M/cz/p0" | md5sum)"
"$PY" - "$D/cz-0/00000000000000000000.log" <<'X' || fail "stored bytes"
import sys
from kwire import batches
b = batches(open(sys.argv[1], 'rb').read())
assert {x.attributes & 7 for x in b} == {1, 2, 3, 4}, [x.attributes for x in b]
assert all(x.crc_good() for x in b)
X
"$PY" - <<'X' || fail "zstd and old requests"
from kwire import Conn, batch
c = Conn()
# zstd needs Produce 7.
assert c.produce("cz", 0, batch([b"x"], squeeze=lambda b: b, attributes=4), version=5)[0] == 76
X

# A topic may have a codec of its own: what comes otherwise is packed anew, and every client reads the same.
for own in uncompressed gzip snappy lz4 zstd; do
    topic own-$own 1 compression.type=$own
    for z in none gzip snappy lz4 zstd; do seq 1000 | produce -t own-$own -p 0 -z $z -X linger.ms=50 -X enable.idempotence=true; done
    eq "$own: through kcat" "$(for i in 1 2 3 4 5; do seq 1000; done | md5sum)" "$(consume own-$own -X check.crcs=true | md5sum)"
    eq "$own: through the mount" "$(for i in 1 2 3 4 5; do seq 1000; done | md5sum)" "$(cat "$M/own-$own/p0" | md5sum)"
    "$PY" - "$D/own-$own-0/00000000000000000000.log" $own <<'X' || fail "what is kept of $own"
import sys
from kwire import Conn, batches
b = batches(open(sys.argv[1], "rb").read())
assert {x.attributes & 7 for x in b} == {["uncompressed", "gzip", "snappy", "lz4", "zstd"].index(sys.argv[2])}, [x.attributes for x in b]
assert all(x.crc_good() for x in b)
# Old fetches cannot know zstd (KIP-110).
assert Conn().fetch("own-" + sys.argv[2], 0, 0)[0] == (76 if sys.argv[2] == "zstd" else 0)
X
done
status 0 klog config set topic own-zstd compression.type=producer
eq "an old fetch of what is packed with zstd already" 0 "$("$PY" -c 'from kwire import Conn; print(Conn().fetch("own-zstd", 0, 0)[0])')"
