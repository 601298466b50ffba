# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_bytes %D%/test_conf %D%/test_fsutil
%C%_test_bytes_SOURCES = %D%/test_bytes.c
%C%_test_bytes_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_bytes_LDADD = $(LIBS_BASE) $(CMOCKA_LIBS)
%C%_test_conf_SOURCES = %D%/test_conf.c
%C%_test_conf_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_conf_LDADD = $(LIBS_BASE) $(CMOCKA_LIBS)
%C%_test_fsutil_SOURCES = %D%/test_fsutil.c
%C%_test_fsutil_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_fsutil_LDADD = $(LIBS_BASE) $(CMOCKA_LIBS)
UNIT_TESTS += %D%/test_log
%C%_test_log_SOURCES = %D%/test_log.c
%C%_test_log_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_log_LDADD = $(LIBS_BASE) $(CMOCKA_LIBS)
