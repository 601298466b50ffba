# SPDX-License-Identifier: Apache-2.0
# SIGKILL of klogd under writers on the mount: exit 0 of echo means that the line is there once; a failed one is there at most once;
# nothing else is there, and the mount goes on by itself.
# timeout: 180
scene
mkfifo go
for w in 1 2 3; do
    (
        n=0
        while [ ! -e stop ]; do
            n=$((n + 1))
            if echo "w$w $n" 2>/dev/null >>"$P"; then echo "w$w $n" >>"good$w"; else echo "w$w $n" >>"bad$w"; fi
        done
    ) 19>&- 2>/dev/null &
    eval "writer$w=$!"
done
for k in $(seq "${MOUNT_KILLS:-15}"); do
    was=$(cat good? 2>/dev/null | wc -l)
    wait_for 30 "some lines after kill $k" eval '[ "$(cat good? 2>/dev/null | wc -l)" -gt $((was + 20)) ]'
    klogd_kill
    klogd_restart
done
touch stop
wait $writer1 $writer2 $writer3
wait_for 15 "the mount works" eval 'cat "$P" >all'
sort all | uniq -d >twice
eq "lines that are there twice" "" "$(head -n3 twice)"
cat good? | sort >good
cat bad? 2>/dev/null | sort >bad
sort all >there
eq "confirmed lines that are missing" "" "$(comm -23 good there | head -n3)"
eq "lines nobody wrote" "" "$(comm -13 <(sort good bad) there | head -n3)"
for w in 1 2 3; do
    grep "^w$w " all | cut -d' ' -f2 | sort -nc || fail "order of writer $w"
done
echo "$(wc -l <good) lines confirmed, $(wc -l <bad) failed"
