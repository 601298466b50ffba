# SPDX-License-Identifier: Apache-2.0
# klog offsets shows both ends, and the first record from a time on.
requires jq
klogd_start
topic t1 2
"$PY" -c "
from kwire import Conn, batch
c = Conn()
for i in range(5):
    assert c.produce('t1', 1, batch([b'x'], ts=1700000000000 + i * 1000)) == (0, i)"
eq "ends" '0 0 0
1 0 5' "$(klog offsets t1 --json | jq -r '"\(.partition) \(.earliest) \(.latest)"')"
eq "at a time" 3 "$(klog offsets t1 -p 1 --at 1700000003 --json | jq -r .at)"
eq "at a time in ms" 3 "$(klog offsets t1 -p 1 --at 1700000002001 --json | jq -r .at)"
eq "at a date" 2 "$(klog offsets t1 -p 1 --at 2023-11-14T22:13:22Z --json | jq -r .at)"
eq "after the last" null "$(klog offsets t1 -p 1 --at -1h --json | jq -r .at)"
status 1 klog offsets nosuch
