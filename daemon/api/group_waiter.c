/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that waits for its group. It outlives its request: when the client has gone, waiter_cancel() takes the request
 * away on the loop, and the answer goes nowhere. Each waiter is answered exactly once (G5) and is freed by that answer
 * alone.
 */
#include "daemon/api/group_api.h"

#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

/* The client has gone. The answer will come, and go nowhere. */
static void waiter_cancel(struct request *r)
{
    struct group_waiter *w = r->op;

    w->r = NULL;
    request_drop(r);
}

static void waiter_reply(struct task *t)
{
    struct group_waiter *w = container_of(t, struct group_waiter, task);

    if (w->r != NULL)
        request_reply(w->r, w->response);
    arena_done(&w->arena);
    free(w);
}

struct group_waiter *group_waiter_new(struct request *r)
{
    struct group_waiter *w = xcalloc(1, sizeof *w);

    w->r = r;
    w->loop = r->loop;
    w->api_version = r->api_version;
    w->task.cb = waiter_reply;
    arena_init(&w->arena);
    r->op = w;
    r->cancel = waiter_cancel;
    return w;
}

void group_waiter_answer(struct group_waiter *w)
{
    KINVARIANT("G5", w->response != NULL && !w->task.queued);
    loop_post(w->loop, &w->task);
}
