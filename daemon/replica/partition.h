/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hosted partition: a replica's state machine, its log, and those who wait for it to move.
 *
 * Locks, in order: registry lock, partition.mu, the log's own. Callbacks of watchers run under partition.mu and may
 * only loop_post().
 */
#ifndef KLOG_DAEMON_PARTITION_H
#define KLOG_DAEMON_PARTITION_H

#include <pthread.h>
#include <sys/queue.h>

#include "daemon/replica/replica.h"
#include "daemon/topic_config.h"
#include "lib/base/kerr.h"
#include "lib/loop/loop.h"
#include "lib/store/plog.h"

struct broker;

/* One who waits on a partition. Owned by a delayed operation on `loop`; registered in any number of partitions. */
struct watcher {
    struct loop *loop;
    struct task *task;               /* posted when the condition may have come true */
    int64_t wake_at;                 /* wake when hw >= wake_at; also on any change of leadership or deletion */
    LIST_ENTRY(watcher) link;        /* guarded by partition.mu */
};

struct partition {
    pthread_mutex_t mu;
    struct broker *broker;           /* set once */
    char *topic;                     /* set once */
    int32_t id;                      /* set once */
    struct uuid topic_id;            /* set once */
    struct plog *log;                /* set once; NULL while its directory is offline */
    struct replica replica;          /* guarded by mu */
    struct topic_config *config;     /* guarded by mu */
    LIST_HEAD(, watcher) watchers;   /* guarded by mu */
    bool deleted;                    /* guarded by mu: being removed; answer UNKNOWN_TOPIC_OR_PARTITION */
    int32_t refs;                    /* atomic; partition_ref/unref */
    /* flusher's, guarded by the flusher's lock */
    bool flush_queued;
    TAILQ_ENTRY(partition) flush_link;
    int64_t unflushed_messages, unflushed_since_ms;   /* guarded by mu; policy interval */
};

struct partition *partition_ref(struct partition *pt);
void partition_unref(struct partition *pt);

/* What a produce to one partition came to. */
struct partition_appended {
    enum kerr err;
    int eno;
    const char *text;                /* error message or NULL; static or in the request's arena */
    int32_t bad_index;               /* record refused, -1 */
    int64_t base_offset, last_offset, log_append_time, start_offset;
    int32_t leader, leader_epoch;    /* for NOT_LEADER_OR_FOLLOWER */
};
/* Judges and appends one batch as leader, starts its flush. acks=-1 is committed once partition_hw() > last_offset. */
void partition_append(struct partition *pt, uint8_t *batch, size_t n, int16_t acks, bool zstd_allowed,
                      bool internal_writer, struct partition_appended *ret);

struct partition_view {              /* one consistent reading of the ends */
    enum kerr err;
    int32_t leader, leader_epoch;
    int64_t start_offset, hw, lso, leo, fleo;
};
void partition_view(struct partition *pt, struct partition_view *ret);

/* Registers w, unless hw >= w->wake_at or the partition is gone or led elsewhere already: then returns false. */
bool partition_watch(struct partition *pt, struct watcher *w);
void partition_unwatch(struct partition *pt, struct watcher *w);
void partition_wake_all(struct partition *pt);

/* ---- the registry of hosted partitions: daemon/replica/partitions.c ---- */
struct partitions;
struct partitions *partitions_new(struct broker *b);
void partitions_free(struct partitions *ps);
struct partition *partitions_get(struct partitions *ps, struct kstr topic, int32_t id);        /* a reference, or NULL */
struct partition *partitions_get_by_id(struct partitions *ps, const struct uuid *id, int32_t partition);
/* Opens or creates the log and joins the registry. Blocks: on a worker. */
int partitions_add(struct partitions *ps, const char *topic, int32_t id, const struct uuid *topic_id,
                   struct topic_config *cfg, const struct partition_state *st);
/* Leaves the registry, wakes waiters, deletes the log once the last reference is gone. Blocks: on a worker. */
void partitions_remove(struct partitions *ps, const char *topic, int32_t id);
void partitions_each(struct partitions *ps, void (*f)(void *arg, struct partition *pt), void *arg);

#endif
