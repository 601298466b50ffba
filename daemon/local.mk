# SPDX-License-Identifier: Apache-2.0
# klogd is main.c over libklogd.a, which the tests link too.
noinst_LIBRARIES += %D%/libklogd.a
%C%_libklogd_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_libklogd_a_SOURCES =
LIBS_KLOGD = %D%/libklogd.a lib/store/libstore.a $(LIBS_METRICS) $(LIBS_CLIENT) $(JANSSON_LIBS) $(ZOOKEEPER_LIBS)

# configuration
%C%_libklogd_a_SOURCES += %D%/config/broker_config.c %D%/config/broker_config.h
%C%_libklogd_a_SOURCES += %D%/config/broker_listeners.c
%C%_libklogd_a_SOURCES += %D%/config/ranks.h
%C%_libklogd_a_SOURCES += %D%/config/topic_config.c %D%/config/topic_config.h

# storage
%C%_libklogd_a_SOURCES += %D%/storage/logdirs.c %D%/storage/logdirs.h
%C%_libklogd_a_SOURCES += %D%/storage/flusher.c %D%/storage/flusher.h

# replicas
%C%_libklogd_a_SOURCES += %D%/replica/state.c %D%/replica/state.h %D%/replica/bug.h
%C%_libklogd_a_SOURCES += %D%/replica/election.c %D%/replica/election.h
%C%_libklogd_a_SOURCES += %D%/replica/replica.c %D%/replica/replica.h
%C%_libklogd_a_SOURCES += %D%/replica/partition.c %D%/replica/partition.h %D%/replica/partition_int.h
%C%_libklogd_a_SOURCES += %D%/replica/partition_follow.c %D%/replica/partition_follow.h
%C%_libklogd_a_SOURCES += %D%/replica/partition_mend.c
%C%_libklogd_a_SOURCES += %D%/replica/partitions.c
%C%_libklogd_a_SOURCES += %D%/replica/throttle.c %D%/replica/throttle.h
EXTRA_DIST += %D%/replica/README.md

# following other brokers
%C%_libklogd_a_SOURCES += %D%/follow/follow.c %D%/follow/follow.h %D%/follow/follow_int.h
%C%_libklogd_a_SOURCES += %D%/follow/fetcher.c
%C%_libklogd_a_SOURCES += %D%/follow/part.c

# upkeep
%C%_libklogd_a_SOURCES += %D%/upkeep/scrubber.c %D%/upkeep/scrubber.h
%C%_libklogd_a_SOURCES += %D%/upkeep/cleaner.c %D%/upkeep/cleaner.h
%C%_libklogd_a_SOURCES += %D%/upkeep/cleaner_choice.c %D%/upkeep/cleaner_choice.h
%C%_libklogd_a_SOURCES += %D%/upkeep/upkeep.c %D%/upkeep/upkeep.h

# server
%C%_libklogd_a_SOURCES += %D%/server/server.c %D%/server/server.h %D%/server/server_int.h
%C%_libklogd_a_SOURCES += %D%/server/figures.c
%C%_libklogd_a_SOURCES += %D%/server/memory.c
%C%_libklogd_a_SOURCES += %D%/server/session.c
%C%_libklogd_a_SOURCES += %D%/server/request.c %D%/server/request.h

# groups
%C%_libklogd_a_SOURCES += %D%/group/group.c %D%/group/group.h %D%/group/group_int.h
%C%_libklogd_a_SOURCES += %D%/group/group_join.c
%C%_libklogd_a_SOURCES += %D%/group/group_member.c
%C%_libklogd_a_SOURCES += %D%/group/group_pending.c
%C%_libklogd_a_SOURCES += %D%/group/group_protocol.c
%C%_libklogd_a_SOURCES += %D%/group/group_rebalance.c
%C%_libklogd_a_SOURCES += %D%/group/group_sync.c
%C%_libklogd_a_SOURCES += %D%/group/group_replay.c %D%/group/group_replay.h
%C%_libklogd_a_SOURCES += %D%/group/group_topics.c %D%/group/group_topics.h
%C%_libklogd_a_SOURCES += %D%/group/committed.c %D%/group/committed.h
%C%_libklogd_a_SOURCES += %D%/group/group_log.c %D%/group/group_log.h
%C%_libklogd_a_SOURCES += %D%/group/coordinator.c %D%/group/coordinator.h %D%/group/coordinator_int.h
%C%_libklogd_a_SOURCES += %D%/group/coordinator_delete.c
%C%_libklogd_a_SOURCES += %D%/group/coordinator_env.c
%C%_libklogd_a_SOURCES += %D%/group/coordinator_expiry.c
%C%_libklogd_a_SOURCES += %D%/group/coordinator_load.c
%C%_libklogd_a_SOURCES += %D%/group/coordinator_place.c
%C%_libklogd_a_SOURCES += %D%/group/coordinator_write.c

# requests
%C%_libklogd_a_SOURCES += %D%/api/api.c %D%/api/api.h %D%/api/services.h
%C%_libklogd_a_SOURCES += %D%/api/admin.c %D%/api/admin.h
%C%_libklogd_a_SOURCES += %D%/api/broker_address.c
%C%_libklogd_a_SOURCES += %D%/api/alter_reassignments.c %D%/api/elect_leaders.c
%C%_libklogd_a_SOURCES += %D%/api/alter_configs.c %D%/api/config_resource.h
%C%_libklogd_a_SOURCES += %D%/api/config_describe.c %D%/api/config_describe.h
%C%_libklogd_a_SOURCES += %D%/api/create_partitions.c
%C%_libklogd_a_SOURCES += %D%/api/create_topics.c
%C%_libklogd_a_SOURCES += %D%/api/delete_topics.c
%C%_libklogd_a_SOURCES += %D%/api/describe_acls.c %D%/api/describe_producers.c %D%/api/describe_topic_partitions.c %D%/api/list_transactions.c %D%/api/list_config_resources.c %D%/api/sasl_handshake.c
%C%_libklogd_a_SOURCES += %D%/api/describe_cluster.c
%C%_libklogd_a_SOURCES += %D%/api/describe_configs.c
%C%_libklogd_a_SOURCES += %D%/api/find_coordinator.c
%C%_libklogd_a_SOURCES += %D%/api/group_waiter.c %D%/api/group_api.h
%C%_libklogd_a_SOURCES += %D%/api/delete_groups.c
%C%_libklogd_a_SOURCES += %D%/api/describe_groups.c
%C%_libklogd_a_SOURCES += %D%/api/heartbeat.c
%C%_libklogd_a_SOURCES += %D%/api/join_group.c
%C%_libklogd_a_SOURCES += %D%/api/leave_group.c
%C%_libklogd_a_SOURCES += %D%/api/list_groups.c
%C%_libklogd_a_SOURCES += %D%/api/offset_commit.c
%C%_libklogd_a_SOURCES += %D%/api/offset_delete.c
%C%_libklogd_a_SOURCES += %D%/api/offset_fetch.c
%C%_libklogd_a_SOURCES += %D%/api/sync_group.c
%C%_libklogd_a_SOURCES += %D%/api/init_producer_id.c
%C%_libklogd_a_SOURCES += %D%/api/list_reassignments.c
%C%_libklogd_a_SOURCES += %D%/api/metadata.c
%C%_libklogd_a_SOURCES += %D%/api/delete_records.c
%C%_libklogd_a_SOURCES += %D%/api/describe_log_dirs.c
%C%_libklogd_a_SOURCES += %D%/api/fetch.c
%C%_libklogd_a_SOURCES += %D%/api/klog_find_text.c
%C%_libklogd_a_SOURCES += %D%/api/klog_stat.c
%C%_libklogd_a_SOURCES += %D%/api/list_offsets.c
%C%_libklogd_a_SOURCES += %D%/api/offset_for_leader_epoch.c
%C%_libklogd_a_SOURCES += %D%/api/produce.c
%C%_libklogd_a_SOURCES += %D%/api/versions.c

# watching it: the page is HTML in the tree and an array in klogd
%C%_libklogd_a_SOURCES += %D%/watch/watch.c %D%/watch/watch.h %D%/watch/watch_int.h
%C%_libklogd_a_SOURCES += %D%/watch/survey.c %D%/watch/survey.h
%C%_libklogd_a_SOURCES += %D%/watch/metrics.c %D%/watch/metrics.def
%C%_libklogd_a_SOURCES += %D%/watch/status.c
nodist_%C%_libklogd_a_SOURCES = %D%/watch/status_html.c
EXTRA_DIST += %D%/watch/embed.py %D%/watch/status.html
CLEANFILES += %D%/watch/status_html.c
%D%/watch/status_html.c: %D%/watch/embed.py %D%/watch/status.html
	$(AM_V_GEN)$(MKDIR_P) %D%/watch && $(PYTHON) $(srcdir)/%D%/watch/embed.py status_html $(srcdir)/%D%/watch/status.html >$@.tmp && mv $@.tmp $@

# the program
%C%_libklogd_a_SOURCES += %D%/broker.c %D%/broker.h
%C%_libklogd_a_SOURCES += %D%/import.c %D%/import.h
sbin_PROGRAMS += %D%/klogd
%C%_klogd_SOURCES = %D%/main.c
%C%_klogd_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS)
%C%_klogd_LDADD = $(LIBS_KLOGD) $(SYSTEMD_LIBS)

# registers and cluster
EXTRA_DIST += %D%/meta/README.md
%C%_libklogd_a_SOURCES += %D%/meta/registers.c %D%/meta/registers.h
%C%_libklogd_a_SOURCES += %D%/meta/register_tree.c %D%/meta/register_tree.h
%C%_libklogd_a_SOURCES += %D%/meta/embedded.c
%C%_libklogd_a_SOURCES += %D%/meta/zookeeper.c %D%/meta/zookeeper.h
%C%_libklogd_a_SOURCES += %D%/meta/zookeeper_handle.c %D%/meta/zookeeper_handle.h
%C%_libklogd_a_SOURCES += %D%/meta/zookeeper_target.c
%C%_libklogd_a_SOURCES += %D%/meta/register_watches.c %D%/meta/register_watches.h
%C%_libklogd_a_SOURCES += %D%/meta/register_batch.c %D%/meta/register_batch.h
%C%_libklogd_a_SOURCES += %D%/meta/registers_wait.c
%C%_libklogd_a_SOURCES += %D%/meta/register_json.c %D%/meta/register_json.h
%C%_libklogd_a_SOURCES += %D%/meta/register_ops.c
%C%_libklogd_a_SOURCES += %D%/meta/topic_name.c
%C%_libklogd_a_SOURCES += %D%/meta/config_ops.c %D%/meta/config_ops.h
%C%_libklogd_a_SOURCES += %D%/meta/cluster.c %D%/meta/cluster.h %D%/meta/cluster_int.h
%C%_libklogd_a_SOURCES += %D%/meta/cluster_image.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_load.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_slot.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_brokers.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_change.c %D%/meta/change.h
%C%_libklogd_a_SOURCES += %D%/meta/change_prepare.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_start.c %D%/meta/cluster_start.h
%C%_libklogd_a_SOURCES += %D%/meta/placement.c %D%/meta/placement.h
%C%_libklogd_a_SOURCES += %D%/meta/cluster_partition.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_session.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_lead.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_widen.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_sweep.c
%C%_libklogd_a_SOURCES += %D%/meta/change_parts.c
%C%_libklogd_a_SOURCES += %D%/meta/change_replicas.c
%C%_libklogd_a_SOURCES += %D%/meta/cluster_orphans.c
%C%_libklogd_a_SOURCES += %D%/meta/producer_ids.c
