# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the test scripts share. Each is sourced by tests/lib/world after this file, with xtrace going to $T/trace, and
# runs as process 1 of its own namespaces. The rules: no sleep (wait_for waits for a condition), exact values
# (eq, cmp), everything below $T, and nothing is left running.

set -u
shopt -s lastpipe
export LC_ALL=C.UTF-8 TZ=UTC
export PATH=$TESTLIB:$BUILDDIR/daemon:$BUILDDIR/fuse:$BUILDDIR/src:$PATH:/usr/sbin:/sbin
export PYTHONPATH=$TESTLIB PYTHONDONTWRITEBYTECODE=1
# a small quarantine, so that memory that was given back does not count as growth
export ASAN_OPTIONS=${ASAN_OPTIONS:-exitcode=98:detect_leaks=1:quarantine_size_mb=8:malloc_context_size=10}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-exitcode=97:second_deadlock_stack=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$TESTLIB/lsan.supp:print_suppressions=0}
unset KLOG_BROKERS

PY=${PYTHON:-/usr/bin/python3}
M=$T/mnt                     # the mount
D=$T/data                    # log.dirs
B=127.0.0.1:9092             # the broker
P=$M/t1/p0                   # most tests use topic t1 with one partition
K="timeout 20 kcat -b $B -q" # a quiet kcat
KC="$K -C -X fetch.wait.max.ms=10" # one that reads: at the end it does not wait half a second for more before it says so

# ---- verdicts ----
skip() { echo "SKIP: $1"; exit 77; }
fail() {
    local i
    echo "FAILED: $*"
    for ((i = 1; i < ${#FUNCNAME[@]}; i++)); do
        [[ ${BASH_SOURCE[i]} == *.t ]] && echo "  at ${BASH_SOURCE[i]##*/}:${BASH_LINENO[i - 1]}"
    done
    exit 1
}
# eq WHAT EXPECTED ACTUAL
eq() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; }
# between WHAT LOW HIGH ACTUAL (integers, inclusive)
between() { { [ "$4" -ge "$2" ] && [ "$4" -le "$3" ]; } || fail "$1: expected $2..$3, got $4"; }
# same WHAT FILE FILE
same() { cmp "$2" "$3" || fail "$1: files differ"; }
# has WHAT PATTERN TEXT (extended regular expression)
has() { grep -qE -- "$2" <<<"$3" || fail "$1: no match for '$2' in '$3'"; }
has_not() { ! grep -qE -- "$2" <<<"$3" || fail "$1: '$2' must not be in '$3'"; }
# status WANTED COMMAND...: the exit status is exact; output and errors go to $OUT
OUT=
status() {
    local want=$1 got
    shift
    OUT=$("$@" 2>&1 19>&-)
    got=$?
    [ $got -eq "$want" ] || fail "exit status of '$*': expected $want, got $got; it said: $OUT"
}
# fails PATTERN COMMAND...: non-zero, not killed by a time-out, and says PATTERN
fails() {
    local want=$1 got
    shift
    OUT=$("$@" 2>&1 19>&-)
    got=$?
    { [ $got -ne 0 ] && [ $got -ne 124 ] && [ $got -ne 137 ]; } || fail "'$*' should fail by itself, got $got: $OUT"
    has "message of '$*'" "$want" "$OUT"
}
requires() {
    local c
    for c in "$@"; do command -v "$c" >/dev/null || skip "needs $c"; done
}
requires_python() { "$PY" -c "import $1" 2>/dev/null || skip "needs python3 module $1"; }
requires_root() { [ "$(awk '{ print $2, $3 }' /proc/self/uid_map)" = "0 4294967295" ] || skip "needs real root"; }

# ---- waiting ----
# wait_for SECONDS WHAT COMMAND...: polls until the command succeeds, the less often the longer it takes: looks cost what others wait for
wait_for() {
    local deadline what=$2 looks=0 nap=0.02
    deadline=$((SECONDS + $1 * ${TEST_TIMEOUT_FACTOR:-1} + 1))
    shift 2
    {
        local traced=${-//[^x]/}
        set +x
    } 2>/dev/null
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $deadline ] || fail "waited in vain for: $what"
        looks=$((looks + 1))
        case $looks in 25) nap=0.05 ;; 50) nap=0.1 ;; esac
        sleep $nap # between two looks
    done
    [ -z "$traced" ] || set -x
}
now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
gone() {
    local stat
    [ -d "/proc/$1" ] && read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
    [[ ${stat##*) } = Z* ]]
}
wait_gone() { wait_for "${2:-10}" "process $1 ends" gone "$1"; }
# wait_lines FILE N: until the file has that many lines
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }
wait_lines() { wait_for "${3:-10}" "$2 lines in $1" has_lines "$1" "$2"; }
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
rss_kb() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"; }
fd_count() { find "/proc/$1/fd" -mindepth 1 -maxdepth 1 | wc -l; }

# ---- cleanup hooks, last in first out ----
HOOKS=()
cleanup_fn() { HOOKS=("$*" "${HOOKS[@]}"); }

# ---- klogd ----
KLOGD_PID=
KLOGD_ARGS=()
KLOGD_LOG=$T/klogd.log
requires_klogd() { [ -x "$BUILDDIR/daemon/klogd" ] || skip "klogd is not built"; }
klogd_spawn() {
    requires_klogd
    klogd --override listeners="PLAINTEXT://127.0.0.1:9092" --override log.dirs="$D" "$@" >>"$KLOGD_LOG" 2>&1 19>&- &
    KLOGD_PID=$!
}
klogd_up() { # listening, or dead (then the caller fails)
    gone "$KLOGD_PID" || port_open 9092
}
# klogd_start [--override key=value ...]; the arguments are kept for klogd_restart
klogd_start() {
    KLOGD_ARGS=("$@")
    klogd_spawn "$@"
    wait_for 15 "klogd listens" klogd_up
    gone "$KLOGD_PID" && fail "klogd ended at start: $(tail -n3 "$KLOGD_LOG")"
    return 0
}
klogd_stop() {
    local pid=$KLOGD_PID
    KLOGD_PID=
    kill -TERM "$pid"
    wait_gone "$pid" 20
    wait "$pid"
    eq "exit status of klogd after TERM" 0 $?
}
klogd_kill() {
    local pid=$KLOGD_PID
    KLOGD_PID=
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    return 0
}
klogd_restart() { klogd_start "${KLOGD_ARGS[@]}"; }
klogd_has_stopped() { ! grep -LE '^State:[[:space:]]+T' /proc/"$KLOGD_PID"/task/*/status | grep -q .; }
# klogd_pause: SIGSTOP, until each of its threads stands still
klogd_pause() {
    kill -STOP "$KLOGD_PID"
    wait_for 10 "klogd stands still" klogd_has_stopped
}

# ---- klogfs ----
KLOGFS_PID=
KLOGFS_LOG=$T/klogfs.log
mounted() { grep -q " $M fuse.klogfs " /proc/self/mounts; }
requires_fuse() {
    [ -c /dev/fuse ] || skip "no /dev/fuse"
    (exec 3<>/dev/fuse) 2>/dev/null || skip "/dev/fuse cannot be opened"
    [ -x "$BUILDDIR/fuse/klogfs" ] || skip "klogfs is not built"
}
# mount_start [klogfs options, as -o ...]
# Not the dead one that it replaces: that answers nothing, and once the directory answers what is mounted is the new one.
mount_answers() { gone "$KLOGFS_PID" || { stat -f "$M" >/dev/null && mounted; }; }
mount_start() {
    requires_fuse
    mkdir -p "$M" 2>/dev/null # a dead mount is there already
    klogfs -f "$B" "$M" "$@" >>"$KLOGFS_LOG" 2>&1 19>&- &
    KLOGFS_PID=$!
    wait_for 15 "klogfs mounts" mount_answers
    gone "$KLOGFS_PID" && fail "klogfs ended at start: $(tail -n3 "$KLOGFS_LOG")"
    return 0
}
mount_stop() {
    local pid=$KLOGFS_PID
    KLOGFS_PID=
    umount "$M" || fail "umount: status $?; open: $(fuser -vm "$M" 2>&1)"
    wait_gone "$pid" 20
    wait "$pid"
    eq "exit status of klogfs after umount" 0 $?
}
mount_kill() {
    local pid=$KLOGFS_PID
    KLOGFS_PID=
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    return 0
}
# The usual scene: a broker, a mount, topic t1 with one empty partition.
scene() {
    klogd_start "$@"
    topic t1
    mount_start
}

# ---- talking to the broker without the mount ----
# topic NAME [PARTITIONS] [key=value ...]
topic() { "$PY" "$TESTLIB/topic.py" create "$@" || fail "topic $1 was not created"; }
# grow [TOPIC]: records from standard input, one a line, that the mount knows nothing of
grow() { produce -t "${1:-t1}" -p 0 -X linger.ms=0; }
# produce KCAT-OPTIONS...: records from standard input or from the files named; every one is taken
produce() { $K -P "$@" || fail "not all was produced: $*"; }
# consume [TOPIC [kcat options]]: everything, values and newlines
consume() {
    local t=${1:-t1}
    shift || :
    timeout 60 kcat -b $B -q -C -X fetch.wait.max.ms=10 -t "$t" -p 0 -o beginning -e "$@"
}
raw() { "$PY" "$TESTLIB/raw.py" $B "$@"; }
mkprod() { "$PY" "$TESTLIB/mkprod.py" "$@"; }
# end_offset [TOPIC [PARTITION]]
end_offset() { "$PY" "$TESTLIB/topic.py" end "${1:-t1}" "${2:-0}"; }
start_offset() { "$PY" "$TESTLIB/topic.py" start "${1:-t1}" "${2:-0}"; }

# ---- the end of every test ----
stray_processes() {
    local p pid out=
    for p in /proc/[0-9]*; do
        pid=${p#/proc/}
        [ "$pid" = 1 ] || [ "$pid" = $BASHPID ] || gone "$pid" || out+="$pid $(tr '\0' ' ' <"$p/cmdline" 2>/dev/null); "
    done
    echo "$out"
}
no_strays() { [ -z "$(stray_processes)" ]; }
test_end() {
    local status=$1 hook bad
    trap - EXIT
    set +x
    for hook in "${HOOKS[@]}"; do eval "$hook"; done
    exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
    cd / || exit 99
    if [ "$status" -ne 0 ]; then
        exec 2>/dev/null # what bash says about the jobs it kills
        jobs -p | xargs -r kill -9 2>/dev/null
        umount -l "$M" 2>/dev/null
        exit "$status" # what is left dies with process 1
    fi
    trap 'exit 1' EXIT # a fail below is final
    [ -z "$KLOGFS_PID" ] || gone "$KLOGFS_PID" || mount_stop
    [ -z "$KLOGD_PID" ] || gone "$KLOGD_PID" || klogd_stop
    if grep -q "$T" /proc/self/mounts; then fail "a mount was left: $(grep "$T" /proc/self/mounts)"; fi
    no_strays || wait_for 5 "the last processes end: $(stray_processes)" no_strays
    bad=$(grep -hE 'AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|[Ii]nvariant|check failed|Assertion|stack smashing' "$T"/*.log 2>/dev/null | head -n5)
    [ -z "$bad" ] || fail "the programs complained: $bad"
    trap - EXIT
    exit 0
}
