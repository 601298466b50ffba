# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_replica
%C%_test_replica_SOURCES = %D%/test_replica.c
%C%_test_replica_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_replica_LDADD = daemon/libklogd.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_registers
%C%_test_registers_SOURCES = %D%/test_registers.c
%C%_test_registers_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_registers_LDADD = daemon/libklogd.a $(LIBS_LOOP) $(CMOCKA_LIBS)
