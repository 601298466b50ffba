/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member of a consumer group (Kafka's classic protocol): finds the coordinator, joins, shares partitions
 * out when it leads, sends heartbeats, goes through rebalances, commits, leaves. It owns no records and
 * fetches none: its owner reads the partitions it is told of and commits what has been dealt with. On its
 * client's loop; one struct member per group and membership.
 *
 * Rules that owners may rely on:
 *   M1  Between `assigned` and the answer to `revoked` no other member was given these partitions, unless this one
 *       was silent for its session time-out.
 *   M2  A commit carries the generation in which it was made: after another member may have read on, it is refused,
 *       never stored.
 *   M3  Commits reach the coordinator one request at a time, in the order they were made, so a position never goes
 *       back by a retry.
 *   M4  Callbacks come from the loop, never from inside a function of this header.
 */
#ifndef KLOG_CLIENT_MEMBER_H
#define KLOG_CLIENT_MEMBER_H

#include "lib/client/positions.h"

struct member;

struct member_config {
    const char *group;
    const char *const *topics; /* by name; one that does not exist has no partitions until it does */
    size_t n_topics;
    const char
        *instance_id; /* of a static member, which keeps its partitions through a restart; NULL: dynamic */
    int32_t session_timeout_ms;   /* silent for so long: expelled. 0: 45000 */
    int32_t heartbeat_ms;         /* 0: 3000 */
    int32_t rebalance_timeout_ms; /* how long the answer to `revoked` may take. 0: 300000 */
    int64_t retry_backoff_ms;     /* 0: 100; doubled up to ten times that */
    int64_t metadata_ms;          /* how often the leader looks for new partitions. 0: 60000 */
};

struct member_ops {
    /* These partitions are the member's to read, each from its committed offset (-1: none; err: why it could
     * not be told). There may be none. They replace the earlier ones; valid until `revoked` is answered. */
    void (*assigned)(struct member *m, const struct position *parts, size_t n);
    /* All partitions are to be given back: stop reading, deal with what was begun, commit it, then call
     * member_released (which may be done from in here). lost: another member may have them already, and
     * commits are refused from now on; member_released is awaited all the same. */
    void (*revoked)(struct member *m, bool lost);
    /* It is over: after member_close (rc 0), or because the coordinator refuses this member for good (-errno,
     * err), in which case the partitions are lost without `revoked`. Only member_free may follow. */
    void (*ended)(struct member *m, int rc, enum kerr err);
};

struct member *member_new(struct client *c, const struct member_config *cfg, const struct member_ops *ops,
                          void *user);
/* Not from inside a callback, but `ended`. At once, without leaving: the coordinator finds out by the session
 * time-out. Commits that are pending end with -ECANCELED, from inside. Before its client's end. */
void member_free(struct member *m);
void *member_user(const struct member *m);
void member_join(struct member *m); /* once; membership begins */
/* The owner is done with what was revoked. Pending commits still go out, before the member joins again. */
void member_released(struct member *m);
/* Leaves the group, after pending commits went out; `ended` follows by the deadline. The owner has stopped
 * reading. A static member only stops, so that its partitions wait for it. */
void member_close(struct member *m, int64_t deadline_ms);

/* One position to store. At most one a partition at a time. */
struct member_commit {
    /* the caller fills these and keeps them until cb */
    struct position position; /* err is set by the end */
    /* rc 0: it is stored. Else -errno, mostly with err. */
    void (*cb)(struct member_commit *mc, int rc, enum kerr err);
    void *user;
    /* private */
    TAILQ_ENTRY(member_commit) entry;
};
/* Between `assigned` and member_released. What gathers while a request is out goes together in the next. */
void member_commit(struct member *m, struct member_commit *mc);

const char *member_id(const struct member *m);     /* "" before the coordinator gave one */
int32_t member_generation(const struct member *m); /* -1 outside of one */
bool member_leads(const struct member *m);

#endif
