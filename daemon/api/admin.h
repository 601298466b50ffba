/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What requests that change the cluster have in common: many changes at once, one answer when all have ended,
 * the request's timeout has passed or the broker stops. On the session's loop.
 */
#ifndef KLOG_DAEMON_ADMIN_H
#define KLOG_DAEMON_ADMIN_H

#include "daemon/meta/cluster.h"
#include "daemon/server/request.h"

/* AclOperation bits that everybody has while there are no ACLs. */
enum { TOPIC_OPERATIONS = 0x0df8, CLUSTER_OPERATIONS = 0x1fa0 };

enum { ADMIN_ITEMS_MAX = 10000 }; /* topics, resources of one request: each costs memory while it waits */

struct admin;
struct admin_ops {
    /* What became of item i. ch: the change as it ended, NULL when it had none or has not ended yet. text may
     * be NULL and is valid during the call. */
    void (*result)(struct admin *a, int32_t i, enum kerr err, const char *text,
                   const struct cluster_change *ch);
    /* Every item has its result: send the answer. */
    void (*reply)(struct admin *a);
};
struct admin {
    struct request *r;
    const struct admin_ops *ops;
    void *rsp; /* the response being filled, in the request's arena */
    /* private */
    bool answered;
    int32_t n, n_left; /* n_left: items without result, and one for admin_begin */
    bool *done;
    int32_t n_refs; /* changes that have not come back, and one */
    struct timer timer;
};

/* Ends a request with more items than may be; then it is gone. */
bool admin_refuses(struct request *r, int32_t n);
/* duplicate[i]: names[i] is there more than once. In the arena. */
const bool *admin_duplicates(struct arena *a, const struct kstr *names, int32_t n);
/* repeated[i]: names[i] is there before i already. In the arena. */
const bool *admin_repeated(struct arena *a, const struct kstr *names, int32_t n);

/* n items; each then gets admin_fail() or admin_change(), and last comes admin_wait(). */
struct admin *admin_begin(struct request *r, const struct admin_ops *ops, void *rsp, int32_t n);
void admin_fail(struct admin *a, int32_t i, enum kerr err, const char *text);
/* start: cluster_create_topic and the like. Takes ch. */
void admin_change(struct admin *a, int32_t i, struct cluster_change *ch,
                  void (*start)(struct cluster *, struct cluster_change *));
void admin_wait(struct admin *a, int32_t timeout_ms);

/* Where the client of r is told to find b; false: nowhere that it could reach. *ret_host is valid as long as both the image
 * and the request. */
bool answer_broker_address(struct request *r, const struct cluster_broker *b, const char **ret_host, int32_t *ret_port);

/* text as a protocol string in the request's arena; null for NULL, and for success. */
struct kstr admin_text(struct admin *a, enum kerr err, const char *text);

#endif
