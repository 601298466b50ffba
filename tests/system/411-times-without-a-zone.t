# SPDX-License-Identifier: Apache-2.0
# A day, and a day with a time, that name no zone are local time, for the tool and on the mount alike.
requires jq
export TZ=CET-1CEST,M3.5.0,M10.5.0/3
klogd_start
topic t1 1 retention.ms=-1
mount_start
"$PY" -c "
from datetime import datetime
from kwire import Conn, batch
c = Conn()
for i, t in enumerate(('01T22:59:59', '01T23:00:00', '02T00:00:00', '02T02:04:05', '02T03:04:05')):
    assert c.produce('t1', 0, batch([b'x'], ts=1000 * int(datetime.fromisoformat('2026-01-%s+00:00' % t).timestamp()))) == (0, i)"
at() { # at TIME OFFSET
    eq "klog at $1" "$2" "$(klog offsets t1 --at "$1" --json | jq -r .at)"
    echo "@$1" >"$M/t1/.groups/g/p0" || fail "@$1 is refused"
    eq "the mount at $1" "$2" "$(cat "$M/t1/.groups/g/p0")"
}
mkdir "$M/t1/.groups/g"
at 2026-01-02 1
at 2026-01-02T00:00:00Z 2
at 2026-01-02T00:00:00 1
at 2026-01-02T03:04:05 3
at '2026-01-02 03:04:05' 3
at 2026-01-02T03:04:05Z 4
at 2026-01-02T03:04:05+01:00 3
at "$(date -d 2026-01-02 +%s)" 1
mount_stop
klogd_stop
