# SPDX-License-Identifier: Apache-2.0
# The simulated world. libsimdisk.a alone is a disk for tests of the store.
check_LIBRARIES += %D%/libsimdisk.a
%C%_libsimdisk_a_SOURCES = %D%/rand.h %D%/simdisk.c %D%/simdisk.h %D%/simdisk_cut.c %D%/simdisk_file.c %D%/simdisk_int.h %D%/simdisk_names.c

UNIT_TESTS += %D%/test_simdisk
%C%_test_simdisk_SOURCES = %D%/test_simdisk.c
%C%_test_simdisk_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_simdisk_LDADD = %D%/libsimdisk.a $(LIBS_STORE) $(CMOCKA_LIBS)

# Time, fibers, clocks and network of simulated processes. A fiber gives way where a thread would block, so that what is linked
# with them has the functions of pthreads that block wrapped (fiber.c).
check_LIBRARIES += %D%/libsim.a
%C%_libsim_a_SOURCES = %D%/fiber.c %D%/fiber.h %D%/sim.c %D%/sim.h %D%/simclock.c %D%/simclock.h %D%/simexec.c %D%/simexec.h \
	%D%/simnet.c %D%/simnet.h %D%/simnet_int.h %D%/simnic.c
SIM_WRAP = -Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock,--wrap=pthread_mutex_unlock \
	-Wl,--wrap=pthread_rwlock_rdlock,--wrap=pthread_rwlock_wrlock,--wrap=pthread_rwlock_unlock

UNIT_TESTS += %D%/test_simnet
%C%_test_simnet_SOURCES = %D%/test_simnet.c
%C%_test_simnet_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_simnet_LDFLAGS = $(AM_LDFLAGS) $(SIM_WRAP)
%C%_test_simnet_LDADD = %D%/libsim.a $(LIBS_LOOP) $(CMOCKA_LIBS)

# The checkers, held against histories that contradict themselves.
UNIT_TESTS += %D%/test_checkers
%C%_test_checkers_SOURCES = %D%/batches.c %D%/diskcheck.c %D%/diskread.c %D%/test_checkers.c %D%/truth.c
%C%_test_checkers_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_checkers_LDFLAGS = $(AM_LDFLAGS) $(SIM_WRAP)
%C%_test_checkers_LDADD = %D%/libsimdisk.a %D%/libsim.a $(LIBS_STORE) $(CMOCKA_LIBS)

# A register store for several brokers, and as nasty as ZooKeeper.
UNIT_TESTS += %D%/test_simregisters
%C%_test_simregisters_SOURCES = %D%/test_simregisters.c %D%/simregisters.c %D%/simregisters.h \
	tests/unit/daemon/registers_conformance.c tests/unit/daemon/registers_conformance.h
%C%_test_simregisters_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_simregisters_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

# The simulator: a whole broker with raw clients. `make check` runs a few seeds (tests/sim/seeds.sh), `make check-sim` 20,000.
check_PROGRAMS += %D%/sim
%C%_sim_SOURCES = %D%/batches.c %D%/batches.h %D%/client.c %D%/client.h %D%/client_admin.c %D%/client_fetch.c %D%/client_group.c \
	%D%/client_produce.c %D%/client_rude.c %D%/diskcheck.c %D%/diskcheck.h %D%/core_election.c %D%/core_replica.c %D%/core_state.c %D%/diskread.c %D%/diskread.h %D%/fleet.c %D%/fleet.h %D%/fleet_clients.c %D%/fleet_int.h %D%/fleet_plan.c %D%/fleet_rules.c \
	%D%/libclient.c %D%/libclient.h %D%/logplay.c %D%/logplay.h %D%/main.c %D%/marks.c %D%/marks.h %D%/plan.c %D%/plan.h \
	%D%/play.c %D%/play.h %D%/rot.c %D%/rot.h %D%/simbroker.c %D%/simbroker.h %D%/simhost.c %D%/simhost.h %D%/simregisters.c %D%/simregisters.h %D%/truth.c %D%/truth.h
%C%_sim_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_sim_LDFLAGS = $(AM_LDFLAGS) $(SIM_WRAP)
%C%_sim_LDADD = %D%/libsim.a %D%/libsimdisk.a lib/client/libclient.a $(LIBS_KLOGD)
TESTS += %D%/seeds.sh
EXTRA_DIST += %D%/seeds.sh
# Plans that once found something.
EXTRA_DIST += \
	%D%/corpus/a-member-of-an-old-generation-commits.plan \
	%D%/corpus/a-producer-may-leave-a-gap.plan \
	%D%/corpus/a-producer-of-an-old-epoch-is-let-in.plan \
	%D%/corpus/a-shortage-of-descriptors-in-a-flush-fails-the-log-directory.plan \
	%D%/corpus/lib-client-has-five-batches-under-way-before-the-broker-know.plan \
	%D%/corpus/only-the-last-batch-of-a-producer-is-known.plan \
	%D%/corpus/s1-the-checksum-of-a-batch-is-not-looked-at.plan \
	%D%/corpus/s10-damage-below-the-flush-point-is-cut.plan \
	%D%/corpus/s2-what-was-written-of-a-batch-stays-after-an-error.plan \
	%D%/corpus/s4-a-flush-does-not-sync-the-directory.plan \
	%D%/corpus/s5-a-directory-that-an-earlier-start-made-is-not-synced.plan \
	%D%/corpus/s5-the-path-of-a-new-log-directory-is-not-synced.plan \
	%D%/corpus/s6-a-small-file-is-not-synced-before-it-takes-its-place.plan \
	%D%/corpus/s7-the-clean-marker-stays.plan \
	%D%/corpus/s8-a-failed-sync-is-forgotten.plan \
	%D%/corpus/s9-what-was-never-flushed-is-kept-as-damage.plan \
	%D%/corpus/the-registers-journal-goes-on-in-a-file-without-a-name.plan \
	%D%/corpus/the-topic-of-all-positions-can-be-deleted.plan
check-sim: %D%/sim
	%D%/sim --log-only --seeds 1..20000 --jobs $$(nproc) --all-marks
	%D%/sim --copies --seeds 1..20000 --jobs $$(nproc)
	%D%/sim --seeds 1..20000 --jobs $$(nproc) --all-marks

# Several brokers with replicated partitions: fleet.h.
check-sim-cluster: %D%/sim
	%D%/sim --cluster --seeds 1..20000 --jobs $$(nproc) --all-marks
	for rule in R1 R2 R4 R5 R8 R9 R9-table R10 R11 R12; do \
		%D%/sim --cluster --bug $$rule --seeds 1..2000 --jobs $$(nproc) --failures 1 --twice 0 >sim-bug.log || { cat sim-bug.log; exit 1; }; \
		tail -n 1 sim-bug.log; done; rm -f sim-bug.log

# One partition as the state machines of daemon/replica see it: core.h. `make check` runs some thousand seeds and sees that rules
# that are switched off are found out (tests/sim/core.sh); `make check-sim-core` runs 200,000.
check_PROGRAMS += %D%/core
%C%_core_SOURCES = %D%/core.c %D%/core.h %D%/core_election.c %D%/core_main.c %D%/core_plan.c %D%/core_replica.c %D%/core_state.c %D%/core_truth.c
TESTS += %D%/core.sh
EXTRA_DIST += %D%/core.sh
check-sim-core: %D%/core
	%D%/core --seeds 1..200000 --jobs $$(nproc) --marks
.PHONY: check-sim-core
# How many seeds each planted fault needs (tests/sim/bugs).
check-sim-bugs:
	CC='$(CC)' python3 $(srcdir)/tests/sim/bugs.py $(srcdir) $(abs_top_builddir)/sim-bugs
# Is a seed the same run under -O0, -O2, clang and the address sanitizer?
check-sim-hashes:
	CC='$(CC)' bash $(srcdir)/tests/sim/hashes.sh $(srcdir) $(abs_top_builddir)/sim-hashes
EXTRA_DIST += %D%/bugs %D%/bugs.py %D%/hashes.sh
.PHONY: check-sim check-sim-cluster check-sim-bugs check-sim-hashes
