# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_group
%C%_test_group_SOURCES = %D%/test_group.c %D%/fake_group.c %D%/fake_group.h
%C%_test_group_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_group_LDADD = daemon/libklogd.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_group_static
%C%_test_group_static_SOURCES = %D%/test_group_static.c %D%/fake_group.c %D%/fake_group.h
%C%_test_group_static_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_group_static_LDADD = daemon/libklogd.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_group_sim
%C%_test_group_sim_SOURCES = %D%/test_group_sim.c %D%/fake_group.c %D%/fake_group.h
%C%_test_group_sim_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_group_sim_LDADD = daemon/libklogd.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_committed
%C%_test_committed_SOURCES = %D%/test_committed.c %D%/fake_group.c %D%/fake_group.h
%C%_test_committed_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_committed_LDADD = daemon/libklogd.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_group_log
%C%_test_group_log_SOURCES = %D%/test_group_log.c %D%/fake_group.c %D%/fake_group.h
%C%_test_group_log_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_group_log_LDADD = daemon/libklogd.a lib/wire/libwire.a $(LIBS_RECORD) $(CMOCKA_LIBS)

# In a whole broker.
UNIT_TESTS += %D%/test_coordinator
%C%_test_coordinator_SOURCES = %D%/test_coordinator.c tests/unit/daemon/rig.c tests/unit/daemon/rig.h
%C%_test_coordinator_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_coordinator_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
