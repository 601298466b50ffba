# SPDX-License-Identifier: Apache-2.0
# The messages are C made from the schema files, in the build directory.
WIRE_SCHEMA = %D%/schema/add_offsets_to_txn.kp %D%/schema/add_partitions_to_txn.kp \
	%D%/schema/alter_configs.kp %D%/schema/alter_partition_reassignments.kp %D%/schema/elect_leaders.kp %D%/schema/api_versions.kp %D%/schema/consumer_protocol.kp \
	%D%/schema/create_partitions.kp %D%/schema/create_topics.kp %D%/schema/delete_groups.kp \
	%D%/schema/delete_records.kp %D%/schema/delete_topics.kp %D%/schema/describe_acls.kp \
	%D%/schema/describe_client_quotas.kp %D%/schema/describe_cluster.kp \
	%D%/schema/describe_configs.kp %D%/schema/describe_groups.kp %D%/schema/describe_log_dirs.kp \
	%D%/schema/describe_producers.kp %D%/schema/describe_topic_partitions.kp %D%/schema/describe_user_scram_credentials.kp \
	%D%/schema/end_txn.kp %D%/schema/fetch.kp %D%/schema/find_coordinator.kp %D%/schema/group_records.kp \
	%D%/schema/heartbeat.kp %D%/schema/incremental_alter_configs.kp %D%/schema/init_producer_id.kp \
	%D%/schema/join_group.kp %D%/schema/klog_find_text.kp %D%/schema/klog_stat.kp %D%/schema/leave_group.kp \
	%D%/schema/list_config_resources.kp %D%/schema/list_groups.kp %D%/schema/list_offsets.kp %D%/schema/list_partition_reassignments.kp %D%/schema/list_transactions.kp \
	%D%/schema/metadata.kp %D%/schema/offset_commit.kp %D%/schema/offset_delete.kp %D%/schema/offset_fetch.kp \
	%D%/schema/offset_for_leader_epoch.kp %D%/schema/produce.kp %D%/schema/sasl_authenticate.kp \
	%D%/schema/sasl_handshake.kp %D%/schema/sync_group.kp %D%/schema/txn_offset_commit.kp
noinst_LIBRARIES += %D%/libwire.a
%C%_libwire_a_SOURCES = \
	%D%/decode.c \
	%D%/encode.c \
	%D%/engine.h \
	%D%/errors.c \
	%D%/frame.c \
	%D%/json.c \
	%D%/random.c \
	%D%/rd.h \
	%D%/value.c \
	%D%/wire.h \
	%D%/wr.h
nodist_%C%_libwire_a_SOURCES = %D%/messages.c %D%/messages.h
EXTRA_DIST += %D%/gen.py $(WIRE_SCHEMA)
BUILT_SOURCES += %D%/messages.h
CLEANFILES += %D%/messages.c
DISTCLEANFILES += %D%/messages.h

%D%/messages.h: %D%/gen.py $(WIRE_SCHEMA)
	$(AM_V_GEN)$(MKDIR_P) %D% && $(PYTHON) $(srcdir)/%D%/gen.py header $@ $(srcdir)/%D%/schema
%D%/messages.c: %D%/gen.py $(WIRE_SCHEMA)
	$(AM_V_GEN)$(MKDIR_P) %D% && $(PYTHON) $(srcdir)/%D%/gen.py tables $@ $(srcdir)/%D%/schema
