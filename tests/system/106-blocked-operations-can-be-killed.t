# SPDX-License-Identifier: Apache-2.0
# While the broker does not answer, readers, writers and ls can be killed, by TERM and by KILL; later the mount works, and the
# line whose writer was killed is there at most once.
# https://github.com/libfuse/libfuse/issues/627 https://github.com/lxc/lxcfs/pull/594
# https://github.com/gluster/glusterfs/issues/465
scene
echo before >>"$P"
stuck() { gone "$1" || grep -qE 'fuse|request_wait' "/proc/$1/wchan"; }
for sig in TERM KILL; do
    klogd_pause
    cat "$P" >/dev/null &
    a=$!
    bash -c 'echo x >>"$1"' _ "$P" 19>&- &
    b=$!
    ls "$M/t1" >/dev/null &
    c=$!
    for p in $a $b $c; do wait_for 10 "process $p waits for the broker" stuck $p; done
    kill -$sig $a $b $c 2>/dev/null
    for p in $a $b $c; do wait_gone $p 2; done
    kill -CONT "$KLOGD_PID"
    wait $a $b $c 2>/dev/null
    wait_for 15 "the mount works again" eval 'grep -q before "$P"'
done
echo after >>"$P" || fail "append after all"
wait_for 5 "the last record is there" eval '[ "$(tail -n1 "$P")" = after ]'
between "copies of the killed writers' line" 0 2 "$(grep -c '^x$' "$P")"
eq "other lines" "before after" "$(grep -v '^x$' "$P" | tr '\n' ' ' | sed 's/ $//')"
