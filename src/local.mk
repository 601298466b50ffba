# SPDX-License-Identifier: Apache-2.0
# klog, the tool: a library with everything, and the program; klog-man prints the man page from the command table.
noinst_LIBRARIES += %D%/libklogcli.a
%C%_libklogcli_a_SOURCES = \
	%D%/args.c \
	%D%/brokers.c \
	%D%/cli.c %D%/cli.h \
	%D%/cluster.h %D%/cluster_dir.c %D%/cluster_process.c %D%/cluster_status.c \
	%D%/cmd_cluster_import.c %D%/cmd_cluster_kill.c %D%/cmd_cluster_start.c %D%/cmd_cluster_start_broker.c %D%/cmd_cluster_status.c %D%/cmd_cluster_stop.c \
	%D%/cmd_append.c %D%/cmd_cat.c %D%/cmd_ls.c %D%/cmd_tail.c %D%/cmd_trim.c \
	%D%/cmd_config_get.c %D%/cmd_config_set.c \
	%D%/cmd_dump.c \
	%D%/cmd_group_delete.c %D%/cmd_group_describe.c %D%/cmd_group_list.c %D%/cmd_group_reset.c \
	%D%/cmd_offsets.c \
	%D%/cmd_ping.c \
	%D%/cmd_run.c %D%/run.h %D%/run_batch.c %D%/run_fetch.c %D%/run_group.c %D%/run_child.c %D%/run_part.c \
	%D%/cmd_topic_alter.c %D%/cmd_topic_create.c %D%/cmd_topic_delete.c \
	%D%/cmd_topic_describe.c %D%/cmd_topic_list.c \
	%D%/cmd_leader_elect.c \
	%D%/cmd_reassign_cancel.c %D%/cmd_reassign_plan.c %D%/cmd_reassign_run.c %D%/cmd_reassign_status.c \
	%D%/reassign_entries.c %D%/reassign_entries.h %D%/reassign_plan.c %D%/reassign_plan.h \
	%D%/cmd_verify.c \
	%D%/commands.c %D%/commands.h \
	%D%/config_entries.c %D%/config_entries.h \
	%D%/dump_files.c %D%/dump_log.c %D%/dump_registers.c \
	%D%/group_entries.c %D%/group_entries.h \
	%D%/offline.c %D%/offline.h \
	%D%/out.c %D%/out.h \
	%D%/paths.c %D%/paths.h %D%/stream.c %D%/stream.h \
	%D%/progress.c %D%/progress.h \
	%D%/session.c %D%/session.h \
	%D%/topic_entries.c %D%/topic_entries.h \
	%D%/verify.h %D%/verify_partition.c %D%/verify_registers.c %D%/verify_segment.c
%C%_libklogcli_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
LIBS_CLI = src/libklogcli.a lib/store/libstore.a $(LIBS_CLIENT) $(JANSSON_LIBS)

bin_PROGRAMS += %D%/klog
%C%_klog_SOURCES = %D%/main.c
%C%_klog_LDADD = $(LIBS_CLI)
noinst_PROGRAMS += %D%/klog-man
%C%_klog_man_SOURCES = %D%/klog_man.c
%C%_klog_man_LDADD = $(LIBS_CLI)
