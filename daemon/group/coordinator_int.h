/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the coordinator only: coordinator.c (shards, life), coordinator_env.c (what the
 * machines ask for), coordinator_load.c, coordinator_write.c, coordinator_delete.c,
 * coordinator_expiry.c.
 *
 *            entered, led here          loaded
 *   IDLE ---------------------> LOADING -------> ACTIVE ----> STOPPED (coordinator_stop, from any)
 *     ^   shard_load                                |
 *     +----------------------+----------------------+
 *        shard_unload: no longer led here, or led anew
 *
 * A shard holds its partition while LOADING or ACTIVE, and lets go of it as soon as it leaves or the broker stops: who
 * deletes a partition waits for that.
 */
#ifndef KLOG_DAEMON_COORDINATOR_INT_H
#define KLOG_DAEMON_COORDINATOR_INT_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "daemon/config/ranks.h"
#include "daemon/group/coordinator.h"
#include "daemon/meta/cluster.h"
#include "daemon/replica/partition.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"
#include "lib/loop/workers.h"

enum shard_state { SHARD_IDLE, SHARD_LOADING, SHARD_ACTIVE, SHARD_STOPPED };

struct shard_write;
TAILQ_HEAD(shard_writes, shard_write);

struct shard {
    struct lock mu;
    struct coordinator *coordinator; /* set once */
    struct loop *loop;               /* set once: timers and the watcher live here */
    int32_t id;                      /* set once: partition of __consumer_offsets */
    enum shard_state state;          /* guarded by mu, as all that follows */
    struct partition *partition;     /* a reference while LOADING or ACTIVE */
    int32_t leader_epoch;            /* in which it was loaded */
    struct group_entry *groups;
    struct shard_writes writes; /* in the order of the log, not committed yet */
    int64_t due_ms;             /* when the timer is to look at the groups next */
    struct job load;            /* LOADING: the worker's, while `reading` */
    bool reading;
    int load_rc;                /* of the last reading: 0, or -errno when the disk could not be read */
    int32_t retry_ms;           /* how long to wait after the next that fails */
    struct task moved;          /* a record was appended, or the partition has moved; or there is a partition */
    struct task retime;
    struct watcher watcher; /* of the first of writes, and of the partition's leaving */
    struct timer write_timer, group_timer, load_timer; /* the loop's thread only */
};

struct coordinator {
    struct coordinator_deps deps; /* set once */
    struct group_env env;         /* set once */
    atomic_llong group_bytes;     /* G6, of all groups */
    struct lock mu;               /* guards n_shards and busy */
    struct shard **shards; /* made when the topic is first seen, then set once */
    int32_t n_shards;
    atomic_bool stopping;
    int32_t busy;        /* guarded by mu: records and loads under way */
    struct cond idle; /* busy has become 0 */
    /* loops[0]'s thread only */
    struct timer expiry;
    struct task start;
};

static inline const struct world *shard_world(const struct shard *sh)
{
    return sh->coordinator->deps.world;
}

/* coordinator.c */
int32_t coordinator_n_shards(struct coordinator *c); /* that there are by now */
struct group_entry *shard_find(struct shard *sh, const char *group_id);
struct group_entry *shard_add(struct shard *sh, const char *group_id);
void shard_remove(struct shard *sh, struct group_entry *e);
void group_entry_free(struct group_entry *e);
void shard_clear(struct shard *sh, enum kerr err);
/* The partition is not led here any more, or in another epoch. */
bool shard_has_moved(const struct shard *sh);
void shard_unload(struct shard *sh);
void coordinator_busy(struct coordinator *c, int32_t delta);

/* coordinator_env.c */
void coordinator_env_init(struct coordinator *c);

/* coordinator_load.c */
void shard_load_init(struct shard *sh);
void shard_load(
    struct shard *sh); /* IDLE -> LOADING, or ACTIVE at once when there is nothing to read */

/* coordinator_write.c */
void shard_writes_init(struct shard *sh);
void shard_writes_fail(struct shard *sh, enum kerr err); /* all of them */
/* A turn in the order of the log without a record: cb once all that was written before it has ended. */
void group_barrier(struct group_entry *e, group_written *cb, void *arg);
/* Without an entry: nobody waits for it. */
void shard_write(struct shard *sh, struct batch_builder *b);

/* coordinator_delete.c */
bool group_drop_if_empty(struct group_entry *e); /* true: e is gone */

/* coordinator_expiry.c */
void coordinator_expiry_start(struct coordinator *c);
void shard_timer_init(struct shard *sh);
void shard_retime(struct shard *sh, int64_t due_ms);

#endif
