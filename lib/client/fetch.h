/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads record batches of one partition from its leader: one Fetch, read_committed, without a
 * session, long-polling. The batches stay where they were received; nothing is copied. On its
 * client's loop.
 */
#ifndef KLOG_CLIENT_FETCH_H
#define KLOG_CLIENT_FETCH_H

#include "lib/client/client.h"

struct client_aborted { /* records of producer_id from first_offset to its abort marker do not count */
    int64_t producer_id, first_offset;
};

struct client_fetched {
    enum kerr err;        /* final: OFFSET_OUT_OF_RANGE and the like; retriable ones were retried */
    struct slice batches; /* whole batches; the first may begin before the offset asked for */
    struct rcbuf *frame;  /* batches point into it: take a reference to keep them */
    /* The log is not the one that was read: what the record before `offset` is of ended at diverging_end. No batches. */
    bool diverged;
    int32_t diverging_epoch; /* the last epoch up to there; -1 unknown */
    int64_t diverging_end;
    int64_t high_watermark, last_stable_offset, log_start_offset;
    const struct client_aborted *aborted;
    int32_t n_aborted;
};

struct client_fetch {
    const char *topic;
    struct uuid topic_id; /* zero: whatever topic has the name */
    int32_t partition;
    bool fenced;          /* only from the leader of leader_epoch; a newer one is FENCED_LEADER_EPOCH, final */
    int32_t leader_epoch;
    int64_t offset;
    bool has_last_epoch; /* the leader epoch of the record before `offset` is known: */
    int32_t last_epoch;  /* it is looked whether the log still has that record (KIP-595) */
    int32_t max_bytes;   /* the first batch comes whole, whatever its size */
    int32_t max_wait_ms; /* how long the broker may wait for something to come; 0: not at all */
    int64_t deadline_ms; /* later than now + max_wait_ms */
    /* rc as client_call's; ret is valid with rc 0, during the callback. */
    void (*cb)(struct client_fetch *f, int rc, const struct client_fetched *ret);
    void *user;
    /* private */
    struct client_call call;
    struct fetch_request request;
    struct fetch_request_topics request_topic;
    struct fetch_request_partitions request_partition;
};
void client_fetch(struct client *c, struct client_fetch *f);
void client_fetch_cancel(struct client *c, struct client_fetch *f);

#endif
