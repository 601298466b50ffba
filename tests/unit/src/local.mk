# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_reassign_plan
%C%_test_reassign_plan_SOURCES = %D%/test_reassign_plan.c
%C%_test_reassign_plan_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_reassign_plan_LDADD = $(LIBS_CLI) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_cli %D%/test_offline %D%/test_out %D%/test_run_child
%C%_test_cli_SOURCES = %D%/test_cli.c
%C%_test_cli_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_cli_LDADD = $(LIBS_CLI) $(CMOCKA_LIBS)
%C%_test_out_SOURCES = %D%/test_out.c
%C%_test_out_CPPFLAGS = $(UNIT_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_test_out_LDADD = $(LIBS_CLI) $(CMOCKA_LIBS)
%C%_test_offline_SOURCES = %D%/test_offline.c
%C%_test_offline_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_offline_LDADD = $(LIBS_CLI) $(CMOCKA_LIBS)
%C%_test_run_child_SOURCES = %D%/test_run_child.c
%C%_test_run_child_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_run_child_LDADD = $(LIBS_CLI) $(CMOCKA_LIBS)
