# SPDX-License-Identifier: Apache-2.0
# What a program in the background leaves for its administrator: a log file that SIGHUP opens anew, a pid file; and the flags that mean
# the same in the three programs.
for program in klogd klogfs klog; do
    status 0 "$program" -V
    has "$program -V" "^$program [0-9]+\.[0-9]+\.[0-9]+$" "$OUT"
    version=$OUT
    status 0 "$program" --version
    eq "$program --version" "$version" "$OUT"
    status 0 "$program" -h
    help=$OUT
    status 0 "$program" --help
    eq "$program --help" "$help" "$OUT"
    has "$program --help" 'Exit status: ' "$(tr '\n' ' ' <<<"$help")"
done

requires_klogd
args=(--daemonize --override listeners="PLAINTEXT://127.0.0.1:9092" --override log.dirs="$D")
fails 'log file /nowhere/log: No such file' klogd "${args[@]}" --log-file /nowhere/log
status 2 klogd "${args[@]}" --log-file "$T/klogd.log" --pid-file /nowhere/pid
has "where it was started" 'klogd: pid file /nowhere/pid: No such file' "$OUT"
has "in the log file" 'klogd: pid file /nowhere/pid: No such file' "$(tail -n 1 "$T/klogd.log")"
status 0 klogd "${args[@]}" --log-file "$T/klogd.log" --pid-file "$T/klogd.pid"
eq "what it says where it was started" "" "$OUT"
pid=$(cat "$T/klogd.pid")
eq "process of the pid file" klogd "$(cat "/proc/$pid/comm")"
has "mode of the log file" '^-rw-r-----' "$(ls -l "$T/klogd.log")"
mv "$T/klogd.log" "$T/klogd.1.log"
kill -HUP "$pid"
wait_for 10 "klogd opens its log anew" grep -q 'SIGHUP: log.level was read anew' "$T/klogd.log"

topic t1
mkdir -p "$M"
requires_fuse
cd "$T" || exit 99
fails 'pid file /nowhere/pid: No such file' klogfs $B "$M" --pid-file /nowhere/pid
mounted && fail "mounted without its pid file"
status 0 klogfs $B "$M" --log-file klogfs.log --pid-file klogfs.pid
fspid=$(cat klogfs.pid)
eq "process of the pid file" klogfs "$(cat "/proc/$fspid/comm")"
mv klogfs.log klogfs.1.log
kill -HUP "$fspid"
wait_for 10 "klogfs opens its log anew" test -e klogfs.log
echo a >>"$P"
kill -TERM "$fspid"
wait_gone "$fspid"
has "the log file" 'stopping: signal 15' "$(cat klogfs.log)"
[ ! -e klogfs.pid ] || fail "klogfs left its pid file"

kill -TERM "$pid"
wait_gone "$pid" 20
has "the log file" 'stopped clean' "$(tail -n 1 "$T/klogd.log")"
[ ! -e "$T/klogd.pid" ] || fail "klogd left its pid file"
has_not "the log that was renamed" stopp "$(cat "$T/klogd.1.log")"

# As systemd gives it: the level goes to the journal, the time is the journal's.
exec 5>"$T/journal"
JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/5) bash -c 'exec klogd "$@" 2>&5' _ -d "${args[@]:1}" 19>&- &
pid=$!
wait_for 15 "klogd says that it serves" grep -q '^<6>klog .* serves' "$T/journal"
kill -TERM "$pid"
wait "$pid"
eq "exit status" 0 $?
