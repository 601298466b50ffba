/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a group has read: its committed offsets asked for and stored, and the offsets at which a partition
 * starts, ends, or reaches a time. A member commits through member.h, which keeps the order; what is here
 * needs no membership. A position belongs to a topic's id where it has one: brokers that take ids (Kafka 4, klogd) store
 * nothing of a deleted topic in one made anew under its name. On its client's loop. cb is never called from inside these functions.
 */
#ifndef KLOG_CLIENT_POSITIONS_H
#define KLOG_CLIENT_POSITIONS_H

#include "lib/client/client.h"

struct position {
    const char *topic;
    struct uuid topic_id; /* zero: whatever topic has the name; else it gets into no other (UNKNOWN_TOPIC_ID) */
    int32_t partition;
    int64_t offset;       /* of the next record to read; -1 none */
    int32_t leader_epoch; /* of the last record read; -1 unknown */
    const char *metadata; /* NULL none */
    enum kerr err;        /* in answers: why this one was refused */
};

/* By topic and partition. */
int position_compare(const struct position *a, const struct position *b);
/* Sorts them, and leaves the first of those that name the same partition; returns how many are left. */
size_t positions_sort(struct position *p, size_t n);

/* ---- committed offsets ---- */
struct positions_fetch {
    const char *group;
    struct position *wanted; /* topic and partition of each count */
    size_t n_wanted;
    bool all; /* of whatever the group has positions for, instead of those wanted */
    int64_t deadline_ms;
    /* rc 0: what was asked for, sorted by topic and partition, in memory of this call that goes after cb.
     * Else as client_call's cb, or the errno of a refusal of the whole group (in err). */
    void (*cb)(struct positions_fetch *f, int rc, enum kerr err, const struct position *ret, size_t n);
    void *user;
    /* private */
    struct client *c;
    struct client_call call;
    struct offset_fetch_request request;
    struct arena arena;
};
void positions_fetch(struct client *c, struct positions_fetch *f);
void positions_fetch_cancel(struct positions_fetch *f);

struct positions_commit {
    const char *group;
    /* of a member: both as the coordinator gave them. Without membership, which is refused while the group
     * has members: "" and -1 */
    const char *member_id;
    int32_t generation;
    const char *instance_id;    /* NULL none */
    struct position *positions; /* err of each is set by the end; in any order */
    size_t n;
    int64_t deadline_ms;
    /* rc 0: all are stored. Else -errno of the first refusal (in err), or as client_call's cb. */
    void (*cb)(struct positions_commit *pc, int rc, enum kerr err);
    void *user;
    /* private */
    struct client *c;
    struct client_call call;
    struct offset_commit_request request;
    struct arena arena;
};
void positions_commit(struct client *c, struct positions_commit *pc);
void positions_commit_cancel(struct positions_commit *pc);

/* ---- where a partition stands ---- */
enum { POSITION_END = -1, POSITION_START = -2 };

struct position_find {
    const char *topic;
    struct uuid topic_id; /* zero: whatever topic has the name */
    int32_t partition;
    int64_t at; /* POSITION_START, POSITION_END (as read_committed sees it), or a time in ms: the first record
                   that young */
    int64_t deadline_ms;
    /* rc 0 and the offset; -1 when no record is that young. Else as client_call's cb, or -errno of err. */
    void (*cb)(struct position_find *f, int rc, enum kerr err, int64_t offset);
    void *user;
    /* private */
    struct client *c;
    struct client_call call;
    struct list_offsets_request request;
    struct list_offsets_request_topics request_topic;
    struct list_offsets_request_partitions request_partition;
};
void position_find(struct client *c, struct position_find *f);
void position_find_cancel(struct position_find *f);

#endif
