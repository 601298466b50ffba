/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's configuration: Kafka's key names where Kafka has the key, one table (broker_config.c)
 * that the parser, DescribeConfigs and docs/CONFIGURATION.md are all made from.
 *
 * Filled once at start (file, then overrides), then immutable. Keys that may change while the broker
 * runs are overlaid by the cluster in a copy (cluster_image.config); nobody else writes.
 * Knows no files but the one it reads; resolves no names.
 */
#ifndef KLOG_DAEMON_BROKER_CONFIG_H
#define KLOG_DAEMON_BROKER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/conf.h"

#define BROKER_CONFIG_KEYS_MAX 128
#define NETWORK_THREADS_MAX    256
#define LISTENERS_MAX          32

struct broker_config {
    /* who and where */
    int32_t broker_id; /* -1: what the log directories say, 1 in new ones */
    char *cluster_id;  /* empty: what the log directories say, or a new one */
    char *broker_rack; /* empty: none */
    char *zookeeper_connect; /* empty: alone */
    int32_t zookeeper_session_timeout_ms;
    char *zookeeper_digest_file;
    char *listeners, *advertised_listeners, *inter_broker_listener_name;
    char *log_dirs;
    int log_level; /* enum log_level */
    char *http_listener; /* empty: none */
    /* network and threads */
    int32_t num_network_threads; /* 0: one a core, at most 8 */
    int32_t num_io_threads;
    int32_t socket_request_max_bytes, socket_send_buffer_bytes, socket_receive_buffer_bytes;
    int64_t connections_max_idle_ms;
    int32_t max_connections, queued_max_requests;
    int64_t queued_max_request_bytes; /* broker_config_queued_bytes() */
    /* topics */
    int32_t num_partitions, default_replication_factor;
    bool auto_leader_rebalance_enable, unclean_leader_election_enable;
    int32_t leader_imbalance_check_interval_seconds, leader_imbalance_per_broker_percentage;
    bool auto_create_topics_enable, delete_topic_enable;
    /* defaults of topics */
    int32_t message_max_bytes, min_insync_replicas;
    int64_t log_segment_bytes, log_roll_ms, log_retention_ms, log_retention_bytes;
    int32_t log_roll_hours, log_retention_minutes, log_retention_hours, log_index_interval_bytes;
    char *log_cleanup_policy;
    int log_message_timestamp_type, compression_type, flush_policy;
    int32_t compression_gzip_level, compression_lz4_level, compression_zstd_level;
    int64_t log_message_timestamp_before_max_ms, log_message_timestamp_after_max_ms;
    int64_t log_flush_interval_messages, log_flush_interval_ms;
    double log_cleaner_min_cleanable_ratio;
    int64_t log_cleaner_min_compaction_lag_ms, log_cleaner_max_compaction_lag_ms;
    int64_t log_cleaner_delete_retention_ms;
    /* replication */
    int32_t num_replica_fetchers, replica_fetch_max_bytes, replica_fetch_response_max_bytes;
    int32_t replica_fetch_min_bytes, replica_fetch_wait_max_ms, replica_fetch_backoff_ms;
    int64_t replica_lag_time_max_ms;
    int64_t leader_replication_throttled_rate, follower_replication_throttled_rate; /* bytes a second */
    char *replica_selector_class;
    /* upkeep */
    int64_t log_retention_check_interval_ms, producer_id_expiration_ms;
    bool log_cleaner_enable;
    int64_t log_cleaner_dedupe_buffer_size, log_cleaner_backoff_ms;
    double log_cleaner_io_max_bytes_per_second;
    int64_t log_scrub_interval_ms;
    double log_scrub_io_max_bytes_per_second;
    /* groups */
    int32_t offsets_topic_num_partitions, offsets_topic_replication_factor, offsets_topic_segment_bytes;
    int32_t offsets_retention_minutes, offsets_commit_timeout_ms, offset_metadata_max_bytes;
    int64_t offsets_retention_check_interval_ms;
    int32_t group_min_session_timeout_ms, group_max_session_timeout_ms;
    int32_t group_initial_rebalance_delay_ms, group_max_size;

    uint64_t set[BROKER_CONFIG_KEYS_MAX / 64]; /* bit i: key i of the table was given, not defaulted */
};

extern const struct conf_table broker_config_table;

void broker_config_init(struct broker_config *c);
void broker_config_done(struct broker_config *c);
void broker_config_copy(struct broker_config *dst, const struct broker_config *src);

/* Sets one key (or its alias, as node.id); -EINVAL and one line in err, the value then stays. */
int broker_config_set(struct broker_config *c, const char *name, const char *value, char *err,
                      size_t err_size);
int broker_config_read_file(struct broker_config *c, const char *path, char *err, size_t err_size);
/* What single keys cannot say: keys that contradict each other. -EINVAL and one line. */
int broker_config_check(const struct broker_config *c, char *err, size_t err_size);

/* By its own name or an alias; NULL when there is none. */
const struct conf_key *broker_config_find(const char *name);
bool broker_config_is_set(const struct broker_config *c, const struct conf_key *k);

/* The finest unit that was given wins, as in Kafka: ms, then minutes, then hours. */
int64_t broker_config_retention_ms(const struct broker_config *c);
int64_t broker_config_roll_ms(const struct broker_config *c);
/* INT64_MAX: no limit. */
int64_t broker_config_queued_bytes(const struct broker_config *c);
struct machine;
int32_t broker_config_network_threads(const struct broker_config *c, const struct machine *m);

/* KIP-392: consumers that name their rack may be sent to a follower in it. */
bool broker_config_reads_nearest(const struct broker_config *c);

/* ---- listeners = NAME://host:port, ... ---- */
struct broker_listener {
    char *name;              /* "PLAINTEXT" */
    char *host;              /* "" all addresses */
    int32_t port;            /* 0: the kernel chooses */
    char *advertised_host;   /* NULL: the address at which the client reached us */
    int32_t advertised_port; /* 0: the port that was bound */
};
/* Joins listeners and advertised.listeners by name. The caller frees with broker_listeners_free. */
int broker_config_listeners(const struct broker_config *c, struct broker_listener **ret, size_t *ret_n,
                            char *err, size_t err_size);
void broker_listeners_free(struct broker_listener *ls, size_t n);

#endif
