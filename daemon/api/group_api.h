/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers of the group APIs have in common. */
#ifndef KLOG_DAEMON_GROUP_API_H
#define KLOG_DAEMON_GROUP_API_H

#include "daemon/group/coordinator.h"
#include "daemon/meta/cluster.h"
#include "daemon/server/request.h"

/* AclOperation bits of a group, which everybody has while there are no ACLs: read, delete, describe. */
enum { GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 };

/* A C string in the arena; NULL for null. */
#define NO_TRANSACTIONS "this broker has no transactions: use a producer without transactional.id"

static inline const char *group_text(struct arena *a, struct kstr s)
{
    return s.n < 0 ? NULL : arena_printf(a, "%.*s", KSTR_FMT(s));
}

/* As coordinator_enter, but an empty group id is refused: only positions may be kept under that. */
static inline enum kerr group_enter_named(struct coordinator *c, struct kstr group_id, bool create,
                                          struct group_lease *ret)
{
    return group_id.n == 0 ? KERR_INVALID_GROUP_ID : coordinator_enter(c, group_id, create, ret);
}

/* The topic that a request names, or means by its id where it has one; NULL and why, when there is none. */
static inline const struct cluster_topic *group_topic(const struct cluster_image *img, bool by_id, struct kstr name,
                                                      const struct uuid *id, enum kerr *ret_err)
{
    const struct cluster_topic *t = by_id ? cluster_image_topic_by_id(img, id) : cluster_image_topic(img, name);

    if (t == NULL)
        *ret_err = by_id ? KERR_UNKNOWN_TOPIC_ID : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    return t;
}

/* Answers of more than this are made on a worker, and so are those about more names. */
enum { GROUP_ON_LOOP_BYTES = 1 << 20, GROUP_ON_LOOP_NAMES = 1000 };
#define GROUP_ANSWER_TOO_LARGE "the answer would be too large: ask for fewer at once"

/* ---- parked requests: group_waiter.c ---- */
/* A request that waits for its group. The response is built in the waiter's own arena, under the shard's
 * lock, by any thread; then it is sent on the request's loop, if the client is still there. */
struct group_waiter {
    struct request *r; /* NULL once the client has gone; the loop's thread only */
    struct loop *loop;
    int16_t api_version;
    struct task task;
    struct arena arena;
    void *response;
};
/* The handler has left the request to it. */
struct group_waiter *group_waiter_new(struct request *r);
/* The answer is in w->response: sends it, frees w. Any thread. */
void group_waiter_answer(struct group_waiter *w);
/* The answers of a group's state machine to its waiters, for coordinator_new(); in join_group.c and sync_group.c. */
void join_group_answer(void *waiter, const struct group_join_answer *a);
void sync_group_answer(void *waiter, const struct group_sync_answer *a);

static inline bool cluster_image_has_partition(const struct cluster_image *img, struct kstr topic,
                                               int32_t partition)
{
    const struct cluster_topic *t = cluster_image_topic(img, topic);

    return t != NULL && partition >= 0 && partition < t->n_partitions;
}

#endif
