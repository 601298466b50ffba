# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# one.sh NUMBER STEP..., sourced in a test's own namespaces: that one of librdkafka's tests, not in quick mode, against a klogd of its own.
RDK=$BUILDDIR/tests/librdkafka
RUNNER=$RDK/package/deps/librdkafka/tests/test-runner
number=${1:0:4}
shift
unset CI # some skip themselves by it
mkdir -p kafka/bin
ln -s "$SRCDIR/tests/compat/librdkafka/kafka-topics.sh" kafka/bin/
export KAFKA_PATH=$PWD/kafka BROKERS=$B KLOG_BROKERS=$B TESTS=$number TEST_KAFKA_VERSION=3.9.0
printf '%s\n' "bootstrap.servers=$B" test.timeout.multiplier=2 >test.conf

tries=1
try_tests() { # [FLAG]...
    "$RUNNER" -p1 "$@" >"$T/librdkafka.log" 2>&1 19>&-
    local got=$?
    sed -i 's/\x1b\[[0-9;]*[A-Za-z]//g; s/\x1b(B//g' "$T/librdkafka.log"
    return $got
}
run_tests() { # [FLAG]...; the rows of the summary are | NAME | STATE | SECONDS s | REASON
    local got i
    for ((i = 0; i < tries; i++)); do
        try_tests "$@"
        got=$?
        [ $got -ne 0 ] || break
    done
    grep -E "^\| *${number}_.*\| +(PASSED|FAILED|RUNNING|SKIPPED) +\|" "$T/librdkafka.log" | grep -v 'negative test flags' >rows
    cat rows
    [ $got -eq 0 ] || fail "test $number ended with $got: $(grep -a -A1 '^### Test "[0-9]' "$T/librdkafka.log")"
    grep -q '| *PASSED |' rows || skip "librdkafka's test $number skips itself: $(sed 's/.*s *| *//' rows)"
}
klogd_start --override num.partitions=4 --override group.initial.rebalance.delay.ms=100
for step in "${@:-default}"; do
    case $step in
    default) run_tests -L ;; # what needs no broker is not for us
    local) run_tests ;;
    thrice) tries=3 ;;
    noautocreate)
        klogd_stop
        klogd_start "${KLOGD_ARGS[@]}" --override auto.create.topics.enable=false
        run_tests -L -s noautocreate
        ;;
    *)
        SUBTESTS=${step//./ } run_tests -L
        grep -qE '\] \[ [A-Za-z_0-9]+:[0-9]+' "$T/librdkafka.log" || fail "there is no subtest '$step' in $number"
        ;;
    esac
done
