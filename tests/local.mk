# SPDX-License-Identifier: Apache-2.0
# Three groups. `make check` runs what needs no rights: unit tests, which mirror the tree as tests/unit/ROOM/test_x.c, and the
# checks of the sources. `make check-all` adds the scripts that start the real programs, each in namespaces of its own
# (tests/lib/run): system, compat, crash; also alone as check-system, check-compat, check-crash.
# `make check-long` takes minutes for each.
TEST_EXTENSIONS = .t .sh
# cmocka answers with the number of failures; automake reads 77 and 99 as "skipped" and "hard error".
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-cmocka
SH_LOG_COMPILER = bash
T_LOG_COMPILER = bash $(top_srcdir)/tests/lib/run
AM_TESTS_ENVIRONMENT = BUILDDIR='$(abs_top_builddir)'; export BUILDDIR; \
    LSAN_OPTIONS='suppressions=$(abs_top_srcdir)/tests/lib/lsan.supp:print_suppressions=0'; export LSAN_OPTIONS;

EXTRA_DIST += tests/run-cmocka tests/unit/unit.h tests/unit/world.h
UNIT_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) -I$(top_srcdir)/tests/unit
# Half the time of a build is test programs that run for a second each: they are not optimized, what they test is.
UNIT_OBJECTS = tests/unit/%.$(OBJEXT)
$(UNIT_OBJECTS): CFLAGS += -O0
UNIT_TESTS =
include tests/unit/base/local.mk
include tests/unit/wire/local.mk
include tests/unit/record/local.mk
include tests/unit/view/local.mk
include tests/unit/store/local.mk
include tests/unit/loop/local.mk
include tests/unit/client/local.mk
include tests/unit/metrics/local.mk
include tests/unit/daemon/local.mk
include tests/unit/daemon/storage/local.mk
include tests/unit/daemon/group/local.mk
include tests/unit/fuse/local.mk
include tests/unit/src/local.mk
include tests/sim/local.mk
include tests/chaos/local.mk
include tests/model/local.mk
include tests/fuzz/local.mk
if HAVE_CMOCKA
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif

STATIC_TESTS = tests/check-layers.sh tests/check-style.sh tests/check-docs.sh
TESTS += $(STATIC_TESTS)
EXTRA_DIST += $(STATIC_TESTS)

TEST_LIBRARY = tests/lib/run tests/lib/world tests/lib/functions.sh tests/lib/cluster.sh tests/lib/lsan.supp \
    tests/lib/kwire.py tests/lib/zk.py tests/lib/kmsg.py tests/lib/kgroup.py tests/lib/group.py tests/lib/group_member.py tests/lib/group_member.cjs tests/lib/raw.py tests/lib/scrape.py tests/lib/browser.py tests/lib/mkprod.py tests/lib/topic.py tests/lib/views.py tests/lib/replicas.py tests/lib/nearest.py tests/lib/relay.py tests/lib/delete_records.py
SYSTEM_TESTS =
COMPAT_TESTS =
MATRIX_TESTS =
CRASH_TESTS =
include tests/system/local.mk
include tests/compat/local.mk
include tests/crash/local.mk
EXTRA_DIST += $(TEST_LIBRARY) $(SYSTEM_TESTS) $(COMPAT_TESTS) $(MATRIX_TESTS) $(CRASH_TESTS)

PROGRAMS_UNDER_TEST = $(bin_PROGRAMS) $(sbin_PROGRAMS)
check-system: $(PROGRAMS_UNDER_TEST)
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(SYSTEM_TESTS)'
# For builds with sanitizers: without those that repeat one thing thousands of times, or measure.
SLOW_WITH_SANITIZERS = %D%/system/541-malformed-registers.t %D%/system/120-crawlers-are-harmless.t %D%/system/187-figures-while-records-are-deleted.t \
    %D%/system/308-absurd-counts.t %D%/system/317-tiny-segments.t %D%/system/361-memory-of-many-clients.t \
    %D%/system/530-three-brokers-in-the-field.t %D%/system/531-settings-of-a-cluster.t \
    %D%/system/423-a-mount-on-three-brokers.t %D%/system/194-programs-on-the-mount.t
# System tests come last, and the highest numbers first, which are of clusters and take longest: no long one is left to run alone at the end.
check-sanitized: $(PROGRAMS_UNDER_TEST) $(check_PROGRAMS)
	tests=; for t in $(SYSTEM_TESTS); do \
	    case ' $(SLOW_WITH_SANITIZERS) ' in *" $$t "*) ;; *) tests="$$t $$tests" ;; esac; done; \
	    $(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS="$(TESTS) $$tests"
check-compat: $(PROGRAMS_UNDER_TEST) librdkafka-all
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS="$(COMPAT_TESTS) $(MATRIX_TESTS) $$(cat tests/librdkafka/list)"; rc=$$?; \
	    $(MAKE) $(AM_MAKEFLAGS) librdkafka-rows; $(MAKE) $(AM_MAKEFLAGS) client-table; exit $$rc
check-crash: $(PROGRAMS_UNDER_TEST)
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(CRASH_TESTS)'
# Planted faults: does the suite see them? Minutes; the list is tests/mutants/list.
EXTRA_DIST += tests/mutants/run.py tests/mutants/list
check-mutants:
	CC='$(CC)' python3 $(srcdir)/tests/mutants/run.py $(srcdir) $(abs_top_builddir)/mutants
# klogd's page in a headless Chromium; skipped where there is none. PICTURES=DIRECTORY keeps what it looked like.
PAGE_TESTS = tests/page/001-status-page.t
EXTRA_DIST += $(PAGE_TESTS)
check-page: $(PROGRAMS_UNDER_TEST)
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(PAGE_TESTS)'
# What is long: minutes instead of seconds.
LONG_TESTS = \
    tests/crash/501-kill-loop.t \
    tests/crash/509-positions-expire.t \
    tests/crash/510-mixed-group.t \
    tests/crash/511-corruptions.t \
    tests/crash/520-three-brokers-at-length.t \
    tests/crash/515-ten-thousand-followers.t \
    tests/system/408-klog-run-shares.t \
    tests/crash/531-damage-again-and-again.t \
    tests/system/187-figures-while-records-are-deleted.t \
    tests/system/308-absurd-counts.t \
    tests/system/317-tiny-segments.t
if HAVE_CMOCKA
LONG_TESTS += tests/unit/daemon/test_any_request
endif
check-long: $(PROGRAMS_UNDER_TEST) $(check_PROGRAMS)
	GROUP_SECONDS=300; KILLS=300; LONG=60; REQUESTS=200000; SEEDS=1000; ROUNDS=50; DELETIONS=4000; FUZZ_ROUNDS=10000; SEGMENTS=3000; \
	export GROUP_SECONDS KILLS LONG REQUESTS SEEDS ROUNDS DELETIONS FUZZ_ROUNDS SEGMENTS; \
	    $(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(LONG_TESTS) $(PAGE_TESTS)'
# The ones that put load on the daemon's threads, for the thread sanitizer.
THREAD_TESTS = tests/system/001-start-and-stop.t tests/system/101-lines-stay-whole.t \
    tests/system/130-many-writers-many-mounts.t tests/system/308-absurd-counts.t tests/system/309-replies-in-order.t \
    tests/system/150-large-reads-interrupted.t tests/system/320-idempotent-producers.t tests/system/328-clean-stop-and-recovery.t
check-threads: $(PROGRAMS_UNDER_TEST) $(check_PROGRAMS)
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(THREAD_TESTS) $(TESTS)'
check-all: $(PROGRAMS_UNDER_TEST) $(check_PROGRAMS)
	tests=; for t in $(SYSTEM_TESTS); do tests="$$t $$tests"; done; \
	    $(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS="$(CRASH_TESTS) $(COMPAT_TESTS) $(TESTS) $$tests"
.PHONY: check-system check-sanitized check-compat check-crash check-long check-mutants check-page check-threads check-all

# The scripts, by shellcheck, which ./check does not install.
CHECKED_BY_SHELLCHECK = quickstart run check autogen.sh .ci/fresh .ci/run .ci/setup.sh .ci/bare.sh packaging/deb packaging/check-deb \
    packaging/debian/klogd.postinst packaging/debian/klogd.postrm packaging/debian/klogfs.postinst docs/klog.bash \
    tests/check-docs.sh tests/check-layers.sh tests/check-style.sh tests/run-cmocka tests/lib/run tests/lib/world tests/lib/functions.sh
shellcheck:
	cd $(srcdir) && shellcheck -x $(CHECKED_BY_SHELLCHECK)
.PHONY: shellcheck

# What a run leaves beside automake's own TEST_LOGS.
clean-results:
	rm -rf tests/tmp
	find . -name '*.trs' -exec rm -f {} +
	rm -f tests/*/*.log
clean-local: clean-results
.PHONY: clean-results
LONG_TESTS += tests/crash/521-a-rack-is-lost.t
