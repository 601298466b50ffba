# SPDX-License-Identifier: Apache-2.0
# Batches of every codec are stored and given back as they were sent; the mount shows their lines.
# https://github.com/IBM/sarama/issues/875 https://github.com/dpkp/kafka-python/pull/522
# https://github.com/dpkp/kafka-python/issues/2414 https://github.com/dpkp/kafka-python/issues/2187
# https://github.com/kafka-protocol-rs/kafka-protocol-rs/issues/148 https://github.com/aio-libs/aiokafka/issues/1112
scene
topic cz
for z in gzip snappy lz4 zstd; do seq 1000 | $K -P -t cz -p 0 -z $z -X linger.ms=50; done
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
