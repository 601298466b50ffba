/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replication of one partition, both sides: what a leader does with a follower's fetch, and what a follower does with its
 * leader's answer. Any thread, unless it says so.
 *
 * A change of the log that a follower makes (append, cut, beginning anew) holds partition.change_mu from its question
 * whether the answer still counts to the end of the change, and partition_set_state() takes that lock first: no election
 * comes in between.
 */
#ifndef KLOG_DAEMON_PARTITION_FOLLOW_H
#define KLOG_DAEMON_PARTITION_FOLLOW_H

#include "daemon/replica/partition.h"
#include "lib/base/slice.h"

/* ---- a leader ---- */
struct partition_follower { /* who fetches, as the request says; R6, R10 */
    int32_t broker_id;
    int64_t broker_epoch;
};
/* The view for it: err is what replica_fetch_check() says. What it may read ends at leo. */
void partition_follower_view(struct partition *pt, const struct partition_follower *who, int32_t leader_epoch,
                             struct partition_view *ret);
/* It has everything below leo, on its disk where the policy asks for that: it may move the watermark. The fetch has passed
 * the check, and its last epoch is the log's there. */
void partition_follower_fetched(struct partition *pt, const struct partition_follower *who, int32_t leader_epoch,
                                int64_t leo);

/* Of these brokers the in-sync follower that has most, and all below the offset; -1: none has, or this broker does not lead. */
int32_t partition_nearest(struct partition *pt, int64_t offset, const int32_t *brokers, int32_t n);

/* ---- a follower ---- */
struct partition_copy { /* where it has to go on */
    int32_t leader, leader_epoch;
    int64_t leo;
    int32_t last_epoch; /* of the record before leo; -1 none */
    int64_t start_offset;
    bool throttled; /* it keeps to follower.replication.throttled.rate */
    bool flushed; /* as far as its policy asks for before the leader is told of leo */
};
/* False: it follows nobody now. */
bool partition_copy_point(struct partition *pt, struct partition_copy *ret);

/* It is being removed: nobody copies it any more. */
bool partition_copy_is_over(struct partition *pt);

/* What became of an answer. */
enum copy_result {
    COPY_DONE,
    COPY_STALE,   /* leader, epoch or log are others now: the answer counts for nothing */
    COPY_REFUSED, /* the leader sent what does not fit; a line tells. Nothing of it stays; try again later */
    COPY_FAILED,  /* this broker's disk; where that was its end, the directory has been told */
    COPY_DAMAGED, /* this replica is damaged from now on */
};
/* The answer to the fetch at `at`: nothing to cut (R12), these batches, that watermark. Blocks on the page cache. */
enum copy_result partition_copy_append(struct partition *pt, const struct partition_copy *at, struct slice batches,
                                       int64_t leader_hw);
/* The leader's log parts from this one: epoch and end as in DivergingEpoch (KIP-595). Blocks: not on a loop. */
enum copy_result partition_copy_truncate(struct partition *pt, const struct partition_copy *at, int32_t diverging_epoch,
                                         int64_t diverging_end);
/* The leader's log begins at `start`, above this one's end, and text_position is where its plain view is there. batches:
 * what it has from there on, none when it is empty. Lets go of all that is here. Blocks: not on a loop. */
enum copy_result partition_copy_restart(struct partition *pt, const struct partition_copy *at, int64_t start,
                                        int64_t text_position, struct slice batches, int64_t leader_hw);
/* The leader's log begins at `start` now. Blocks: not on a loop. */
enum copy_result partition_copy_delete_before(struct partition *pt, const struct partition_copy *at, int64_t start);
/* Posts w->task once the policy's flush of everything below leo is done, or on any change of leadership; false: it is
 * already. w->what is WATCH_COPY. */
bool partition_copy_watch(struct partition *pt, struct watcher *w, int64_t leo);

#endif
