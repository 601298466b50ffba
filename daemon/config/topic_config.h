/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topic's configuration: Kafka's key names, one table. Immutable once made and shared by reference:
 * a change makes a new one. What the topic does not set itself comes from the broker's defaults.
 */
#ifndef KLOG_DAEMON_TOPIC_CONFIG_H
#define KLOG_DAEMON_TOPIC_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/conf.h"
#include "lib/record/codec.h"
#include "lib/store/plog.h"

struct broker_config;

enum flush_policy { FLUSH_COMMIT, FLUSH_INTERVAL, FLUSH_ASYNC }; /* order of the words in the table */
/* order of the words in the table; after the first two that of enum codec */
enum compression_type {
    COMPRESSION_PRODUCER,
    COMPRESSION_UNCOMPRESSED,
    COMPRESSION_GZIP,
    COMPRESSION_SNAPPY,
    COMPRESSION_LZ4,
    COMPRESSION_ZSTD
};

struct topic_config {
    atomic_int refs;
    struct plog_config plog;
    int32_t max_message_bytes, min_insync_replicas;
    bool log_append_time;
    int64_t timestamp_before_max_ms, timestamp_after_max_ms;
    enum flush_policy flush_policy;
    int64_t flush_messages, flush_ms;
    double min_cleanable_dirty_ratio;
    int64_t min_compaction_lag_ms, max_compaction_lag_ms, delete_retention_ms;
    int compression_type;  /* enum compression_type */
    int32_t compression_gzip_level, compression_lz4_level, compression_zstd_level;
    bool compact, delete_; /* as in plog.compact_policy, plog.delete_policy */

    /* What Kafka has settings for and klog does in one way only: the values that say so (topic_config.c). */
    struct {
        bool preallocate, remote_storage, remote_copy_disable, remote_delete_on_disable, dead_letters;
        int64_t jitter_ms, delete_delay_ms, local_retention_ms, local_retention_bytes, copy_lag_ms, copy_lag_bytes;
        int32_t index_bytes, decompressed_bytes;
    } kept;

    bool unclean_leader_election;
    char *leader_throttled, *follower_throttled; /* "PARTITION:BROKER,...", or "*": topic_config_throttles() */

    char *cleanup_policy; /* as text; the two flags above are made from it */
    int timestamp_type;   /* 0 CreateTime, 1 LogAppendTime */
    uint64_t set;         /* bit i: key i of the table is the topic's own, not the broker's */
    char *extra;          /* owned: what this version does not know of its register; NULL nothing */
};

extern const struct conf_table topic_config_table;
/* The words of some keys, for the broker's table of their defaults. */
extern const char *const topic_cleanup_policies[], *const topic_timestamp_types[];
extern const char *const topic_compression_types[], *const topic_flush_policies[];

struct topic_config_entry {
    char *key, *value; /* value NULL: back to the default */
};
/* One reference; NULL and one line in err when an entry is unknown or its value is bad. */
struct topic_config *topic_config_new(const struct broker_config *defaults,
                                      const struct topic_config_entry *entries, size_t n, char *err,
                                      size_t err_size);
struct topic_config *topic_config_ref(struct topic_config *c);
void topic_config_unref(struct topic_config *c); /* NULL is fine */

/* The codec that batches of the topic are kept in, and its level for codec_compress. False: the producer's. */
bool topic_config_codec(const struct topic_config *c, enum codec *ret, int *ret_level);
/* Does a list of throttled replicas name that one? */
bool topic_config_throttles(const char *list, int32_t partition, int32_t broker);
bool topic_config_is_set(const struct topic_config *c, const struct conf_key *k);
/* The broker keys that k's default comes from, strongest first; NULL-terminated. None: the table's is the default. */
const char *const *topic_config_synonyms(const struct conf_key *k);

#endif
