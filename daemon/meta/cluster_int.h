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
#include "daemon/meta/register_batch.h"
#include "daemon/meta/register_json.h"
#include "daemon/meta/registers.h"
#include "daemon/replica/state.h"
#include "lib/base/buf.h"
#include "lib/loop/loop.h"
#include "lib/loop/thread.h"
#include "lib/loop/workers.h"

struct producer_ids;

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

/* ---- reading the registers (cluster_load.c); blocks ---- */
/* What of a topic is to be read, or has to be read again. */
enum {
    TOPIC_SHAPE = 1,      /* is it there, under which id, and how many partitions are there */
    TOPIC_CONFIG = 2,     /* its configuration */
    TOPIC_PARTITIONS = 4, /* every partition; else those that are named, and those that are new */
    TOPIC_ALL = TOPIC_SHAPE | TOPIC_CONFIG | TOPIC_PARTITIONS,
};
struct topic_wants {
    unsigned what;
    int32_t *ids; /* partitions; any order, some perhaps twice */
    int32_t n_ids, cap_ids;
};
void topic_wants_add(struct topic_wants *w, int32_t id); /* a partition */
bool topic_wants_any(const struct topic_wants *w);
/* Moves all to ret; but of single partitions, where nothing else is wanted, those of the `max` lowest numbers. */
void topic_wants_take(struct topic_wants *w, int32_t max, struct topic_wants *ret);
void topic_wants_done(struct topic_wants *w); /* then it wants nothing */

struct topic_load {
    int rc; /* -EAGAIN: changed while being read; -EBADMSG; ... */
    bool found;
    bool same; /* the topic that was known before: what is NULL here is as it was */
    bool busy;                   /* a change of this broker is under way */
    bool unfinished;             /* its register says so; somebody is at it */
    struct topic_register shape; /* of the topic's register, whose version is: */
    int64_t version;
    struct cluster_partition **partitions; /* by number; NULL: not read */
    int32_t n_partitions;
    int32_t *read; /* numbers of those that were read, ascending */
    int32_t n_read;
    struct topic_config *config; /* NULL: not read */
    int64_t config_version;
    char why[320]; /* of -EBADMSG */
};
/* What is not wanted is as img has it; of a topic that it has not, everything is read. busy: a change of this broker is under
 * way in it. Clears away what others left unfinished. Blocks. */
void topic_load(struct cluster *c, const char *name, const struct cluster_image *img, const struct topic_wants *wants,
                bool busy, struct topic_load *ret);
void topic_load_done(struct topic_load *l);
const char *topic_load_why(const struct topic_load *l); /* why it failed, in words; l's */
/* cluster_sweep.c: deletes the partitions from l->shape.unfinished_from on, or the whole topic. 0; -EAGAIN: others are at it;
 * -errno. Blocks. */
int topic_sweep(struct cluster *c, const char *name, struct topic_load *l);

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
    struct topic_wants dirty;     /* what of its registers changed since they were read */
    TAILQ_HEAD(, change) changes; /* the first one is under way once `begun` */

    /* what partitions.c has of it */
    bool hosted;
    struct uuid hosted_id;
    bool broken;      /* its registers could not be read at the start: what is there of its logs is older than this process */
    bool unfinished;  /* somebody was making, growing or deleting it when its register was read */
    int32_t n_hosted; /* of partitions 0 .. n_hosted-1 those with a replica here were offered to partitions_add */
    /* of this round */
    struct topic_wants wants;
    struct topic_load load;
    struct cluster_image *image; /* defaults to load with, and the topic as it was */
    int jobs_left;
    bool changing; /* a change of this broker is under way */
    bool at_start;  /* cluster_start's round: what is opened may have been there before */
    bool unread;    /* the registers could not be reached: a change that was written is judged once they are read again (the watch
                       tells), and never taken back on a guess: others may have used what it made */
    int open_rc;    /* first error of partitions_add, or of partitions_remove */
    int32_t n_kept; /* REMOVING: partitions from here on go */
    struct job job;
    UT_hash_handle hh;
};

struct brokers_slot {
    bool busy, dirty;
    TAILQ_HEAD(, change) changes;
    struct brokers_load load;
    int64_t registered; /* this broker's epoch when the list was asked for; -1 it was not registered */
    int64_t malformed; /* version of its own settings that was told of; of whoever loads, one at a time */
    struct job job;
};

/* ---- this broker's registration (cluster_session.c) ---- */
enum enlist_state { ENLIST_OUT, ENLIST_READING, ENLIST_WRITING, ENLIST_WAITING, ENLIST_IN, ENLIST_STATES };

struct enlisting {
    enum enlist_state state; /* enlist_move() is the only writer */
    int rc;                  /* of the last attempt */
    char mark[UUID_TEXT_LEN + 1];
    bool attempted;          /* written, perhaps, by the last attempt since the session began */
    bool is_mine;            /* the epoch's register was last written by this process, when it was read */
    bool displaces;          /* what is in the place of its registration goes */
    bool suspended, expired, malformed; /* said so already */
    struct register_ops_list ops;
    int64_t deadline_ms;  /* of the first */
    struct latch *waiter; /* for the first */
    struct timer timer;
};

/* ---- leaders and in-sync sets (cluster_lead.c); meta loop ---- */
struct seat;
struct leading {
    struct seat *seats;            /* uthash: partitions of which something is under way, or waited for */
    struct live_broker *live, *live_proven; /* of the image; the second as if all had kept everything */
    size_t n_live;
    struct register_batch batch; /* seats' changes on their way */
    struct live_broker *seen; /* those of the last look for preferred leaders */
    size_t n_seen;
    struct timer tick, drain;
    int64_t widen_ms;       /* when the replicas of the topic of positions are looked at next */
    int64_t balance_ms;     /* when preferred leaders are looked for next */
    bool draining;          /* controlled shutdown */
    int64_t drain_until_ms;
    struct latch *drained; /* who waits for it */
};

struct cluster {
    struct cluster_deps deps;    /* set once */
    atomic_int_fast64_t broker_epoch; /* version of /klog/broker_epoch/N; written on the meta loop; -1 not registered yet */
    struct enlisting enlist;     /* the meta loop's */
    struct leading lead;         /* the meta loop's */
    bool started_all;            /* cluster_start() came to its end */
    atomic_uint_fast64_t writes; /* for partition_register.w */

    struct lock image_mu;
    struct cluster_image *image; /* guarded by image_mu; replaced by the meta loop only */

    /* the meta loop's */
    struct topic_slot *slots; /* uthash by name */
    struct brokers_slot brokers;
    struct register_watch *watches[5];
    struct producer_ids *ids;
    bool starting; /* the first round: what changes is noted, and looked at after it */
    bool listing;  /* the topics' names are on their way, */
    bool list_again; /* and are others by now, perhaps */
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
void slot_mark_dirty(struct topic_slot *s, unsigned what);
void slot_mark_partition(struct topic_slot *s, int32_t id);
void slot_step(struct topic_slot *s); /* does what is next, if it is idle; may free s */
void slot_begin_write(struct topic_slot *s);
void slot_wrote(struct topic_slot *s);       /* back to IDLE, then step */
void slot_open_loaded(struct topic_slot *s); /* cluster_start: s->load is filled */
void slots_free(struct cluster *c);
void brokers_step(struct cluster *c);
void cluster_note_idle(struct cluster *c, int delta);

void cluster_enlist_init(struct cluster *c);
/* Registers for the first time, and again by itself in each new session. 0; -EEXIST: the number is in use; -errno. Blocks. */
int cluster_enlist(struct cluster *c);
void cluster_enlist_stop(struct cluster *c); /* meta loop */
/* -1: not just now. Meta loop. */
int64_t cluster_registered(const struct cluster *c);
/* A list of brokers that was asked for while this one was registered with that epoch does not have it so: it registers again, or is
 * found to have been replaced. Meta loop. */
void cluster_registration_is_gone(struct cluster *c, int64_t epoch);
/* Another session, another epoch: what this broker led it leads no more. */
void cluster_registered_anew(struct cluster *c);

void lead_start(struct cluster *c);
void lead_stop(struct cluster *c);
void lead_free(struct cluster *c);
/* Partition id of t, of the newest image: its register was read, or its time has come. */
void lead_look(struct cluster *c, const struct cluster_topic *t, int32_t id);
void lead_brokers_changed(struct cluster *c); /* those of the newest image, or this broker's epoch */
void lead_tick(struct cluster *c);
/* What a leader of it sees to at each tick, now: a new one leaves out at once who is dead. */
void lead_see_to(struct cluster *c, const struct cluster_topic *t, int32_t id);
void cluster_widen_offsets(struct cluster *c); /* cluster_widen.c */
/* Who lives, as far as it matters for leaders of t: lead.n_live of them. */
const struct live_broker *lead_live(struct cluster *c, const struct cluster_topic *t);

/* cluster_orphans.c: what takes back this broker's note of a deletion, and with the last broker's the topic's; one by one. */
void cluster_forget_ops(struct cluster *c, const struct uuid *id, struct register_ops_list *ret);

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
void cluster_broker_copy(struct cluster_broker *dst, const struct cluster_broker *src);
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

/* Puts p, whose reference it takes, in the place of partition id of t, which is a topic of the newest image: whoever
 * looks it up from now on sees it. */
void cluster_replace_partition(struct cluster *c, const struct cluster_topic *t, int32_t id,
                               struct cluster_partition *p);
/* A new image of the same, so that what was replaced can go. */
void cluster_publish_same(struct cluster *c);

/* ---- partitions of the image (cluster_partition.c) ---- */
struct cluster_partition *cluster_partition_new(const struct partition_register *r);
struct cluster_partition *cluster_partition_ref(struct cluster_partition *p);
void cluster_partition_unref(struct cluster_partition *p); /* NULL is fine */
/* All that have a replica of any of its partitions, in no order; *ret is the caller's. How many. */
int32_t cluster_topic_brokers(const struct cluster_topic *t, int32_t **ret);
/* ret->extra stays p's. */
void cluster_partition_register(const struct cluster_partition *p, struct partition_register *ret);
/* Is the broker in a list of n? */
bool cluster_has_id(const int32_t *ids, int32_t n, int32_t id);

/* "id.broker-epoch.counter" into ret */
void cluster_writer(struct cluster *c, char ret[64]);

/* ---- producer ids (producer_ids.c) ---- */
struct producer_ids *producer_ids_new(struct cluster *c);
void producer_ids_free(struct producer_ids *p);

#endif
