/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster as this broker knows it: topics, partition states, configurations, live brokers; an image of
 * the registers, kept up to date by watches. Readers take a reference on an immutable snapshot, so
 * answering Metadata takes no lock for longer than a pointer copy. Changes go to the registers
 * first (compare-and-set) and come back through the watch; then the hosted partitions follow.
 *
 * Registers (replication.md 1.3): /cluster/id, /brokers/ids/N (ephemeral), /klog/broker_epoch/N,
 * /brokers/topics/T {topic_id}, /brokers/topics/T/partitions/P/state, /config/topics/T, /config/brokers/N,
 * /admin/delete_topics/ID (logs still to be removed), /latest_producer_id_block.
 */
#ifndef KLOG_DAEMON_CLUSTER_H
#define KLOG_DAEMON_CLUSTER_H

#include <stdatomic.h>

#include "daemon/config/broker_config.h"
#include "daemon/replica/replica.h"
#include "daemon/config/topic_config.h"
#include "lib/base/kerr.h"
#include "lib/base/slice.h"
#include "lib/base/uuid.h"

struct logdirs;
struct loop;
struct partition;
struct partitions;
struct registers;
struct workers;
struct world;

#define OFFSETS_TOPIC "__consumer_offsets"

#define CLUSTER_PARTITIONS_MAX 10000 /* of one topic, and so of one request for it */

/* A partition's register as it was last read or written here. Immutable; the lists are behind it in its memory. */
struct election_claim;
struct cluster_partition {
    int64_t version; /* of the register, for compare-and-set */
    int64_t leader_be;
    int32_t leader; /* -1 none */
    int32_t leader_epoch;
    int32_t n_replicas, n_isr, n_adding, n_removing;
    int32_t recovery;
    const int64_t *isr_be; /* index as in isr */
    const struct election_claim *claims; /* of members, while nobody may lead */
    int32_t n_claims;
    const int32_t *replicas, *isr, *adding, *removing;
    char *extra;     /* private: what this version does not know of the register */
    atomic_int refs; /* private: one a topic that has it */
};
struct cluster_topic { /* its logs here are open */
    char *name;
    struct uuid id;
    struct topic_config *config;
    int64_t config_version; /* of the registers; for compare-and-set */
    int64_t version;
    struct cluster_partition *_Atomic *partitions; /* by number; read with cluster_topic_partition() */
    int32_t n_partitions;
    bool internal;   /* __consumer_offsets, __transaction_state */
    char *extra;     /* private: what this version does not know of the topic's register */
    atomic_int refs; /* private: one a list of topics */
};
/* Where one listener is reached, by the name that all brokers of the cluster give to listeners of its kind. */
struct cluster_endpoint {
    char *listener;
    char *host;
    int32_t port;
};
struct cluster_broker {
    int32_t id;
    struct cluster_endpoint *endpoints; /* at least one */
    size_t n_endpoints;
    char *rack;    /* NULL none */
    int64_t epoch; /* of this life of the broker: version of /klog/broker_epoch/N */
    int64_t base;  /* since this epoch its disk provably kept what it acknowledged (R11) */
};
/* The broker's configuration as it is now: file and command line, with what was set while it runs laid over.
 */
struct cluster_defaults {
    struct broker_config config;
    uint64_t
        dynamic[BROKER_CONFIG_KEYS_MAX / 64]; /* bit i: key i of broker_config_table was set while it runs */
    int64_t version;                          /* of the register */
    char *extra; /* what this version does not know of it: config_register_extra() */
    atomic_int refs;
};
/* Immutable once published, but for one thing: a partition whose register changed is exchanged in its place, so what
 * cluster_topic_partition() says may be newer than the image. Look each up once. */
struct cluster_image {
    struct cluster_topic **topics; /* sorted by name */
    size_t n_topics;
    struct cluster_broker *brokers; /* live ones, by id; never none */
    size_t n_brokers;
    struct cluster_defaults *defaults;
    int32_t controller_id;
    int64_t sequence; /* +1 a change */
    /* private: cluster_image.c */
    struct cluster_topics *topics_of;
    struct cluster_brokers *brokers_of;
    struct cluster_image *next; /* a reference on the one that came after: images go in their order */
    struct cluster_partition **replaced; /* in the time of this one; they go with it */
    size_t n_replaced, cap_replaced;
    atomic_int refs;
};

struct cluster;
/* What it works on, and whom it tells. */
struct cluster_deps {
    const struct world *world;
    int32_t id;                         /* this broker's */
    const char *cluster_id;             /* the log directories' */
    const struct broker_config *config; /* as the file and the command line say */
    const struct cluster_endpoint *endpoints; /* of this broker; copied */
    size_t n_endpoints;
    /* How long the first registration waits for one under the same number to go. */
    int64_t register_within_ms;
    bool proven; /* its disk has kept all that it acknowledged before */
    bool alone;  /* no other broker writes to these registers */
    size_t multi_max; /* bytes that one multi of these registers can carry */
    struct registers *registers;
    struct logdirs *dirs;
    struct partitions *partitions;
    struct loop *loop; /* the meta loop */
    struct workers *workers;
    /* What the settings are by now. On the meta loop, or before it runs anything of the cluster. */
    void (*settings)(void *arg, const struct broker_config *now);
    /* This broker follows that one in this partition, at that address; host NULL: nobody. Told again whenever one of them may have
     * changed. On the meta loop, nobody also on a worker; must not block. NULL when alone. */
    void (*follow)(void *arg, struct partition *pt, int32_t leader, const char *host, int32_t port);
    /* The image has forgotten this topic; one that has got its name since is another. On the meta loop. */
    void (*topic_deleted)(void *arg, const char *topic, const struct uuid *id);
    /* Another process has this broker's number: this one is none of the cluster's any more, and is to end. On the meta loop. */
    void (*replaced)(void *arg);
    void *arg;
};
struct cluster *cluster_new(const struct cluster_deps *deps);
/* Reads the registers, opens every hosted log (in parallel on the workers), starts a new leadership epoch of
 * each led partition (R1), publishes the first image. Blocks; the loops run already, the listeners do not
 * accept yet. err has one line. */
int cluster_start(struct cluster *c, char *err, size_t err_size);
/* Controlled shutdown: hands over what this broker leads and others can, and takes no leadership any more. Waits until that is
 * done, at most so long. Blocks; before cluster_stop(). */
void cluster_drain(struct cluster *c, int64_t within_ms);
/* Begins nothing more and waits for what is under way; changes that come later fail. Blocks; before the loops
 * end. */
void cluster_stop(struct cluster *c);
void cluster_free(struct cluster *c);

struct cluster_image *cluster_image_get(struct cluster *c); /* any thread; a reference */
void cluster_image_put(struct cluster_image *img);
const struct cluster_topic *cluster_image_topic(const struct cluster_image *img, struct kstr name);
const struct cluster_topic *cluster_image_topic_by_id(const struct cluster_image *img, const struct uuid *id);
const struct cluster_broker *cluster_image_broker(const struct cluster_image *img, int32_t id);
/* Who leads it, for clients to be told; NULL: nobody. A broker that has registered anew since it was elected does not lead by
 * that any more; one that was elected in an epoch newer than the image knows of it does. */
const struct cluster_broker *cluster_image_leader(const struct cluster_image *img, const struct cluster_partition *p);
/* Is that broker there, and in this life of its own (R6, R10)? In a cluster of one there is nobody to doubt. Any thread. */
bool cluster_is_alive(struct cluster *c, int32_t id, int64_t epoch);
/* Its endpoint of that name, in any case of letters; NULL: it has no such listener. */
const struct cluster_endpoint *cluster_broker_endpoint(const struct cluster_broker *b, const char *listener);
/* The partition as it is now, 0 <= id < n_partitions. Valid as long as the image that t is of. */
const struct cluster_partition *cluster_topic_partition(const struct cluster_topic *t, int32_t id);

/* Of a partition that this broker does not host, by its topic's id or, with a zero id, its name: NOT_LEADER_OR_FOLLOWER when the
 * cluster has it, else UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID. Any thread. */
enum kerr cluster_elsewhere(struct cluster *c, struct kstr topic, const struct uuid *topic_id, int32_t id);

/* KERR_NONE, or INVALID_TOPIC_EXCEPTION with a reason (protocol.md section 4, "Metadata rules"). */
enum kerr topic_name_check(struct kstr name, const char **ret_why);
/* Names that differ only in '.' and '_' would be one in metrics: a second one is refused, as in Kafka. */
bool topic_names_collide(const char *a, const char *b);

/* ---- changes ---- */
/* Any loop's thread; cb on the same loop once the image shows it (and the logs are open) or it failed. text:
 * one line, or NULL. The change is freed after cb. Changes of one topic happen one after the other, in the
 * order they were asked for. */
enum config_op_kind {
    CONFIG_OP_SET,
    CONFIG_OP_DELETE,
    CONFIG_OP_APPEND,
    CONFIG_OP_SUBTRACT
}; /* KIP-339's numbers */
struct config_op {
    char *key, *value; /* owned; value NULL with DELETE */
    enum config_op_kind kind;
};
struct cluster_change {
    struct loop *loop;
    void (*cb)(struct cluster_change *ch, enum kerr err, const char *text);
    void *user;
    char *topic;                /* owned by the change; configure_broker: the broker's id as text */
    int32_t n_partitions;       /* create: count (-1 num.partitions); grow: new total; set before cb */
    int32_t replication_factor; /* create; -1 default.replication.factor; set before cb */
    int32_t **assignment; /* create, grow: NULL, or broker ids by (new) partition, each list ended by -1 */
    int32_t n_assignment;
    int32_t partition;   /* reassign, elect */
    bool same_replication_factor; /* reassign: the assignment may not have more or fewer */
    bool unclean;        /* elect: where nobody in sync is left, somebody else, who may lack records */
    struct config_op *ops;
    int32_t n_ops;
    bool replace; /* configure: ops are the whole configuration */
    bool validate_only;
    struct uuid topic_id; /* create: set before cb. delete: if not zero, it must be this topic */
};
struct cluster_change *cluster_change_new(struct kstr topic);
void cluster_change_add_op(struct cluster_change *ch, enum config_op_kind kind, struct kstr key,
                           struct kstr value);
/* Brokers of the next partition of the manual assignment. */
void cluster_change_assign(struct cluster_change *ch, const int32_t *brokers, int32_t n);
void cluster_change_unassign(struct cluster_change *ch); /* takes the manual assignment back */
void cluster_change_free(struct cluster_change *ch); /* one that was never handed in */
void cluster_create_topic(struct cluster *c, struct cluster_change *ch);
void cluster_delete_topic(struct cluster *c, struct cluster_change *ch);
void cluster_grow_topic(struct cluster *c, struct cluster_change *ch);
void cluster_configure_topic(struct cluster *c, struct cluster_change *ch);
/* Other replicas for ch->partition, the first list of ch->assignment; without one: back to those before. Ends when it has
 * begun. */
void cluster_reassign_partition(struct cluster *c, struct cluster_change *ch);
/* Another leader for ch->partition: the first of its replicas; ELECTION_NOT_NEEDED when that leads. */
void cluster_elect_leader(struct cluster *c, struct cluster_change *ch);
void cluster_configure_broker(struct cluster *c, struct cluster_change *ch); /* dynamic broker keys */

/* A producer id nobody had before (blocks of 1000 by compare-and-set). */
void cluster_new_producer_id(struct cluster *c, struct loop *lp,
                             void (*cb)(void *arg, enum kerr err, int64_t id), void *arg);
const char *cluster_id(const struct cluster *c);
/* The id of the cluster that the registers belong to. ret: what this broker knows of it, "" nothing; then it is made, where
 * may_make, or becomes that of the registers; "" stays when neither knows. 0, or -errno and a line. Blocks; before cluster_new(). */
int cluster_agree_on_id(struct registers *r, const struct world *w, bool may_make, char ret[64], char *err, size_t err_size);
int64_t cluster_broker_epoch(const struct cluster *c); /* of this broker's registration now; -1 none yet; any thread */
/* Is there a note that the topic was deleted, so that what is left of its records may go? Blocks. */
bool cluster_topic_was_deleted(struct registers *r, const struct uuid *id);

#endif
