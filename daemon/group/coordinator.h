/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The group coordinator: every group belongs to one partition of __consumer_offsets, and the broker that
 * leads that partition holds the group in memory, loaded from the partition's records. One shard a partition;
 * a shard's mutex guards its groups, their state machines and their offsets.
 *
 * Threads: handlers on any loop enter a shard, work, leave. What waits (for the log, for the clock) waits on
 * the shard's own loop; answers are posted to the loop of their request. Loading runs on workers. Locks, in
 * order: shard.mu, partition.mu; shard.mu, coordinator.mu. No function here blocks but coordinator_drain.
 */
#ifndef KLOG_DAEMON_COORDINATOR_H
#define KLOG_DAEMON_COORDINATOR_H

#include "daemon/group/committed.h"
#include "daemon/group/group.h"
#include "lib/base/slice.h"
#include "lib/record/build.h"

struct broker_config;
struct cluster;
struct coordinator;
struct loop;
struct partitions;
struct shard;
struct workers;
struct world;

/* What it works on, and whom it tells. */
struct coordinator_deps {
    const struct world *world;
    const struct broker_config *config; /* as the file and the command line say */
    struct loop *const *loops;          /* the shards' are spread over them; the first also looks for what has expired */
    int n_loops;
    struct workers *workers;
    struct partitions *partitions;
    struct cluster *cluster;
    /* The answer to a join or sync, with the waiter that was given to group_join() or group_sync(), which is theirs from then
     * on: exactly one call each (G5). Under the shard's lock, on any thread; must not block, and keep nothing of *a. */
    void (*answer_join)(void *waiter, const struct group_join_answer *a);
    void (*answer_sync)(void *waiter, const struct group_sync_answer *a);
};
struct coordinator *coordinator_new(const struct coordinator_deps *deps);
/* Starts to load the shards this broker leads. After the cluster has started. */
void coordinator_start(struct coordinator *c);
/* Answers everyone parked; requests that still come get COORDINATOR_NOT_AVAILABLE. Before sessions are
 * drained. */
void coordinator_stop(struct coordinator *c);
/* Waits until what is on its way to the log has ended; no request may come in any more, the loops still run.
 */
void coordinator_drain(struct coordinator *c);
void coordinator_free(struct coordinator *c); /* the loops have ended */

/* The topic is gone from the cluster's image: so are all positions in it, but not those in another one that has got
 * its name since. Any loop's thread. */
void coordinator_topic_deleted(struct coordinator *c, const char *topic, const struct uuid *id);

/* ---- one group, under its shard's lock ---- */

struct group_entry {
    struct group *group;
    struct committed offsets;
    struct shard *shard;
    bool has_record;   /* of the group itself is in the log, or on its way: a deletion has to write a tombstone */
    int32_t writing;   /* records on their way to the log: the entry stays */
    bool closing;      /* being deleted: whoever comes shall come again */
    bool detached;     /* no longer in the table; goes with its last record */
    UT_hash_handle hh; /* shard.groups, by id */
};

/* A group that is locked, or the lock of where it would be. */
struct group_lease {
    struct shard *shard;
    struct group_entry *e; /* NULL: there is no such group */
};

/* Locks the group's shard and finds the group, or makes an empty one if `create`. NONE: end with
 * coordinator_leave. Otherwise (INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE,
 * NOT_COORDINATOR) nothing is locked. */
enum kerr coordinator_enter(struct coordinator *c, struct kstr group_id, bool create,
                            struct group_lease *ret);
void coordinator_leave(struct group_lease *l);

/* f for each group this broker coordinates, under its shard's lock. COORDINATOR_LOAD_IN_PROGRESS when some
 * are still being loaded. */
enum kerr coordinator_each(struct coordinator *c, void (*f)(void *arg, struct group_entry *e), void *arg);

/* Which partition of __consumer_offsets a group belongs to, of n: Kafka's rule, Java's String.hashCode. */
int32_t coordinator_partition_of(struct kstr group_id, int32_t n);

/* ---- writing, under the shard's lock ---- */

/* What became of a record: under the shard's lock, in the order of the log, on any thread. e is the entry
 * that was given, err what the group protocol says for it. */
typedef void group_written(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset);

/* Appends the batch, which is finished and reset. cb (may be NULL) is never called from within. */
void group_write(struct group_entry *e, struct batch_builder *b, group_written *cb, void *arg);

/* Deletes positions in the topic (or in all, with NULL), those whose partition is listed (or all, with n <
 * 0). id not NULL: only those of this topic, or of one that is not known. cb, in any case, once it is durable. */
void group_delete_offsets(struct group_entry *e, const char *topic, const struct uuid *id, const int32_t *partitions,
                          int32_t n, group_written *cb, void *arg);
/* Deletes an empty group with all its positions. Nobody else enters it from now on. */
void group_delete(struct group_entry *e, group_written *cb, void *arg);

#endif
