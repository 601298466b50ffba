/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the cluster: the slots, one a topic, that bring registers, hosted partitions and image into line.
 *
 * Threads. The meta loop owns slots, changes under way and the making of images. What
 * blocks (reading registers, opening and deleting logs) runs on workers, in jobs that own what they touch and
 * hand it back to the meta loop. cluster_start() does the first round on the caller's thread.
 */
#ifndef KLOG_DAEMON_CLUSTER_INT_H
#define KLOG_DAEMON_CLUSTER_INT_H

#include <sys/queue.h>
#include <uthash.h>

#include "daemon/config/ranks.h"
#include "daemon/meta/cluster.h"
#include "daemon/meta/register_json.h"
#include "daemon/meta/registers.h"
#include "lib/base/buf.h"
#include "lib/loop/loop.h"
#include "lib/loop/thread.h"
#include "lib/loop/workers.h"

struct producer_ids;

/* ---- reading the registers (cluster_load.c); blocks ---- */
struct topic_load {
    int rc; /* -EAGAIN: changed while being read; -EBADMSG; ... */
    bool found;
    struct uuid id;
    struct partition_register *partitions;
    int32_t n_partitions;
    struct topic_config *config;
    int64_t config_version;
};
void topic_load(struct cluster *c, const char *name, const struct broker_config *defaults,
                struct topic_load *ret);
void topic_load_done(struct topic_load *l);

struct brokers_load {
    int rc;
    struct cluster_broker *brokers;
    size_t n_brokers;
    struct cluster_defaults *defaults;
};
void brokers_load(struct cluster *c, struct brokers_load *ret);
void brokers_load_done(struct brokers_load *l);

/* Leaves out what this version does not know or take, with a warning that begins with `what`. */
struct topic_config *topic_config_lenient(const char *what, const struct broker_config *defaults,
                                          const struct topic_config_entry *entries, size_t n);
/* What the topic itself sets, as text. */
struct topic_config_entry *topic_config_entries(const struct topic_config *c, size_t *ret_n);
/* The same for what was set on the broker while it runs. */
struct topic_config_entry *defaults_entries(const struct cluster_defaults *d, size_t *ret_n);

/* ---- slots (cluster_slot.c) ----
 *
 *            change asks           written           differs: new, grown, reconfigured
 *   IDLE ---------------> WRITING ---------> IDLE ---> LOADING ---> OPENING ---> IDLE
 *    ^                                                   | gone, or another id
 *    +-------------- (again if dirty) --- REMOVING <-----+
 */
enum slot_state { SLOT_IDLE, SLOT_WRITING, SLOT_LOADING, SLOT_OPENING, SLOT_REMOVING, SLOT_STATES };

struct change;

struct topic_slot {
    struct cluster *cluster;
    char *name;
    enum slot_state state;        /* slot_move() is the only writer */
    bool dirty;                   /* its registers changed since they were read */
    TAILQ_HEAD(, change) changes; /* the first one is under way once `begun` */

    /* what partitions.c has of it */
    bool hosted;
    struct uuid hosted_id;
    int32_t n_hosted; /* partitions 0 .. n_hosted-1 were offered to partitions_add */
    /* of this round */
    struct topic_load load;
    struct cluster_image *image; /* defaults to load with */
    int jobs_left;
    bool at_start;  /* cluster_start's round: what is opened may have been there before */
    int open_rc;    /* first error of partitions_add, or of partitions_remove */
    int32_t n_kept; /* REMOVING: partitions from here on go */
    struct job job;
    UT_hash_handle hh;
};

struct brokers_slot {
    bool busy, dirty;
    TAILQ_HEAD(, change) changes;
    struct brokers_load load;
    struct job job;
};

struct cluster {
    struct cluster_deps deps;    /* set once */
    int64_t broker_epoch;        /* version of /klog/broker_epoch/N; set once */
    atomic_uint_fast64_t writes; /* for partition_register.w */

    struct lock image_mu;
    struct cluster_image *image; /* guarded by image_mu; replaced by the meta loop only */

    /* the meta loop's */
    struct topic_slot *slots; /* uthash by name */
    struct brokers_slot brokers;
    struct register_watch *watches[4];
    struct producer_ids *ids;
    bool stopping;
    int busy;    /* slots not IDLE, brokers.busy, notes being deleted */
    struct latch *idle; /* cluster_stop waits; opened when busy is 0 */

    /* cluster_start's: slots that still open their logs, what they came to, posted when none is left */
    int starting_left;
    struct cluster_topic **start_topics;
    size_t n_start_topics;
    struct latch started;
};

struct topic_slot *slot_get(struct cluster *c, const char *name); /* makes it */
void slot_mark_dirty(struct topic_slot *s);
void slot_step(struct topic_slot *s); /* does what is next, if it is idle; may free s */
void slot_begin_write(struct topic_slot *s);
void slot_wrote(struct topic_slot *s);       /* back to IDLE, then step */
void slot_open_loaded(struct topic_slot *s); /* cluster_start: s->load is filled */
void slots_free(struct cluster *c);
void brokers_step(struct cluster *c);
void cluster_note_idle(struct cluster *c, int delta);

/* ---- changes (cluster_change.c) ---- */
void change_begin(struct topic_slot *s, struct change *ch); /* the slot is idle; checks and writes */
/* The slot's registers, logs and image agree again. open_rc: what opening new logs came to. */
void change_synced(struct topic_slot *s, struct change *ch, int open_rc);
/* The image has forgotten the topic; its logs are still being removed. */
void change_gone(struct topic_slot *s, struct change *ch);
void changes_fail(struct cluster *c, struct topic_slot *s, enum kerr err, const char *text);
bool change_is_begun(const struct change *ch);

/* ---- images (cluster_image.c); the meta loop, or cluster_start ---- */
void cluster_topic_unref(struct cluster_topic *t);
struct cluster_defaults *cluster_defaults_ref(struct cluster_defaults *d);
void cluster_defaults_unref(struct cluster_defaults *d);
void cluster_publish_first(struct cluster *c, struct cluster_defaults *defaults,
                           const struct cluster_broker *brokers, size_t n_brokers);
/* t NULL: without it. Takes the reference. */
void cluster_publish_topic(struct cluster *c, const char *name, struct cluster_topic *t);
/* Takes the array and the references in it. */
void cluster_publish_topics(struct cluster *c, struct cluster_topic **topics, size_t n);
void cluster_publish_brokers(struct cluster *c, struct cluster_defaults *defaults,
                             const struct cluster_broker *brokers, size_t n_brokers);

/* ---- lists of register operations that own their paths and values (register_ops.c) ---- */
struct register_ops_list {
    struct register_op *ops;
    int n, cap;
    size_t bytes;
};
/* Both are taken over; value NULL is empty. */
void ops_add(struct register_ops_list *l, enum register_op_kind kind, char *path, char *value,
             int64_t version);
void ops_done(struct register_ops_list *l);

/* "id.broker-epoch.counter" into ret */
void cluster_writer(struct cluster *c, char ret[64]);

/* ---- producer ids (producer_ids.c) ---- */
struct producer_ids *producer_ids_new(struct cluster *c);
void producer_ids_free(struct producer_ids *p);

#endif
