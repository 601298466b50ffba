# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_replica
%C%_test_replica_SOURCES = %D%/test_replica.c
%C%_test_replica_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_replica_LDADD = daemon/libklogd.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_election
%C%_test_election_SOURCES = %D%/test_election.c
%C%_test_election_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_election_LDADD = daemon/libklogd.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_throttle
%C%_test_throttle_SOURCES = %D%/test_throttle.c
%C%_test_throttle_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_throttle_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_registers
%C%_test_registers_SOURCES = %D%/test_registers.c %D%/registers_conformance.c %D%/registers_conformance.h
%C%_test_registers_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_registers_LDADD = tests/sim/libsimdisk.a $(LIBS_KLOGD) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_register_watches
%C%_test_register_watches_SOURCES = %D%/test_register_watches.c
%C%_test_register_watches_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_register_watches_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_register_batch
%C%_test_register_batch_SOURCES = %D%/test_register_batch.c
%C%_test_register_batch_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_register_batch_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

# A real ZooKeeper, where there is one.
UNIT_TESTS += %D%/test_zookeeper
%C%_test_zookeeper_SOURCES = %D%/test_zookeeper.c %D%/registers_conformance.c %D%/registers_conformance.h \
	%D%/zookeeper_server.c %D%/zookeeper_server.h
%C%_test_zookeeper_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_zookeeper_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

# A whole broker in the test's process.
UNIT_TESTS += %D%/test_cleaner
%C%_test_cleaner_SOURCES = %D%/test_cleaner.c %D%/rig.c %D%/rig.h
%C%_test_cleaner_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_cleaner_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
UNIT_TESTS += %D%/test_dataplane %D%/test_stop %D%/test_storage
%C%_test_dataplane_SOURCES = %D%/test_dataplane.c %D%/rig.c %D%/rig.h
%C%_test_dataplane_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_dataplane_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
%C%_test_stop_SOURCES = %D%/test_stop.c %D%/rig.c %D%/rig.h
%C%_test_stop_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_stop_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
%C%_test_storage_SOURCES = %D%/test_storage.c %D%/rig.c %D%/rig.h
%C%_test_storage_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_storage_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_placement
%C%_test_placement_SOURCES = %D%/test_placement.c
%C%_test_placement_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_placement_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
UNIT_TESTS += %D%/test_settings %D%/test_admin
%C%_test_settings_SOURCES = %D%/test_settings.c
%C%_test_settings_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_settings_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
%C%_test_admin_SOURCES = %D%/test_admin.c %D%/rig.c %D%/rig.h
%C%_test_admin_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_admin_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_extremes
%C%_test_extremes_SOURCES = %D%/test_extremes.c %D%/rig.c %D%/rig.h
%C%_test_extremes_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_extremes_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

# Requests of every kind.
UNIT_TESTS += %D%/test_any_request
%C%_test_any_request_SOURCES = %D%/test_any_request.c %D%/request_maker.c %D%/request_maker.h %D%/rig.c %D%/rig.h
%C%_test_any_request_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_any_request_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)

# Several brokers in the test's process.
UNIT_TESTS += %D%/test_follow
%C%_test_follow_SOURCES = %D%/test_follow.c %D%/rig.c %D%/rig.h
%C%_test_follow_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_follow_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
