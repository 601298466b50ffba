# SPDX-License-Identifier: Apache-2.0
# Records with old timestamps expire, the active segment included, and offsets never start again.
# https://github.com/confluentinc/librdkafka/issues/1238 https://github.com/redpanda-data/docs/pull/116
# https://github.com/bitnami/containers/issues/78629
klogd_start --override log.retention.check.interval.ms=200
topic old 1 retention.ms=1000
"$PY" -c "
from kwire import Conn, batch
c = Conn()
for i in range(3):
    assert c.produce('old', 0, batch([b'x'], ts=1700000000))[0] == 0"
wait_for 20 "the three records expire" eval '[ "$(start_offset old)" = 3 ]'
eq "end offset" 3 "$(end_offset old)"
"$PY" -c "
from kwire import Conn, batch
assert Conn().produce('old', 0, batch([b'n'])) == (0, 3)" || fail "the next record"
klogd_kill
klogd_restart
eq "end offset after kill -9" 4 "$(end_offset old)"
