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
%C%_base_test_options_LDADD = fuse/libklogfs.a $(LIBS_METRICS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/meter/test_under_way
%C%_meter_test_under_way_SOURCES = %D%/meter/test_under_way.c
%C%_meter_test_under_way_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_meter_test_under_way_LDADD = fuse/libklogfs.a $(LIBS_BASE) $(CMOCKA_LIBS)

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

# The broker and the kernel are a model: what the code under test calls of them is wrapped by the linker.
UNIT_TESTS += %D%/file/test_printed_reads
%C%_file_test_printed_reads_SOURCES = %D%/file/test_printed_reads.c
%C%_file_test_printed_reads_CPPFLAGS = $(UNIT_CPPFLAGS) $(FUSE_CFLAGS)
%C%_file_test_printed_reads_LDFLAGS = -Wl,--wrap=client_fetch,--wrap=client_fetch_cancel,--wrap=ends_ask,--wrap=mount_deadline_ms \
	-Wl,--wrap=fuse_req_interrupt_func,--wrap=fuse_reply_err,--wrap=fuse_reply_iov
%C%_file_test_printed_reads_LDADD = $(LIBS_KLOGFS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/partition/test_stat_call
%C%_partition_test_stat_call_SOURCES = %D%/partition/test_stat_call.c
%C%_partition_test_stat_call_CPPFLAGS = $(UNIT_CPPFLAGS) $(FUSE_CFLAGS)
%C%_partition_test_stat_call_LDADD = fuse/libklogfs.a lib/wire/libwire.a $(LIBS_VIEW) $(CMOCKA_LIBS)
endif
