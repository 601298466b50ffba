# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_loop %D%/test_conn %D%/test_exec %D%/test_thread
%C%_test_loop_SOURCES = %D%/test_loop.c
%C%_test_loop_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_loop_LDADD = $(LIBS_LOOP) $(CMOCKA_LIBS)
%C%_test_conn_SOURCES = %D%/test_conn.c
%C%_test_conn_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_conn_LDADD = $(LIBS_LOOP) $(CMOCKA_LIBS)
%C%_test_exec_SOURCES = %D%/test_exec.c
%C%_test_exec_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_exec_LDADD = $(LIBS_LOOP) $(CMOCKA_LIBS)
%C%_test_thread_SOURCES = %D%/test_thread.c
%C%_test_thread_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_thread_LDADD = $(LIBS_LOOP) $(CMOCKA_LIBS)
