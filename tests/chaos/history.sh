#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The judge of histories is judged: a good history passes, and one with each kind of anomaly planted is found, by that name.
set -u
history=$BUILDDIR/tests/chaos/history
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rc=0

# Two producers, one partition each way, a reader, two replicas.
good() {
    cat <<'H'
send 1 0 0 100
send 2 0 0 110
ok 1 0 0 200
ok 2 0 1 210
send 1 0 1 300
send 1 0 2 310
send 2 0 1 320
ok 1 1 2 400
info 1 2 410
fail 2 1 420
poll 9 1 0 0 1 0 500
poll 9 1 0 1 2 0 510
poll 9 1 0 2 1 1 520
poll 9 2 0 1 2 0 530
dump 1 0 0 1 1 0
dump 1 0 1 1 2 0
dump 1 0 2 2 1 1
dump 1 0 3 2 1 2
end 1 0 4
dump 2 0 0 1 1 0
dump 2 0 1 1 2 0
dump 2 0 2 2 1 1
end 2 0 3
H
}
# finds NAME [SED-SCRIPT]: the good history, so changed, has this anomaly and no other; "" none
finds() {
    local found want=$1
    good | sed -E "${2:-}" >"$dir/h"
    found=$("$history" "$dir/h" | sed -n 's/^ANOMALY \(.*\): [0-9]*$/\1/p' | paste -sd' ')
    [ "$found" = "$want" ] && return
    echo "planted '$want' by '${2:-}', found '$found'"
    "$history" "$dir/h"
    rc=1
}
finds ""
finds lost '/^dump 2 0 2 /d; s/^end 2 0 3/end 2 0 2/'
finds lost '/^dump [12] 0 2 /d; /^dump 1 0 3/d; s/^end . 0 ./&/; s/^end 1 0 4/end 1 0 2/; s/^end 2 0 3/end 2 0 2/; /^poll 9 1 0 2 /d'
finds 'lost twice time-order' 's/^ok 2 0 1 210/ok 2 0 4 210/'
finds twice 's/^end 1 0 4/dump 1 0 4 2 1 2\nend 1 0 5/'
finds phantom 's/^end 1 0 4/dump 1 0 4 2 7 7\nend 1 0 5/'
finds refused-seen 's/^end 1 0 4/dump 1 0 4 2 2 1\nend 1 0 5/'
finds 'lost two-at-one diverged' 's/^dump 2 0 2 2 1 1/dump 2 0 2 2 1 2/; /^dump 1 0 3/d; s/^end 1 0 4/end 1 0 3/'
finds send-order 's/^info 1 2 410/ok 1 2 3 390/; s/^ok 1 1 2/ok 1 1 5/; s/^dump (.) 0 2 2 1 1/dump \1 0 5 2 1 1/; /^poll 9 1 0 2/d; s/^end 1 0 4/end 1 0 6/; s/^end 2 0 3/dump 2 0 3 2 1 2\nend 2 0 6/'
finds read-again 's/^poll 9 1 0 2 1 1 520/&\npoll 9 1 0 1 2 0 525/'
finds read-skipped '/^poll 9 1 0 1 /d'
finds read-gone 's/^poll 9 2 0 1 2 0 530/poll 9 2 0 3 1 2 530/; /^dump 1 0 3/d; s/^end 1 0 4/end 1 0 3/'
finds time-order 's/^send 2 0 0 110/send 2 0 0 450/; s/^ok 2 0 1 210/ok 2 0 1 460/'
finds diverged 's/^dump 2 0 1 1 2 0/dump 2 0 1 2 2 0/'
good | sed 's/^poll/pool/' >"$dir/h"
"$history" "$dir/h" >/dev/null 2>&1
[ $? = 2 ] || { echo "a line that is none passed"; rc=1; }
exit $rc
