/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster as this broker knows it: topics, partition states, configurations, live brokers; an image of
 * the registers, kept up to date by watches. Readers take a reference on an immutable snapshot, so
 * answering Metadata takes no lock for longer than a pointer copy. Changes go to the registers
 * first (compare-and-set) and come back through the watch; then the hosted partitions follow.
 *
 * Registers (replication.md 1.3): /cluster/id, /brokers/ids/N (ephemeral), /brokers/topics/T {topic_id},
 * /brokers/topics/T/partitions/P/state, /config/topics/T, /config/brokers/N, /latest_producer_id_block.
 */
#ifndef KLOG_DAEMON_CLUSTER_H
#define KLOG_DAEMON_CLUSTER_H

#include "daemon/replica/replica.h"
#include "daemon/topic_config.h"
#include "lib/base/kerr.h"
#include "lib/base/slice.h"
#include "lib/base/uuid.h"

struct broker;

struct cluster_topic {
    char *name;
    struct uuid id;
    struct topic_config *config;
    struct partition_state *partitions;      /* index = partition id */
    int32_t n_partitions;
    bool internal;                           /* __consumer_offsets, __transaction_state */
    bool ready;                              /* its logs here are open; until then LEADER_NOT_AVAILABLE */
};
struct cluster_broker {
    int32_t id;
    char *host;
    int32_t port;
    char *rack;                              /* NULL none */
};
struct cluster_image {                       /* immutable once published */
    struct cluster_topic **topics;           /* sorted by name */
    size_t n_topics;
    struct cluster_broker *brokers;
    size_t n_brokers;
    int32_t controller_id;
    int64_t sequence;                        /* +1 a change */
};

struct cluster;
struct cluster *cluster_new(struct broker *b);
void cluster_free(struct cluster *c);
/* Reads the registers, opens every hosted log (in parallel on the workers), starts a new leadership epoch of each led partition
 * (R1), publishes the first image. Blocks; before the listeners open. err has one line. */
int cluster_start(struct cluster *c, char *err, size_t err_size);

struct cluster_image *cluster_image_get(struct cluster *c);   /* any thread; a reference */
void cluster_image_put(struct cluster_image *img);
const struct cluster_topic *cluster_image_topic(const struct cluster_image *img, struct kstr name);
const struct cluster_topic *cluster_image_topic_by_id(const struct cluster_image *img, const struct uuid *id);

/* KERR_NONE, or INVALID_TOPIC_EXCEPTION with a reason (protocol.md section 4, "Metadata rules"). */
enum kerr topic_name_check(struct kstr name, const char **ret_why);

/* Changes. Any loop's thread; cb on the same loop once the image shows it (and the logs are open) or it failed. text: one line. */
struct cluster_change {
    struct loop *loop;
    void (*cb)(struct cluster_change *ch, enum kerr err, const char *text);
    void *user;
    char *topic;                             /* owned by the change; freed after cb */
    int32_t n_partitions;                    /* create: count (-1 num.partitions); grow: new total */
    int32_t replication_factor;              /* create; -1 default.replication.factor */
    int32_t **assignment;                    /* create, grow: NULL, or broker ids by partition, each list ended by -1 */
    int32_t n_assignment;
    struct topic_config_entry *entries;
    int32_t n_entries;
    bool validate_only;
    struct uuid topic_id;                    /* create: set before cb */
};
struct cluster_change *cluster_change_new(struct kstr topic);
void cluster_create_topic(struct cluster *c, struct cluster_change *ch);
void cluster_delete_topic(struct cluster *c, struct cluster_change *ch);
void cluster_grow_topic(struct cluster *c, struct cluster_change *ch);
void cluster_configure_topic(struct cluster *c, struct cluster_change *ch);   /* entries set or reset; already merged by the caller */
void cluster_configure_broker(struct cluster *c, struct cluster_change *ch);  /* dynamic broker keys; topic = broker id as text */
/* A producer id nobody had before (blocks of 1000 by compare-and-set). */
void cluster_new_producer_id(struct cluster *c, struct loop *lp, void (*cb)(void *arg, enum kerr err, int64_t id),
                             void *arg);
const char *cluster_id(const struct cluster *c);

#endif
