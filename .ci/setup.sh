# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by ./quickstart, ./check and .ci/run: packages, a build, the count of results. Sourced with $top set.
: "${top:?}"

# How many tests run at once. A test uses some 40 % of a processor, and waits the rest of its time: for a member's session, a disk, a
# process that starts.
test_jobs=$((2 * $(nproc) + 1))

say() { printf '%s\n' "$*"; }

# packages GROUP...: the names of those not installed yet
packages_missing() {
    local name
    for name in $(sed -n "s/^\($(IFS='|'; echo "$*" | sed 's/|/\\|/g')\) //p" "$top/.ci/packages"); do
        dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || echo "$name"
    done
}

# packages_install GROUP...: installs what is missing; as an ordinary user says what that is and goes on
packages_install() {
    local missing
    command -v dpkg-query >/dev/null || return 0
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        say "Missing packages (as root: apt-get install ${missing[*]})"
        return 0
    fi
    say "Installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt_try() { apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" </dev/null >"$top/.apt.log" 2>&1; }
    apt_try || { apt-get update </dev/null >/dev/null 2>&1 && apt_try; } || {
        tail -n 20 "$top/.apt.log"
        rm -f "$top/.apt.log"
        return 1
    }
    rm -f "$top/.apt.log"
}

build_files_changed() {
    [ ! -x "$top/configure" ] || [ -n "$(find "$top" -maxdepth 5 \( -name 'build*' -prune -o -name '*.mk' -o -name '*.am' -o -name '*.m4' -o \
        -name configure.ac \) -newer "$top/configure" ! -name aclocal.m4 -type f -print -quit)" ]
}

# build_tree DIR [configure arguments]: configures DIR when it is new or they changed, then builds everything in it
build_tree() {
    local dir=$1 wanted
    shift
    wanted="$*"
    if build_files_changed; then
        (cd "$top" && ./autogen.sh >/dev/null 2>.autogen.log) || {
            cat "$top/.autogen.log"
            return 1
        }
        rm -f "$top/.autogen.log"
    fi
    mkdir -p "$dir"
    if [ ! -f "$dir/Makefile" ] || [ "$top/configure" -nt "$dir/config.status" ] || [ "$wanted" != "$(cat "$dir/.configured" 2>/dev/null)" ]; then
        (cd "$dir" && "$top/configure" -q "$@") || return 1
        echo "$wanted" >"$dir/.configured"
    fi
    make -C "$dir" -j"$(nproc)" all >"$dir/build.log" 2>&1 || {
        grep -E 'error|warning|\*\*\*' "$dir/build.log" | head -n 40
        return 1
    }
}

# results DIR: from the .trs files of the last run, "passed failed skipped"; failures and skips are told on the way
results() {
    local trs name passed=0 failed=0 skipped=0
    while read -r trs; do
        name=${trs#"$1"/}
        name=${name%.trs}
        case $(sed -n 's/^:global-test-result: //p' "$trs") in
        PASS) passed=$((passed + 1)) ;;
        SKIP)
            skipped=$((skipped + 1))
            say "skipped: $name: $(sed -n 's/^SKIP: //p' "${trs%.trs}.log" | tail -n1)" >&2
            ;;
        *)
            failed=$((failed + 1))
            say "FAILED: $name (${trs%.trs}.log)" >&2
            ;;
        esac
    done < <(find "$1/tests" -name '*.trs' -not -path '*/tests/tmp/*' | sort)
    echo "$passed $failed $skipped"
}

# retry_clients DIR: what failed among other people's clients runs once more, alone, and each such test is told: they wait for what these
# programs do in their own time, so that one can be late on a busy machine. klog's own tests are never tried again.
retry_clients() {
    local dir=$1 name ext names=()
    while read -r name; do
        name=${name#./}
        name=${name%.trs}
        for ext in .t .sh; do { [ -e "$top/$name$ext" ] || [ -e "$dir/$name$ext" ]; } && name+=$ext; done
        names+=("$name")
    done < <(cd "$dir" && find . \( -path './tests/compat/*' -o -path './tests/librdkafka/*' \) -name '*.trs' \
        -exec grep -lE '^:test-result: (FAIL|ERROR)' {} + 2>/dev/null)
    [ ${#names[@]} -gt 0 ] && [ ${#names[@]} -le 6 ] || return 0 # many failures are no accident
    make -s -k -C "$dir" -j1 check-TESTS TESTS="${names[*]}" </dev/null 2>&1 |
        sed -nE 's/^(PASS|FAIL|ERROR): (.*)/retried: \2: failed, then \1/p'
}

# slowest DIR: where the time went
slowest() {
    find "$1/tests" -name '*.log' -not -path '*/tests/tmp/*' -exec sed -n 's,^took \([0-9]* s\)$,\1 {},p' {} \; |
        sort -rn | head -n 10 | sed "s,$1/,," | paste -sd, | sed 's/,/, /g; s/^/slowest: /'
}

# logs_of_failed DIR: the end of each failed test's log
logs_of_failed() {
    local trs
    find "$1" -name '*.trs' -not -path '*/tests/tmp/*' -exec grep -lE '^:global-test-result: (FAIL|ERROR|XPASS)' {} + |
        while read -r trs; do
            say "==== ${trs%.trs}.log"
            tail -n 150 "${trs%.trs}.log"
        done
}
