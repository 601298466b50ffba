# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/text/test_line_index
%C%_text_test_line_index_SOURCES = %D%/text/test_line_index.c
%C%_text_test_line_index_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_text_test_line_index_LDADD = fuse/libklogfs.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/text/test_lines
%C%_text_test_lines_SOURCES = %D%/text/test_lines.c
%C%_text_test_lines_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_text_test_lines_LDADD = fuse/libklogfs.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/text/test_map
%C%_text_test_map_SOURCES = %D%/text/test_map.c
%C%_text_test_map_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_text_test_map_LDADD = fuse/libklogfs.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/text/test_text
%C%_text_test_text_SOURCES = %D%/text/test_text.c
%C%_text_test_text_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_text_test_text_LDADD = fuse/libklogfs.a $(LIBS_VIEW) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/base/test_options
%C%_base_test_options_SOURCES = %D%/base/test_options.c
%C%_base_test_options_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_base_test_options_LDADD = fuse/libklogfs.a $(LIBS_VIEW) $(CMOCKA_LIBS)

if HAVE_FUSE
UNIT_TESTS += %D%/base/test_missed
%C%_base_test_missed_SOURCES = %D%/base/test_missed.c
%C%_base_test_missed_CPPFLAGS = $(UNIT_CPPFLAGS) $(FUSE_CFLAGS)
%C%_base_test_missed_LDADD = fuse/libklogfs.a $(CMOCKA_LIBS)

UNIT_TESTS += %D%/cluster/test_group_users
%C%_cluster_test_group_users_SOURCES = %D%/cluster/test_group_users.c
%C%_cluster_test_group_users_CPPFLAGS = $(UNIT_CPPFLAGS) $(FUSE_CFLAGS)
%C%_cluster_test_group_users_LDADD = fuse/libklogfs.a $(CMOCKA_LIBS)

UNIT_TESTS += %D%/cluster/test_topics
%C%_cluster_test_topics_SOURCES = %D%/cluster/test_topics.c
%C%_cluster_test_topics_CPPFLAGS = $(UNIT_CPPFLAGS) $(FUSE_CFLAGS)
%C%_cluster_test_topics_LDADD = $(LIBS_KLOGFS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/partition/test_ptext
%C%_partition_test_ptext_SOURCES = %D%/partition/test_ptext.c
%C%_partition_test_ptext_CPPFLAGS = $(UNIT_CPPFLAGS) $(FUSE_CFLAGS)
%C%_partition_test_ptext_LDADD = $(LIBS_KLOGFS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/partition/test_stat_call
%C%_partition_test_stat_call_SOURCES = %D%/partition/test_stat_call.c
%C%_partition_test_stat_call_CPPFLAGS = $(UNIT_CPPFLAGS) $(FUSE_CFLAGS)
%C%_partition_test_stat_call_LDADD = fuse/libklogfs.a lib/wire/libwire.a $(LIBS_VIEW) $(CMOCKA_LIBS)
endif
