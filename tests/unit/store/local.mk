# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/storetest.h
UNIT_TESTS += %D%/test_plog
%C%_test_plog_SOURCES = %D%/test_plog.c
%C%_test_plog_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_plog_LDADD = $(LIBS_STORE) $(CMOCKA_LIBS)
UNIT_TESTS += %D%/test_recover
%C%_test_recover_SOURCES = %D%/test_recover.c
%C%_test_recover_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_recover_LDADD = $(LIBS_STORE) $(CMOCKA_LIBS)
