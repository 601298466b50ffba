/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of registers that have nothing to do with each other, put together into few multis: after a broker died a thousand
 * partitions' registers change at once, and a store that is elsewhere takes one change of fifty much faster than fifty of one.
 *
 * Each request ends as if it had been sent alone. One that stands in the way of those it was put together with is answered, and
 * the others are sent again without it; a second time each goes alone. All on the loop, callbacks as well.
 */
#ifndef KLOG_DAEMON_REGISTER_BATCH_H
#define KLOG_DAEMON_REGISTER_BATCH_H

#include <sys/queue.h>

#include "daemon/meta/registers.h"
#include "lib/loop/loop.h"

enum { REGISTER_BATCH_MAX = 64 }; /* requests in one multi */

/* The caller's, until cb; so are the operations, whose rc and new_version are set before. At most REGISTERS_MULTI_MAX / 2. */
struct register_request {
    struct register_op *ops;
    int n;
    void (*cb)(void *arg, int rc); /* as of registers_multi() */
    void *arg;
    int tries; /* ours */
    TAILQ_ENTRY(register_request) link;
};
TAILQ_HEAD(register_request_list, register_request);

struct register_batch {
    struct registers *registers;
    struct loop *loop;
    struct register_request_list waiting;
    struct task flush;
};

void register_batch_init(struct register_batch *b, struct registers *r, struct loop *lp);
/* Nothing may be under way. */
void register_batch_done(struct register_batch *b);
/* Sent at the end of this turn of the loop, with what else is added until then. */
void register_batch_add(struct register_batch *b, struct register_request *q);

#endif
