# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_flusher %D%/test_logdirs
%C%_test_flusher_SOURCES = %D%/test_flusher.c
%C%_test_flusher_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_flusher_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
%C%_test_logdirs_SOURCES = %D%/test_logdirs.c
%C%_test_logdirs_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_logdirs_LDADD = $(LIBS_KLOGD) $(CMOCKA_LIBS)
