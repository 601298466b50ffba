/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of APIs this broker serves: key, the versions it advertises (which may be fewer than the schema
 * describes), the handler. One handler a file; ApiVersions answers from this table.
 */
#ifndef KLOG_DAEMON_API_H
#define KLOG_DAEMON_API_H

#include "daemon/server/request.h"

extern const struct server_apis apis_served;
const struct api *api_find(int16_t key); /* NULL: not served */
const struct api *api_at(size_t i);      /* in the order of keys; NULL past the end */

/* Answers an ApiVersions request of a version we do not know, in version 0's layout (KIP-511). */
void api_versions_unsupported(struct request *r);

request_handler handle_alter_configs;
request_handler handle_api_versions;
request_handler handle_create_partitions;
request_handler handle_create_topics;
request_handler handle_delete_groups;
request_handler handle_delete_records;
request_handler handle_delete_topics;
request_handler handle_describe_acls;
request_handler handle_describe_client_quotas;
request_handler handle_describe_cluster;
request_handler handle_describe_producers;
request_handler handle_describe_topic_partitions;
request_handler handle_describe_user_scram_credentials;
request_handler handle_list_config_resources;
request_handler handle_list_transactions;
request_handler handle_sasl_handshake;
request_handler handle_describe_configs;
request_handler handle_describe_groups;
request_handler handle_describe_log_dirs;
request_handler handle_fetch;
request_handler handle_find_coordinator;
request_handler handle_heartbeat;
request_handler handle_incremental_alter_configs;
request_handler handle_init_producer_id;
request_handler handle_join_group;
request_handler handle_klog_find_text;
request_handler handle_klog_stat;
request_handler handle_leave_group;
request_handler handle_list_groups;
request_handler handle_list_offsets;
request_handler handle_list_partition_reassignments;
request_handler handle_alter_partition_reassignments;
request_handler handle_elect_leaders;
request_handler handle_metadata;
request_handler handle_offset_commit;
request_handler handle_offset_delete;
request_handler handle_offset_fetch;
request_handler handle_offset_for_leader_epoch;
request_handler handle_produce;
request_handler handle_sync_group;

#endif
