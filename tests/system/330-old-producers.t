# SPDX-License-Identifier: Apache-2.0
# Producers of old protocol versions get consecutive offsets or a clean refusal; everything on disk is format 2, offsets dense.
# https://github.com/confluentinc/librdkafka/issues/1192 https://github.com/apache/kafka/pull/7628
# https://github.com/apache/kafka/pull/764 https://github.com/IBM/sarama/pull/1002
# timeout: 120
requires_python kafka
klogd_start
topic om
"$PY" - <<'X' || fail "old producers"
import logging
logging.disable(logging.CRITICAL)
from kafka import KafkaProducer
from kafka.errors import KafkaError
end = 0
for v in (0, 9), (0, 10, 0), (0, 11), (1, 0), (2, 4):
    for z in None, "gzip", "snappy", "lz4":
        try:
            p = KafkaProducer(bootstrap_servers="127.0.0.1:9092", api_version=v, compression_type=z, retries=0, request_timeout_ms=5000)
            fs = [p.send("om", b"%d" % i, partition=0) for i in range(5)]
            got = [f.get(10).offset for f in fs]
            assert got == list(range(end, end + 5)), (v, z, got, end)
            end += 5
        except KafkaError as e:
            assert v < (0, 11), (v, z, e)      # refused, not broken
            assert type(e).__name__ in ("UnsupportedForMessageFormatError", "UnsupportedVersionError", "KafkaConnectionError", "InvalidRecordError", "UnknownError", "KafkaTimeoutError"), repr(e)
        except AssertionError as e:
            if "Libraries for" not in str(e):
                raise
        p.close()
assert end >= 5
X
n=$(end_offset om)
eq "offsets" "$(seq 0 $((n - 1)) | tr '\n' ' ')" "$(consume om -f '%o ')"
"$PY" - "$D"/om-0/*.log <<'X' || fail "format on disk"
import sys
for f in sys.argv[1:]:
    b, o = open(f, "rb").read(), 0
    while o + 17 <= len(b):
        assert b[o + 16] == 2, (f, o, b[o + 16])
        o += 12 + int.from_bytes(b[o + 8:o + 12], "big")
X
