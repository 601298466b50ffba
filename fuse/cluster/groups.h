/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumer groups as a topic's .groups/ shows them. Loop's thread.
 *   G1  A group is there as long as it has a position in the topic.
 *   G2  Nothing that only looks joins a group or moves a position.
 *   G3  While the group has members, its positions are theirs: whoever else would move them gets EBUSY, from the
 *       broker's own refusal; while as/G/pN is open on this mount, its position is the reader's.
 */
#ifndef KLOG_FUSE_GROUPS_H
#define KLOG_FUSE_GROUPS_H

#include "fuse/base/fuse_api.h"
#include "fuse/cluster/each_broker.h"
#include "fuse/cluster/topics.h"
#include "lib/client/positions.h"

struct mount;

/* What a program is told (positive errno) for what became of a request to a coordinator (G3). */
int group_errno(int rc, enum kerr err);

/* ---- who uses a group on this mount (group_users.c) ---- */
/* An open file of as/, as far as others have to know of it. */
struct group_user {
    const char *group;
    const struct topic *topic;
    int32_t partition; /* -1: a member */
    bool closing;      /* it takes no more; a commit may be on its way, or the group to be left */
    bool lost;         /* its position is others' by now (A6 of reader.h) */
    LIST_ENTRY(group_user) link; /* mount->group_users */
};
void group_user_begin(struct mount *m, struct group_user *u);
void group_user_end(struct group_user *u);

/* Files of as/ that were closed may still have a commit on its way, or a group to leave. Who comes next on this mount
 * waits for that, so that it sees what they did. */
struct group_wait {
    const char *group; /* kept until cb */
    /* rc 0, or -ECANCELED: the mount ends. It may run before group_wait returns. */
    void (*cb)(struct group_wait *w, int rc);
    TAILQ_ENTRY(group_wait) link; /* private */
};
void group_wait(struct mount *m, struct group_wait *w);
void group_waits_go(struct mount *m, const char *group); /* somebody has ended */
void group_waits_cancel(struct mount *m); /* the mount ends */
/* Has somebody on this mount as/G/pN of this topic open? It would commit over whatever is written. partition
 * -1: any. */
bool group_is_read(const struct mount *m, const char *group, const struct topic *t, int32_t partition);

/* ---- asking (groups.c) ---- */
/* The positions of a group in the partitions [first, first + n) of a topic. */
struct group_ask {
    const char *group, *topic; /* kept until cb */
    int32_t first, n;
    /* rc 0 or -errno for programs; positions in order of partition, valid during cb, offset -1: none */
    void (*cb)(struct group_ask *a, int rc, const struct position *p, size_t n);
    /* private */
    struct mount *mount;
    struct group_wait wait;
    struct positions_fetch fetch;
    struct position *wanted;
};
void group_ask(struct mount *m, struct group_ask *a);

/* Who is in a group. */
struct group_look {
    const char *group; /* kept until cb */
    /* rc 0 or -errno for programs; it: valid during cb */
    void (*cb)(struct group_look *l, int rc, const struct describe_groups_response_groups *it);
    /* private */
    struct client_call call;
    struct describe_groups_request body;
    struct kstr name;
};
void group_look(struct mount *m, struct group_look *l);
/* Its positions are not free to be moved (G3). */
bool group_has_members(const struct describe_groups_response_groups *it);

/* The groups that have positions in a topic of n partitions. */
struct groups_list {
    const char *topic; /* kept until cb */
    int32_t n_partitions;
    void (*cb)(struct groups_list *l, int rc); /* rc 0 or -errno; the names are the callee's now */
    char **names;                              /* in no order */
    size_t n;
    /* private */
    struct mount *mount;
    struct each_broker ask;
    struct list_groups_request body;
    size_t asked, asking;
    int rc;
};
void groups_list(struct mount *m, struct groups_list *l);

#endif
