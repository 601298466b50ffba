/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of topic keys and where their defaults come from. Pure; any thread.
 */
#include "daemon/config/topic_config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/broker_config.h"
#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

#define I32_MAX   2147483647.0
#define I64_MAX   9223372036854775807.0
#define FIELD(f)  offsetof(struct topic_config, f)
#define VALUE_MAX 256

enum { WRITEBACK_BYTES = 8 * 1024 * 1024 };

const char *const topic_cleanup_policies[] = { "delete", "compact", NULL };
const char *const topic_timestamp_types[] = { "CreateTime", "LogAppendTime", NULL };
const char *const topic_compression_types[] = { "producer", "uncompressed", "gzip", "snappy",
                                                "lz4",      "zstd",         NULL };
static_assert(COMPRESSION_ZSTD - COMPRESSION_UNCOMPRESSED == (int)CODEC_ZSTD, "the order of the words");
/* Kafka's default, at which it takes lz4's fast compressor, as level 0 does here (KIP-390). */
#define LZ4_LEVEL_FAST 9
const char *const topic_flush_policies[] = { "commit", "interval", "async", NULL };

static const struct conf_key keys[] = {
    { "cleanup.policy", CONF_LIST, "delete", 0, 0, topic_cleanup_policies, FIELD(cleanup_policy),
      "What happens to old records: delete by age and size; compact keeps the newest of each key, so that "
      "every "
      "record needs one.",
      false },
    { "compression.type", CONF_ENUM, "producer", 0, 0, topic_compression_types, FIELD(compression_type),
      "How batches are kept: producer, as they were sent; another codec, or uncompressed: the broker packs what "
      "comes otherwise anew, which costs it time.",
      false },
    { "compression.gzip.level", CONF_INT, "-1", -1, 9, NULL, FIELD(compression_gzip_level),
      "With compression.type=gzip: 1 is fast, 9 is small; -1: 6.", false },
    { "compression.lz4.level", CONF_INT, "9", 1, 17, NULL, FIELD(compression_lz4_level),
      "With compression.type=lz4: how hard to try; 9 is lz4's fast mode, as in Kafka.", false },
    { "compression.zstd.level", CONF_INT, "3", -131072, 22, NULL, FIELD(compression_zstd_level),
      "With compression.type=zstd: 22 is smallest; below zero, fast.", false },
    { "max.message.bytes", CONF_INT, "1048588", 0, I32_MAX, NULL, FIELD(max_message_bytes),
      "Largest record batch, as it is on the wire.", false },
    { "message.timestamp.type", CONF_ENUM, "CreateTime", 0, 0, topic_timestamp_types, FIELD(timestamp_type),
      "Whose time a record carries: the producer's or the broker's.", false },
    { "message.timestamp.before.max.ms", CONF_LONG, "9223372036854775807", 0, I64_MAX, NULL,
      FIELD(timestamp_before_max_ms), "A producer's time further in the past is refused.", false },
    { "message.timestamp.after.max.ms", CONF_LONG, "3600000", 0, I64_MAX, NULL, FIELD(timestamp_after_max_ms),
      "A producer's time further in the future is refused.", false },
    { "min.insync.replicas", CONF_INT, "1", 1, 32, NULL, FIELD(min_insync_replicas),
      "Replicas that must be in sync for a write with acks=all.", false },
    { "retention.ms", CONF_LONG, "604800000", -1, I64_MAX, NULL, FIELD(plog.retention_ms),
      "Closed segments whose newest record is older are deleted. -1: never for their age.", false },
    { "retention.bytes", CONF_LONG, "-1", -1, I64_MAX, NULL, FIELD(plog.retention_bytes),
      "The oldest segments of a partition larger than this are deleted. -1: no limit.", false },
    { "segment.bytes", CONF_LONG, "1073741824", 1024, I32_MAX, NULL, FIELD(plog.segment_bytes),
      "A segment file that would grow larger is closed and a new one begun.", false },
    { "segment.ms", CONF_LONG, "604800000", 1, I64_MAX, NULL, FIELD(plog.segment_ms),
      "A segment older than this is closed.", false },
    { "index.interval.bytes", CONF_INT, "4096", 0, I32_MAX, NULL, FIELD(plog.index_interval_bytes),
      "Bytes of log between two index entries.", false },
    { "flush.policy", CONF_ENUM, "commit", 0, 0, topic_flush_policies, FIELD(flush_policy),
      "When records go to the disk: commit, before they are acknowledged or seen; interval, every "
      "flush.messages or "
      "flush.ms, seen and acknowledged after that; async, when the kernel likes, as in Kafka.",
      false },
    { "flush.messages", CONF_LONG, "10000", 1, I64_MAX, NULL, FIELD(flush_messages),
      "Under flush.policy=interval: flush after this many records.", false },
    { "flush.ms", CONF_LONG, "1000", 1, I64_MAX, NULL, FIELD(flush_ms),
      "Under flush.policy=interval: flush what has waited this long.", false },
    { "min.cleanable.dirty.ratio", CONF_DOUBLE, "0.5", 0, 1, NULL, FIELD(min_cleanable_dirty_ratio),
      "With compaction: clean when more than this share of the log's bytes is new.", false },
    { "min.compaction.lag.ms", CONF_LONG, "0", 0, I64_MAX, NULL, FIELD(min_compaction_lag_ms),
      "With compaction: no record younger than this is removed.", false },
    { "max.compaction.lag.ms", CONF_LONG, "9223372036854775807", 1, I64_MAX, NULL, FIELD(max_compaction_lag_ms),
      "With compaction: a record that waited this long is cleaned whatever the share of new bytes.", false },
    { "delete.retention.ms", CONF_LONG, "86400000", 0, I64_MAX, NULL, FIELD(delete_retention_ms),
      "With compaction: how long a key's deletion (a record with a null value) can still be read after it was "
      "first cleaned.",
      false },
    { "unclean.leader.election.enable", CONF_BOOL, "false", 0, 0, NULL, FIELD(unclean_leader_election),
      "Where no replica that is in sync is there any replica leads, with what it has: acknowledged records may be lost.", false },
    { "leader.replication.throttled.replicas", CONF_LIST, "", 0, 0, NULL, FIELD(leader_throttled),
      "Replicas that give no more than leader.replication.throttled.rate of their broker while they lead: "
      "PARTITION:BROKER,... or * for all.",
      false },
    { "follower.replication.throttled.replicas", CONF_LIST, "", 0, 0, NULL, FIELD(follower_throttled),
      "Replicas that copy no more than follower.replication.throttled.rate of their broker until they are in sync: "
      "PARTITION:BROKER,... or * for all.",
      false },
#define ONLY(what) "Kafka's; only this value, since " what
    { "preallocate", CONF_BOOL, "false", 0, 0, NULL, FIELD(kept.preallocate),
      ONLY("segments grow as they are written."), false },
    { "segment.index.bytes", CONF_INT, "10485760", 4, I32_MAX, NULL, FIELD(kept.index_bytes),
      "Kafka's: an index that is full closes its segment. Indexes here grow with their segments, so that it has to be "
      "large enough for a full one: 8 bytes for each index.interval.bytes of segment.bytes.",
      false },
    { "segment.jitter.ms", CONF_LONG, "0", 0, I64_MAX, NULL, FIELD(kept.jitter_ms),
      ONLY("segments are closed when segment.ms is over."), false },
    { "file.delete.delay.ms", CONF_LONG, "60000", 0, I64_MAX, NULL, FIELD(kept.delete_delay_ms),
      "Kafka's; only this value, or 0: a deleted file's room is free as soon as nobody reads it.", false },
    { "max.decompressed.message.bytes", CONF_INT, "2147483639", 1, I32_MAX, NULL, FIELD(kept.decompressed_bytes),
      ONLY("a batch is unpacked piece by piece, in bounded memory."), false },
    { "remote.storage.enable", CONF_BOOL, "false", 0, 0, NULL, FIELD(kept.remote_storage),
      ONLY("there is no tiered storage."), false },
    { "remote.log.copy.disable", CONF_BOOL, "false", 0, 0, NULL, FIELD(kept.remote_copy_disable),
      ONLY("there is no tiered storage."), false },
    { "remote.log.delete.on.disable", CONF_BOOL, "false", 0, 0, NULL, FIELD(kept.remote_delete_on_disable),
      ONLY("there is no tiered storage."), false },
    { "remote.copy.lag.ms", CONF_LONG, "0", -2, I64_MAX, NULL, FIELD(kept.copy_lag_ms),
      ONLY("there is no tiered storage."), false },
    { "remote.copy.lag.bytes", CONF_LONG, "-1", -2, I64_MAX, NULL, FIELD(kept.copy_lag_bytes),
      ONLY("there is no tiered storage."), false },
    { "local.retention.ms", CONF_LONG, "-2", -2, I64_MAX, NULL, FIELD(kept.local_retention_ms),
      ONLY("there is no tiered storage; -2 is: as retention.ms."), false },
    { "local.retention.bytes", CONF_LONG, "-2", -2, I64_MAX, NULL, FIELD(kept.local_retention_bytes),
      ONLY("there is no tiered storage; -2 is: as retention.bytes."), false },
    { "errors.deadletterqueue.group.enable", CONF_BOOL, "false", 0, 0, NULL, FIELD(kept.dead_letters),
      ONLY("there are no share groups."), false },
#undef ONLY
};
static_assert(ARRAY_LEN(keys) <= 64, "topic_config.set is too small");

const struct conf_table topic_config_table = { keys, ARRAY_LEN(keys), "topic" };

/* The broker keys behind each topic key, strongest first, in the order of the table. */
static const char *const synonyms[ARRAY_LEN(keys)][4] = {
    { "log.cleanup.policy" },
    { "compression.type" },
    { "compression.gzip.level" },
    { "compression.lz4.level" },
    { "compression.zstd.level" },
    { "message.max.bytes" },
    { "log.message.timestamp.type" },
    { "log.message.timestamp.before.max.ms" },
    { "log.message.timestamp.after.max.ms" },
    { "min.insync.replicas" },
    { "log.retention.ms", "log.retention.minutes", "log.retention.hours" },
    { "log.retention.bytes" },
    { "log.segment.bytes" },
    { "log.roll.ms", "log.roll.hours" },
    { "log.index.interval.bytes" },
    { "flush.policy" },
    { "log.flush.interval.messages" },
    { "log.flush.interval.ms" },
    { "log.cleaner.min.cleanable.ratio" },
    { "log.cleaner.min.compaction.lag.ms" },
    { "log.cleaner.max.compaction.lag.ms" },
    { "log.cleaner.delete.retention.ms" },
    { "unclean.leader.election.enable" },
};

static size_t key_index(const struct conf_key *k)
{
    KCHECK(k >= keys && k < keys + ARRAY_LEN(keys));
    return (size_t)(k - keys);
}

const char *const *topic_config_synonyms(const struct conf_key *k)
{
    return synonyms[key_index(k)];
}

bool topic_config_codec(const struct topic_config *c, enum codec *ret, int *ret_level)
{
    if (c->compression_type == COMPRESSION_PRODUCER)
        return false;
    *ret = (enum codec)(c->compression_type - COMPRESSION_UNCOMPRESSED);
    switch (*ret) {
    case CODEC_GZIP:
        *ret_level = MAX(c->compression_gzip_level, 0);
        break;
    case CODEC_LZ4:
        *ret_level = c->compression_lz4_level == LZ4_LEVEL_FAST ? 0 : c->compression_lz4_level;
        break;
    case CODEC_ZSTD:
        *ret_level = c->compression_zstd_level;
        break;
    default:
        *ret_level = 0;
    }
    return true;
}

bool topic_config_is_set(const struct topic_config *c, const struct conf_key *k)
{
    return (c->set >> key_index(k) & 1) != 0;
}

/* Every default goes through the text of the broker's key, so both tables must agree on ranges and words. */
static void take_defaults(struct topic_config *c, const struct broker_config *b)
{
    char text[VALUE_MAX], err[VALUE_MAX];

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (synonyms[i][0] == NULL || synonyms[i][1] != NULL)
            continue; /* the table's default; or it has several units: below */
        conf_get(broker_config_find(synonyms[i][0]), b, text, sizeof text);
        KCHECK(conf_set(&topic_config_table, c, keys[i].name, text, err, sizeof err) == 0);
    }
    c->plog.retention_ms = broker_config_retention_ms(b);
    c->plog.segment_ms = broker_config_roll_ms(b);
    c->plog.producer_expiry_ms = b->producer_id_expiration_ms;
}

/* What is done in one way only, and one more word for it where there is one. */
static const char *const only[][2] = {
    { "preallocate" }, { "segment.jitter.ms" }, { "file.delete.delay.ms", "0" },
    { "max.decompressed.message.bytes" }, { "remote.storage.enable" }, { "remote.log.copy.disable" },
    { "remote.log.delete.on.disable" }, { "remote.copy.lag.ms" }, { "remote.copy.lag.bytes" },
    { "local.retention.ms" }, { "local.retention.bytes" }, { "errors.deadletterqueue.group.enable" },
};

static bool is_done(const struct topic_config *c, const struct conf_key *k)
{
    char text[VALUE_MAX];

    for (size_t i = 0; i < ARRAY_LEN(only); i++) {
        if (strcmp(only[i][0], k->name) != 0)
            continue;
        conf_get(k, c, text, sizeof text);
        return strcmp(text, k->def) == 0 || (only[i][1] != NULL && strcmp(text, only[i][1]) == 0);
    }
    return true;
}

static int take_entry(struct topic_config *c, const struct topic_config_entry *e, char *err, size_t err_size)
{
    if (e->value == NULL && conf_find(&topic_config_table, e->key) != NULL)
        return 0;
    int rc = conf_set(&topic_config_table, c, e->key, e->value == NULL ? "" : e->value, err, err_size);
    if (rc < 0)
        return rc;
    const struct conf_key *k = conf_find(&topic_config_table, e->key);
    if (!is_done(c, k)) {
        snprintf(err, err_size, "%s: only \"%s\" here. %s", k->name, k->def, k->doc);
        return -EINVAL;
    }
    c->set |= UINT64_C(1) << key_index(k);
    return 0;
}

static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *s = list; *s != '\0'; s += strcspn(s, ",")) {
        s += strspn(s, ", ");
        if (strncmp(s, word, n) == 0 && strchr(", ", s[n]) != NULL)
            return true;
    }
    return false;
}

static int compression_check(const struct topic_config *c, char *err, size_t err_size)
{
    enum codec codec;
    int level;

    if (topic_config_codec(c, &codec, &level) && !codec_available(codec)) {
        snprintf(err, err_size, "compression.type: this klogd was built without %s", codec_name(codec));
        return -EINVAL;
    }
    if (c->compression_gzip_level == 0) {
        snprintf(err, err_size, "compression.gzip.level: 0 is no level; give 1 to 9, or -1 for the default");
        return -EINVAL;
    }
    return 0;
}

static const char *skip_number(const char *s)
{
    size_t n = strspn(s, "0123456789");

    return n > 0 && n < 10 ? s + n : NULL;
}

static bool throttled_list_is_good(const char *list)
{
    if (strcmp(list, "*") == 0)
        return true;
    for (const char *s = list; *s != '\0';) {
        s = skip_number(s);
        if (s != NULL && *s == ':')
            s = skip_number(s + 1);
        else
            return false;
        if (s == NULL || (*s != '\0' && *s != ','))
            return false;
        s += *s == ',';
    }
    return true;
}

bool topic_config_throttles(const char *list, int32_t partition, int32_t broker)
{
    if (strcmp(list, "*") == 0)
        return true;
    for (const char *s = list; *s != '\0'; s += *s == ',') {
        char *end;
        bool here = strtol(s, &end, 10) == partition;
        here &= strtol(end + 1, &end, 10) == broker;
        if (here)
            return true;
        s = end;
    }
    return false;
}

static int throttled_check(const struct topic_config *c, char *err, size_t err_size)
{
    const char *which = !throttled_list_is_good(c->leader_throttled)     ? "leader"
                        : !throttled_list_is_good(c->follower_throttled) ? "follower"
                                                                         : NULL;

    if (which == NULL)
        return 0;
    snprintf(err, err_size, "%s.replication.throttled.replicas: give PARTITION:BROKER,PARTITION:BROKER,... or *", which);
    return -EINVAL;
}

static int derive(struct topic_config *c, char *err, size_t err_size)
{
    c->compact = c->plog.compact_policy = list_has(c->cleanup_policy, "compact");
    c->delete_ = c->plog.delete_policy = list_has(c->cleanup_policy, "delete");
    c->log_append_time = c->timestamp_type == 1;
    /* Nobody flushes soon: begin to write early, so that the kernel never has gigabytes to write at once. */
    c->plog.writeback_bytes = c->flush_policy == FLUSH_COMMIT ? 0 : WRITEBACK_BYTES;
    if (c->plog.segment_bytes / MAX(c->plog.index_interval_bytes, 1) > c->kept.index_bytes / 8 &&
        topic_config_is_set(c, conf_find(&topic_config_table, "segment.index.bytes"))) {
        snprintf(err, err_size,
                 "segment.index.bytes: too small for the index of a full segment; give 8 for each index.interval.bytes of "
                 "segment.bytes");
        return -EINVAL;
    }
    int rc = throttled_check(c, err, err_size);
    return rc < 0 ? rc : compression_check(c, err, err_size); /* neither policy: all is kept, as in Kafka */
}

struct topic_config *topic_config_new(const struct broker_config *defaults,
                                      const struct topic_config_entry *entries, size_t n, char *err,
                                      size_t err_size)
{
    struct topic_config *c = xcalloc(1, sizeof *c);
    int rc = 0;

    atomic_init(&c->refs, 1);
    conf_defaults(&topic_config_table, c);
    take_defaults(c, defaults);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = take_entry(c, &entries[i], err, err_size);
    if (rc == 0)
        rc = derive(c, err, err_size);
    if (rc == 0)
        return c;

    topic_config_unref(c);
    return NULL;
}

struct topic_config *topic_config_ref(struct topic_config *c)
{
    KCHECK(atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed) > 0);
    return c;
}

void topic_config_unref(struct topic_config *c)
{
    if (c == NULL || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
        return;
    conf_done(&topic_config_table, c);
    free(c->extra);
    free(c);
}
