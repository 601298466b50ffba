/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of broker keys, their aliases, and what cannot be said in a table. Pure but for
 * broker_config_read_file; any thread on its own struct.
 */
#include "daemon/config/broker_config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "daemon/config/topic_config.h"
#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/world.h"
#include "lib/metrics/http.h"

#define I32_MAX  2147483647.0
#define I64_MAX  9223372036854775807.0
#define HOUR_MS  INT64_C(3600000)
#define SELECTOR_RACK   "org.apache.kafka.common.replica.RackAwareReplicaSelector"
#define SELECTOR_LEADER "org.apache.kafka.common.replica.LeaderSelector"
#define FIELD(f) offsetof(struct broker_config, f)

static const char *const log_levels[] = { "debug", "info", "warn", "error", NULL };

/* name, type, default, min, max, choices, field, doc, needs a restart */
static const struct conf_key keys[] = {
    { "broker.id", CONF_INT, "-1", -1, I32_MAX, NULL, FIELD(broker_id),
      "Number of this broker in its cluster. -1 takes the number the log directories were made with, 1 in "
      "new ones. "
      "Alias: node.id.",
      true },
    { "cluster.id", CONF_STRING, "", 0, 0, NULL, FIELD(cluster_id),
      "Cluster that the log directories must belong to. Empty takes theirs; new directories get a new one.",
      true },
    { "broker.rack", CONF_STRING, "", 0, 0, NULL, FIELD(broker_rack),
      "Where this broker stands: replicas of a partition are spread over racks. Empty: no rack.", true },
    { "zookeeper.connect", CONF_STRING, "", 0, 0, NULL, FIELD(zookeeper_connect),
      "ZooKeeper of the cluster that this broker is a part of, as HOST:PORT,HOST:PORT/PATH; the path, which is created, stands "
      "once, behind the last host. Empty: a broker alone, which keeps the registers in its first log directory.",
      true },
    { "zookeeper.session.timeout.ms", CONF_INT, "6000", 200, 3600000, NULL, FIELD(zookeeper_session_timeout_ms),
      "A broker that ZooKeeper has not heard of for this long is taken for dead, and others lead in its place. ZooKeeper has "
      "bounds of its own, 2 and 20 of its ticks.",
      true },
    { "zookeeper.digest.file", CONF_STRING, "", 0, 0, NULL, FIELD(zookeeper_digest_file),
      "File with one line USER:PASSWORD, by which this broker is known to ZooKeeper (scheme digest). What it creates is then "
      "for those alone who have the same; all brokers of a cluster need it. Empty: everybody may read and write.",
      true },
    { "listeners", CONF_STRING, "PLAINTEXT://127.0.0.1:9092", 0, 0, NULL, FIELD(listeners),
      "Where to listen, as NAME://host:port, separated by commas. No host: all addresses. Port 0: any free "
      "port.",
      true },
    { "advertised.listeners", CONF_STRING, "", 0, 0, NULL, FIELD(advertised_listeners),
      "What clients are told to connect to, by listener name. A listener without an entry advertises its own "
      "host, "
      "or, listening on all addresses, the one at which the client reached it.",
      true },
    { "inter.broker.listener.name", CONF_STRING, "", 0, 0, NULL, FIELD(inter_broker_listener_name),
      "The listener at which the other brokers are reached, by its name; all brokers have one of that name. Empty: the first of "
      "listeners.",
      true },
    { "log.dirs", CONF_STRING, "/var/lib/klog", 0, 0, NULL, FIELD(log_dirs),
      "Directories that hold the data, separated by commas. Alias: log.dir.", true },
    { "log.level", CONF_ENUM, "info", 0, 0, log_levels, FIELD(log_level),
      "The least important messages that klogd writes to standard error.", false },
    { "http.listener", CONF_STRING, "", 0, 0, NULL, FIELD(http_listener),
      "Where metrics for Prometheus (/metrics), a status page (/), /healthz and /readyz are served by HTTP, as HOST:PORT. No host: "
      "all addresses. Whoever reaches it may read names of topics and groups, and nothing can be changed there. Empty: nowhere.",
      true },

    { "num.network.threads", CONF_INT, "0", 0, NETWORK_THREADS_MAX, NULL, FIELD(num_network_threads),
      "Threads that serve connections. 0: one a core, at most 8. While klogd runs: from half to twice as many at once; when "
      "there are fewer, the connections of those that go are closed once they have their answers.",
      false },
    { "num.io.threads", CONF_INT, "8", 1, 256, NULL, FIELD(num_io_threads),
      "Threads for work that waits for the disk. While klogd runs: from half to twice as many at once.", false },
    { "socket.request.max.bytes", CONF_INT, "104857600", 1024, I32_MAX, NULL, FIELD(socket_request_max_bytes),
      "A larger request closes its connection.", true },
    { "socket.send.buffer.bytes", CONF_INT, "-1", -1, I32_MAX, NULL, FIELD(socket_send_buffer_bytes),
      "SO_SNDBUF of each connection. -1: the kernel's choice.", true },
    { "socket.receive.buffer.bytes", CONF_INT, "-1", -1, I32_MAX, NULL, FIELD(socket_receive_buffer_bytes),
      "SO_RCVBUF of each connection. -1: the kernel's choice.", true },
    { "connections.max.idle.ms", CONF_LONG, "600000", 0, I64_MAX, NULL, FIELD(connections_max_idle_ms),
      "A connection without a request for this long is closed. 0: never.", true },
    { "max.connections", CONF_INT, "2147483647", 1, I32_MAX, NULL, FIELD(max_connections),
      "Connections accepted at the same time; more are closed at once. At most what the limit of descriptors "
      "(ulimit -n) leaves beside the files of the log.",
      false },
    { "queued.max.requests", CONF_INT, "500", 1, 65536, NULL, FIELD(queued_max_requests),
      "Requests of one connection that may be under way; no more are read until some are answered.", true },

    { "queued.max.request.bytes", CONF_LONG, "536870912", -1, I64_MAX, NULL, FIELD(queued_max_request_bytes),
      "Memory for requests and answers of all connections together: what is being received, worked on or waits to be "
      "taken. Above it larger requests are not read any further, one excepted, and clients that do not go on are "
      "closed. At least socket.request.max.bytes; -1: no limit.",
      true },

    { "num.partitions", CONF_INT, "1", 1, 10000, NULL, FIELD(num_partitions),
      "Partitions of a topic created without a number.", true },
    { "default.replication.factor", CONF_INT, "1", 1, 32, NULL, FIELD(default_replication_factor),
      "Replicas of a topic created without a number.", true },
    { "auto.leader.rebalance.enable", CONF_BOOL, "true", 0, 0, NULL, FIELD(auto_leader_rebalance_enable),
      "A partition goes back to the first of its replicas once that one is in sync again.", true },
    { "leader.imbalance.check.interval.seconds", CONF_INT, "300", 1, 1000000, NULL,
      FIELD(leader_imbalance_check_interval_seconds), "How often that is looked for. It is given back once it has been there for as long.", true },
    { "leader.imbalance.per.broker.percentage", CONF_INT, "10", 0, 100, NULL, FIELD(leader_imbalance_per_broker_percentage),
      "It is done for a broker that lacks more than so many of the partitions that it should lead.", true },
    { "unclean.leader.election.enable", CONF_BOOL, "false", 0, 0, NULL, FIELD(unclean_leader_election_enable),
      "Where no replica that is in sync is there any replica leads, with what it has: acknowledged records may be lost. Topics: "
      "unclean.leader.election.enable.",
      false },
    { "auto.create.topics.enable", CONF_BOOL, "true", 0, 0, NULL, FIELD(auto_create_topics_enable),
      "A client that asks for an unknown topic and allows its creation creates it.", true },
    { "delete.topic.enable", CONF_BOOL, "true", 0, 0, NULL, FIELD(delete_topic_enable),
      "Topics may be deleted.", true },

    { "message.max.bytes", CONF_INT, "1048588", 0, I32_MAX, NULL, FIELD(message_max_bytes),
      "Largest record batch, as it is on the wire. Topics: max.message.bytes.", false },
    { "min.insync.replicas", CONF_INT, "1", 1, 32, NULL, FIELD(min_insync_replicas),
      "Replicas that must be in sync for a write with acks=all. Topics: min.insync.replicas.", false },
    { "log.segment.bytes", CONF_LONG, "1073741824", 1024, I32_MAX, NULL, FIELD(log_segment_bytes),
      "A segment file that would grow larger is closed. Topics: segment.bytes.", false },
    { "log.roll.ms", CONF_LONG, "-1", -1, I64_MAX, NULL, FIELD(log_roll_ms),
      "A segment older than this is closed. -1: log.roll.hours counts. Topics: segment.ms.", false },
    { "log.roll.hours", CONF_INT, "168", 1, I32_MAX, NULL, FIELD(log_roll_hours),
      "The same in hours, when log.roll.ms is not set.", true },
    { "log.index.interval.bytes", CONF_INT, "4096", 0, I32_MAX, NULL, FIELD(log_index_interval_bytes),
      "Bytes of log between two index entries. Topics: index.interval.bytes.", false },
    { "log.retention.ms", CONF_LONG, "-1", -1, I64_MAX, NULL, FIELD(log_retention_ms),
      "Closed segments whose newest record is older are deleted. -1: for ever; not set: "
      "log.retention.minutes counts. "
      "Topics: retention.ms.",
      false },
    { "log.retention.minutes", CONF_INT, "-1", -1, I32_MAX, NULL, FIELD(log_retention_minutes),
      "The same in minutes; not set: log.retention.hours counts.", true },
    { "log.retention.hours", CONF_INT, "168", -1, I32_MAX, NULL, FIELD(log_retention_hours),
      "The same in hours, when neither of the finer units is set.", true },
    { "log.retention.bytes", CONF_LONG, "-1", -1, I64_MAX, NULL, FIELD(log_retention_bytes),
      "The oldest segments of a partition larger than this are deleted. -1: no limit. Topics: "
      "retention.bytes.",
      false },
    { "log.cleanup.policy", CONF_LIST, "delete", 0, 0, topic_cleanup_policies, FIELD(log_cleanup_policy),
      "What happens to old records: delete by age and size; compact keeps the newest of each key, so that "
      "every "
      "record needs one. Topics: cleanup.policy.",
      false },
    { "log.message.timestamp.type", CONF_ENUM, "CreateTime", 0, 0, topic_timestamp_types,
      FIELD(log_message_timestamp_type),
      "Whose time a record carries: the producer's or the broker's. Topics: message.timestamp.type.", false },
    { "log.message.timestamp.before.max.ms", CONF_LONG, "9223372036854775807", 0, I64_MAX, NULL,
      FIELD(log_message_timestamp_before_max_ms),
      "A producer's time further in the past is refused. Topics: message.timestamp.before.max.ms.", false },
    { "log.message.timestamp.after.max.ms", CONF_LONG, "3600000", 0, I64_MAX, NULL,
      FIELD(log_message_timestamp_after_max_ms),
      "A producer's time further in the future is refused. Topics: message.timestamp.after.max.ms.", false },
    { "compression.type", CONF_ENUM, "producer", 0, 0, topic_compression_types, FIELD(compression_type),
      "How batches are kept: producer, as they were sent; another codec, or uncompressed: the broker packs what "
      "comes otherwise anew, which costs it time. Topics: compression.type.",
      false },
    { "compression.gzip.level", CONF_INT, "-1", -1, 9, NULL, FIELD(compression_gzip_level),
      "With compression.type=gzip: 1 is fast, 9 is small; -1: 6. Topics: compression.gzip.level.", false },
    { "compression.lz4.level", CONF_INT, "9", 1, 17, NULL, FIELD(compression_lz4_level),
      "With compression.type=lz4: how hard to try; 9 is lz4's fast mode, as in Kafka. Topics: "
      "compression.lz4.level.",
      false },
    { "compression.zstd.level", CONF_INT, "3", -131072, 22, NULL, FIELD(compression_zstd_level),
      "With compression.type=zstd: 22 is smallest; below zero, fast. Topics: compression.zstd.level.", false },
    { "flush.policy", CONF_ENUM, "commit", 0, 0, topic_flush_policies, FIELD(flush_policy),
      "When records go to the disk: commit, before they are acknowledged or seen; interval, every "
      "log.flush.interval.messages or .ms, seen and acknowledged after that; async, when the kernel likes, "
      "as in Kafka. "
      "Topics: flush.policy.",
      false },
    { "log.flush.interval.messages", CONF_LONG, "10000", 1, I64_MAX, NULL, FIELD(log_flush_interval_messages),
      "Under flush.policy=interval: flush after this many records. Topics: flush.messages.", false },
    { "log.flush.interval.ms", CONF_LONG, "1000", 1, I64_MAX, NULL, FIELD(log_flush_interval_ms),
      "Under flush.policy=interval: flush what has waited this long. Topics: flush.ms.", false },

    { "log.cleaner.min.cleanable.ratio", CONF_DOUBLE, "0.5", 0, 1, NULL, FIELD(log_cleaner_min_cleanable_ratio),
      "A compacted log is cleaned when more than this share of its bytes is new. Topics: "
      "min.cleanable.dirty.ratio.",
      false },
    { "log.cleaner.min.compaction.lag.ms", CONF_LONG, "0", 0, I64_MAX, NULL,
      FIELD(log_cleaner_min_compaction_lag_ms),
      "No record younger than this is removed by compaction. Topics: min.compaction.lag.ms.", false },
    { "log.cleaner.max.compaction.lag.ms", CONF_LONG, "9223372036854775807", 1, I64_MAX, NULL,
      FIELD(log_cleaner_max_compaction_lag_ms),
      "A record that waited this long is cleaned whatever the share of new bytes. Topics: "
      "max.compaction.lag.ms.",
      false },
    { "log.cleaner.delete.retention.ms", CONF_LONG, "86400000", 0, I64_MAX, NULL,
      FIELD(log_cleaner_delete_retention_ms),
      "How long a key's deletion (a record with a null value) can still be read after it was first cleaned. "
      "Topics: "
      "delete.retention.ms.",
      false },

    { "num.replica.fetchers", CONF_INT, "1", 1, 256, NULL, FIELD(num_replica_fetchers),
      "Threads that copy what other brokers lead.", true },
    { "replica.fetch.max.bytes", CONF_INT, "1048576", 0, I32_MAX, NULL, FIELD(replica_fetch_max_bytes),
      "What a follower asks of one partition at a time; a batch that is larger comes whole.", true },
    { "replica.fetch.response.max.bytes", CONF_INT, "10485760", 0, I32_MAX, NULL,
      FIELD(replica_fetch_response_max_bytes), "The same for all partitions of a request together.", true },
    { "replica.fetch.min.bytes", CONF_INT, "1", 0, I32_MAX, NULL, FIELD(replica_fetch_min_bytes),
      "The leader waits until it has so much for a follower, or replica.fetch.wait.max.ms is over.", true },
    { "replica.fetch.wait.max.ms", CONF_INT, "500", 0, 25000, NULL, FIELD(replica_fetch_wait_max_ms),
      "How long the leader may hold a follower's fetch back. Below replica.lag.time.max.ms.", true },
    { "replica.fetch.backoff.ms", CONF_INT, "1000", 1, I32_MAX, NULL, FIELD(replica_fetch_backoff_ms),
      "Longest time until a follower asks again for a partition that its leader could not serve.", true },
    { "replica.lag.time.max.ms", CONF_LONG, "30000", 1, I64_MAX, NULL, FIELD(replica_lag_time_max_ms),
      "A follower that did not have all that its leader has for so long is no longer in sync.", true },
    { "leader.replication.throttled.rate", CONF_LONG, "9223372036854775807", 0, I64_MAX, NULL,
      FIELD(leader_replication_throttled_rate),
      "Bytes a second that this broker gives to followers that are not in sync, of the partitions that "
      "leader.replication.throttled.replicas of their topic names.",
      false },
    { "follower.replication.throttled.rate", CONF_LONG, "9223372036854775807", 0, I64_MAX, NULL,
      FIELD(follower_replication_throttled_rate),
      "Bytes a second that this broker copies of partitions in which it is not in sync, and that "
      "follower.replication.throttled.replicas of their topic names.",
      false },
    { "replica.selector.class", CONF_STRING, "", 0, 0, NULL, FIELD(replica_selector_class),
      "org.apache.kafka.common.replica.RackAwareReplicaSelector sends a consumer that names its rack (client.rack) to a replica in "
      "it that is in sync (KIP-392). Empty, or org.apache.kafka.common.replica.LeaderSelector: all read from the leader.",
      true },

    { "log.cleaner.enable", CONF_BOOL, "true", 0, 0, NULL, FIELD(log_cleaner_enable),
      "Logs with cleanup.policy=compact are compacted. false: they only grow.", true },
    { "log.cleaner.dedupe.buffer.size", CONF_LONG, "134217728", 1048576, I64_MAX, NULL,
      FIELD(log_cleaner_dedupe_buffer_size),
      "Bytes of memory for the keys of one pass, 24 a key. What does not fit waits for the next pass.", false },
    { "log.cleaner.backoff.ms", CONF_LONG, "15000", 0, I64_MAX, NULL, FIELD(log_cleaner_backoff_ms),
      "Time between two looks for logs to clean, when there was none.", false },
    { "log.cleaner.io.max.bytes.per.second", CONF_DOUBLE, "1e+18", 1, 1e18, NULL,
      FIELD(log_cleaner_io_max_bytes_per_second), "Cleaning reads and writes no more than this.", false },
    { "log.scrub.interval.ms", CONF_LONG, "604800000", -1, I64_MAX, NULL, FIELD(log_scrub_interval_ms),
      "Each so often all logs are read and their checksums compared: what is damaged is told, and copied anew where "
      "another replica has it. -1: never.",
      true },
    { "log.scrub.io.max.bytes.per.second", CONF_DOUBLE, "8388608", 1, 1e18, NULL,
      FIELD(log_scrub_io_max_bytes_per_second), "That reads no more than this, and leaves nothing in the page cache.", true },
    { "log.retention.check.interval.ms", CONF_LONG, "300000", 1, I64_MAX, NULL,
      FIELD(log_retention_check_interval_ms), "Time between two looks for segments to delete.", true },
    { "producer.id.expiration.ms", CONF_LONG, "86400000", 1, I64_MAX, NULL, FIELD(producer_id_expiration_ms),
      "An idempotent producer that was silent for this long is forgotten.", false },

    { "offsets.topic.num.partitions", CONF_INT, "50", 1, 10000, NULL, FIELD(offsets_topic_num_partitions),
      "Partitions of __consumer_offsets, which holds the positions of groups, when it is created.", true },
    { "offsets.topic.replication.factor", CONF_INT, "3", 1, 32, NULL, FIELD(offsets_topic_replication_factor),
      "Replicas of __consumer_offsets when it is created; fewer when fewer brokers are there.", true },
    { "offsets.topic.segment.bytes", CONF_INT, "104857600", 1024, I32_MAX, NULL,
      FIELD(offsets_topic_segment_bytes), "Its segment.bytes when it is created.", true },
    { "offsets.retention.minutes", CONF_INT, "10080", 1, I32_MAX, NULL, FIELD(offsets_retention_minutes),
      "A position is kept for this long after its group has lost its last member, or, without a group, after "
      "the commit.",
      true },
    { "offsets.retention.check.interval.ms", CONF_LONG, "600000", 1, I64_MAX, NULL,
      FIELD(offsets_retention_check_interval_ms), "Time between two looks for positions to forget.", true },
    { "offsets.commit.timeout.ms", CONF_INT, "5000", 1, I32_MAX, NULL, FIELD(offsets_commit_timeout_ms),
      "A commit, or a group's new assignment, that is not durable by then fails.", true },
    { "offset.metadata.max.bytes", CONF_INT, "4096", 0, I32_MAX, NULL, FIELD(offset_metadata_max_bytes),
      "Longest note a client may leave with a position, in characters (UTF-16 units, as Kafka counts them).", true },
    { "group.min.session.timeout.ms", CONF_INT, "6000", 1, I32_MAX, NULL, FIELD(group_min_session_timeout_ms),
      "Shortest session.timeout.ms that a group's member may ask for.", true },
    { "group.max.session.timeout.ms", CONF_INT, "1800000", 1, I32_MAX, NULL,
      FIELD(group_max_session_timeout_ms), "Longest session.timeout.ms that a group's member may ask for.",
      true },
    { "group.initial.rebalance.delay.ms", CONF_INT, "3000", 0, I32_MAX, NULL,
      FIELD(group_initial_rebalance_delay_ms),
      "The first members of an empty group wait this long for others, and again for each time somebody came.",
      true },
    { "group.max.size", CONF_INT, "2147483647", 1, I32_MAX, NULL, FIELD(group_max_size),
      "Members of one group.", true },
};
static_assert(ARRAY_LEN(keys) <= BROKER_CONFIG_KEYS_MAX, "broker_config.set is too small");

const struct conf_table broker_config_table = { keys, ARRAY_LEN(keys), "broker" };

static const char *real_name(const char *name)
{
    static const char *const alias[][2] = { { "node.id", "broker.id" }, { "log.dir", "log.dirs" } };

    for (size_t i = 0; i < ARRAY_LEN(alias); i++)
        if (strcmp(name, alias[i][0]) == 0)
            return alias[i][1];
    return name;
}

void broker_config_init(struct broker_config *c)
{
    memset(c, 0, sizeof *c);
    conf_defaults(&broker_config_table, c);
}

void broker_config_done(struct broker_config *c)
{
    conf_done(&broker_config_table, c);
}

void broker_config_copy(struct broker_config *dst, const struct broker_config *src)
{
    conf_copy(&broker_config_table, dst, src, sizeof *src);
}

const struct conf_key *broker_config_find(const char *name)
{
    return conf_find(&broker_config_table, real_name(name));
}

static size_t key_index(const struct conf_key *k)
{
    KCHECK(k >= keys && k < keys + ARRAY_LEN(keys));
    return (size_t)(k - keys);
}

bool broker_config_is_set(const struct broker_config *c, const struct conf_key *k)
{
    size_t i = key_index(k);
    return (c->set[i / 64] >> (i % 64) & 1) != 0;
}

int broker_config_set(struct broker_config *c, const char *name, const char *value, char *err,
                      size_t err_size)
{
    name = real_name(name);
    int rc = conf_set(&broker_config_table, c, name, value, err, err_size);
    if (rc < 0)
        return rc;

    size_t i = key_index(conf_find(&broker_config_table, name));
    c->set[i / 64] |= UINT64_C(1) << (i % 64);
    return 0;
}

static int set_line(void *arg, const char *name, const char *value, char *err, size_t err_size)
{
    return broker_config_set(arg, name, value, err, err_size);
}

int broker_config_read_file(struct broker_config *c, const char *path, char *err, size_t err_size)
{
    return conf_read_lines(path, set_line, c, err, err_size);
}

static bool is_given(const struct broker_config *c, const char *name)
{
    return broker_config_is_set(c, broker_config_find(name));
}

int64_t broker_config_retention_ms(const struct broker_config *c)
{
    if (is_given(c, "log.retention.ms"))
        return c->log_retention_ms;
    if (is_given(c, "log.retention.minutes"))
        return c->log_retention_minutes < 0 ? -1 : c->log_retention_minutes * INT64_C(60000);
    return c->log_retention_hours < 0 ? -1 : c->log_retention_hours * HOUR_MS;
}

int64_t broker_config_roll_ms(const struct broker_config *c)
{
    return c->log_roll_ms > 0 ? c->log_roll_ms : c->log_roll_hours * HOUR_MS;
}

int64_t broker_config_queued_bytes(const struct broker_config *c)
{
    if (c->queued_max_request_bytes <= 0)
        return INT64_MAX;
    return MAX(c->queued_max_request_bytes, (int64_t)c->socket_request_max_bytes);
}

int32_t broker_config_network_threads(const struct broker_config *c, const struct machine *m)
{
    if (c->num_network_threads > 0)
        return c->num_network_threads;

    return MAX(1, MIN(m->cores(m), 8));
}

bool broker_config_reads_nearest(const struct broker_config *c)
{
    return strcmp(c->replica_selector_class, SELECTOR_RACK) == 0;
}

static int listeners_check(const struct broker_config *c, char *err, size_t err_size)
{
    const char *between = c->inter_broker_listener_name;
    struct broker_listener *ls;
    size_t n;
    int rc = broker_config_listeners(c, &ls, &n, err, err_size);

    if (rc < 0)
        return rc;
    bool found = between[0] == '\0';
    for (size_t i = 0; i < n; i++)
        found |= strcasecmp(ls[i].name, between) == 0;
    broker_listeners_free(ls, n);
    if (found)
        return 0;
    snprintf(err, err_size, "inter.broker.listener.name: %s is not among listeners; name one of them", between);
    return -EINVAL;
}

int broker_config_check(const struct broker_config *c, char *err, size_t err_size)
{
    if (c->log_roll_ms == 0) {
        snprintf(err, err_size,
                 "log.roll.ms=0 is not possible: give at least 1, or -1 to use log.roll.hours");
        return -EINVAL;
    }
    if (c->log_dirs[0] == '\0') {
        snprintf(err, err_size, "log.dirs is empty: name at least one directory for the data");
        return -EINVAL;
    }
    if (c->http_listener[0] != '\0' && !http_address_ok(c->http_listener, "http.listener", err, err_size))
        return -EINVAL;
    if (c->log_cleanup_policy[0] == '\0') {
        snprintf(err, err_size, "log.cleanup.policy is empty: give delete, compact or both");
        return -EINVAL;
    }

    if (c->replica_fetch_wait_max_ms >= c->replica_lag_time_max_ms) {
        snprintf(err, err_size,
                 "replica.fetch.wait.max.ms=%d is not below replica.lag.time.max.ms=%lld: followers that have all would count as "
                 "lagging",
                 c->replica_fetch_wait_max_ms, (long long)c->replica_lag_time_max_ms);
        return -EINVAL;
    }
    if (c->group_max_session_timeout_ms < c->group_min_session_timeout_ms) {
        snprintf(err, err_size,
                 "group.max.session.timeout.ms=%d is less than group.min.session.timeout.ms=%d: raise it",
                 c->group_max_session_timeout_ms, c->group_min_session_timeout_ms);
        return -EINVAL;
    }

    if (is_given(c, "queued.max.request.bytes") && c->queued_max_request_bytes > 0 &&
        c->queued_max_request_bytes < c->socket_request_max_bytes) {
        snprintf(err, err_size,
                 "queued.max.request.bytes=%lld is less than socket.request.max.bytes=%d: raise it, or -1 for no limit",
                 (long long)c->queued_max_request_bytes, c->socket_request_max_bytes);
        return -EINVAL;
    }

    if (c->replica_selector_class[0] != '\0' && !broker_config_reads_nearest(c) &&
        strcmp(c->replica_selector_class, SELECTOR_LEADER) != 0) {
        snprintf(err, err_size, "replica.selector.class=%s: klogd knows " SELECTOR_RACK " and " SELECTOR_LEADER,
                 c->replica_selector_class);
        return -EINVAL;
    }
    return listeners_check(c, err, err_size);
}
