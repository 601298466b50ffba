# SPDX-License-Identifier: Apache-2.0
# tail -f and tail -F see what others append: soon, once, in order. mtime is the newest record's time.
# https://github.com/bazil/fuse/issues/188 https://github.com/GoogleCloudPlatform/gcsfuse/pull/4201
# https://github.com/libfuse/sshfs/issues/93 https://github.com/rclone/rclone/issues/4380
scene
echo start >>"$P"
follow() { # follow OPTION: three records from elsewhere
    tail -n1 "$1" "$P" >out 2>err &
    local tail=$! i
    wait_lines out 1
    for i in 1 2 3; do
        echo "r$i" | grow
        wait_lines out $((i + 1))
    done
    kill $tail
    wait $tail
    eq "tail $1" "$2 r1 r2 r3" "$(tr '\n' ' ' <out | sed 's/ $//')"
    eq "complaints of tail $1" "" "$(cat err)"
}
follow -f start
follow -F r3
newest=$(consume t1 -o -1 -f '%T\n')
eq "mtime" $((newest / 1000)) "$(stat -c %Y "$P")"

# A record from this mount is seen as well.
tail -n0 -f -s 0.05 "$P" >out &
tail=$!
wait_for 5 "tail is at the end" eval 'grep -q "^pos:[[:space:]]*$(stat -c %s "$P")$" /proc/$tail/fdinfo/3'
echo here >>"$P"
wait_lines out 1
kill $tail
wait $tail
eq "own record" here "$(cat out)"
