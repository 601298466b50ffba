# SPDX-License-Identifier: Apache-2.0
# Every command of the README's examples works as it stands there; those that wait for more are stopped after a moment.
klogd_start
mount_start
status 0 klogd --version
sed -n '/^## Things to try/,/^## What to know/p' "$SRCDIR/README.md" |
    awk '/^```/ { on = !on; next } on' | sed "s|/mnt/klog|$M|g; s|/var/lib/klog|$D|g" >commands
[ "$(wc -l <commands)" -ge 10 ] || fail "only $(wc -l <commands) commands in the README"
while read -r line <&7; do
    case $line in
    *'tail -f'* | *follow/*)
        timeout 2 bash -c "$line" >said 2>&1 19>&-
        eq "'$line' goes on until it is stopped" 124 $?
        ;;
    *'klog verify'*) # says itself that the broker must be stopped
        status 0 bash -c "${line%; klog verify*}"
        klogd_stop
        status 0 klog verify "$D"
        klogd_restart
        wait_for 15 "the mount works" test -s "$M/orders/p0"
        ;;
    'klog cluster '*) # 420 and 421 run these: they want a ZooKeeper, and the port of the broker here
        grep -q 'klog cluster start' "$SRCDIR/tests/system/421-a-broker-of-three-is-killed.t" || fail "nobody runs '$line'"
        ;;
    *) status 0 bash -c "$line" ;;
    esac
done 7<commands
eq "what the group has read" "$(wc -l <"$M/orders/p0")" "$(cat "$M/orders/.groups/billing/p0")"
eq "the first example's record" hello "$(head -n1 "$M/orders/p0")"
