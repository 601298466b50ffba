# SPDX-License-Identifier: Apache-2.0
# With the broker dead every operation ends by itself within the time-out; when it is back all works without a new mount.
# https://github.com/libfuse/sshfs/issues/3 https://github.com/libfuse/sshfs/issues/223
# https://github.com/fflewddur/tophat/issues/201
# timeout: 120
klogd_start
topic t1
mount_start -o timeout=4
echo kept >>"$P"
klogd_kill
for c in 'ls $M' 'df $M' 'stat $P' 'cat $P' 'tail -n1 $P' 'mkdir $M/new' 'ls $M/t1' 'ls $M/unknown' 'dd of=$P oflag=append conv=notrunc status=none if=/etc/hostname'; do
    eval "set -- $c"
    timeout -k1 30 "$@" >/dev/null 2>err </dev/null
    rc=$?
    { [ $rc -ne 124 ] && [ $rc -ne 137 ]; } || fail "'$*' hangs"
    [ $rc -eq 0 ] || has "error of '$*'" 'Input/output error|Connection timed out|No such file' "$(cat err)"
done
fails 'Input/output error|Connection timed out' bash -c 'echo x >>"$1"' _ "$P"
klogd_restart
wait_for 15 "the mount works again" eval 'grep -q kept "$P"'
echo more >>"$P" || fail "append after the return"
printf 'kept\nmore\n' | same "content" - "$P"
[ -d "$M/t1" ] || fail "the topic is gone"
