/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table. Ranges are chosen with clients in mind, not only with what the code could do: librdkafka
 * before 2.6 looks for single versions (Produce 0, 3 and 7; Fetch 4 and 10; ...) and turns features off
 * without a word when one is outside the range. Produce 0-2 is advertised for that reason and answered with
 * an error.
 */
#include "daemon/api/api.h"

#include "lib/base/attr.h"

static const struct api apis[] = {
    /* sorted by key */
    { API_PRODUCE, 0, 13, handle_produce },
    { API_FETCH, 4, 16, handle_fetch },
    { API_LIST_OFFSETS, 0, 9, handle_list_offsets },
    { API_METADATA, 0, 12, handle_metadata },
    { API_OFFSET_COMMIT, 2, 10, handle_offset_commit },
    { API_OFFSET_FETCH, 1, 10, handle_offset_fetch },
    { API_FIND_COORDINATOR, 0, 5, handle_find_coordinator },
    { API_JOIN_GROUP, 0, 9, handle_join_group },
    { API_HEARTBEAT, 0, 4, handle_heartbeat },
    { API_LEAVE_GROUP, 0, 5, handle_leave_group },
    { API_SYNC_GROUP, 0, 5, handle_sync_group },
    { API_DESCRIBE_GROUPS, 0, 6, handle_describe_groups },
    { API_LIST_GROUPS, 0, 5, handle_list_groups },
    { API_SASL_HANDSHAKE, 0, 1, handle_sasl_handshake },
    { API_API_VERSIONS, 0, 4, handle_api_versions },
    { API_CREATE_TOPICS, 2, 7, handle_create_topics },
    { API_DELETE_TOPICS, 1, 6, handle_delete_topics },
    { API_DELETE_RECORDS, 0, 2, handle_delete_records },
    { API_INIT_PRODUCER_ID, 0, 5, handle_init_producer_id },
    { API_OFFSET_FOR_LEADER_EPOCH, 2, 4, handle_offset_for_leader_epoch },
    { API_DESCRIBE_ACLS, 1, 3, handle_describe_acls },
    { API_DESCRIBE_CONFIGS, 1, 4, handle_describe_configs },
    { API_ALTER_CONFIGS, 0, 2, handle_alter_configs },
    { API_DESCRIBE_LOG_DIRS, 1, 4, handle_describe_log_dirs },
    { API_CREATE_PARTITIONS, 0, 3, handle_create_partitions },
    { API_DELETE_GROUPS, 0, 2, handle_delete_groups },
    { API_ELECT_LEADERS, 0, 2, handle_elect_leaders },
    { API_INCREMENTAL_ALTER_CONFIGS, 0, 1, handle_incremental_alter_configs },
    { API_ALTER_PARTITION_REASSIGNMENTS, 0, 1, handle_alter_partition_reassignments },
    { API_LIST_PARTITION_REASSIGNMENTS, 0, 0, handle_list_partition_reassignments },
    { API_OFFSET_DELETE, 0, 0, handle_offset_delete },
    { API_DESCRIBE_CLIENT_QUOTAS, 0, 1, handle_describe_client_quotas },
    { API_DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, handle_describe_user_scram_credentials },
    { API_DESCRIBE_CLUSTER, 0, 2, handle_describe_cluster },
    { API_DESCRIBE_PRODUCERS, 0, 0, handle_describe_producers },
    { API_LIST_TRANSACTIONS, 0, 2, handle_list_transactions },
    { API_LIST_CONFIG_RESOURCES, 0, 1, handle_list_config_resources },
    { API_DESCRIBE_TOPIC_PARTITIONS, 0, 0, handle_describe_topic_partitions },
    { API_KLOG_STAT, 0, 1, handle_klog_stat },
    { API_KLOG_FIND_TEXT, 0, 1, handle_klog_find_text },
};

const struct api *api_find(int16_t key)
{
    size_t lo = 0, hi = ARRAY_LEN(apis);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (apis[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < ARRAY_LEN(apis) && apis[lo].key == key ? &apis[lo] : NULL;
}

const struct api *api_at(size_t i)
{
    return i < ARRAY_LEN(apis) ? &apis[i] : NULL;
}

const struct server_apis apis_served = { .find = api_find, .versions_unsupported = api_versions_unsupported };
