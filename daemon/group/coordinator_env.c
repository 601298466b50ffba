/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the groups' state machines ask of the world (struct group_env): the wall clock, answers, records; and the
 * requests that wait for a group, each as a struct group_waiter.
 *
 * The functions of the environment run under the shard's lock, on whichever thread is in the group, and must not
 * block: a record is handed to group_write() and comes back through on_persisted(), an answer is encoded into the
 * waiter's own arena and sent on the request's loop by its task. So a waiter outlives its request: when the client
 * has gone, waiter_cancel() takes the request away on the loop, and the answer goes nowhere. Each waiter is
 * answered exactly once (G5) and is freed by that answer alone.
 */
#include <stdlib.h>

#include "daemon/broker.h"
#include "daemon/group/coordinator_int.h"
#include "daemon/group/group_log.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum {
    NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000, /* Kafka's */
    ALL_GROUPS_BYTES_MAX = 1 << 29,        /* a million members with ordinary subscriptions */
};

static int64_t env_wall_ms(struct group *g)
{
    (void)g;
    return clock_wall_ms();
}

static void env_answer_join(struct group *g, void *waiter, const struct group_join_answer *a)
{
    (void)g;
    join_group_respond(waiter, a);
    group_waiter_answer(waiter);
}

static void env_answer_sync(struct group *g, void *waiter, const struct group_sync_answer *a)
{
    (void)g;
    sync_group_respond(waiter, a);
    group_waiter_answer(waiter);
}

static void on_persisted(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    int64_t *seq = arg;

    (void)base_offset;
    if (err == KERR_INVALID_COMMIT_OFFSET_SIZE) {
        log_error(
            "group %s: its %d members do not fit into one record; raise max.message.bytes of " OFFSETS_TOPIC,
            e->group->id, group_n_members(e->group));
        err = KERR_UNKNOWN_SERVER_ERROR;
    }
    if (e->group->state != GROUP_DEAD)
        group_persisted(e->group, *seq, err, clock_mono_ms());
    shard_retime(e->shard, group_due_ms(e->group));
    free(seq);
}

static void env_persist(struct group *g, int64_t seq)
{
    struct group_entry *e = g->user;
    struct batch_builder b;
    int64_t *arg = xmalloc(sizeof *arg);

    *arg = seq;
    batch_builder_init(&b);
    group_log_add_group(&b, g, clock_wall_ms());
    group_write(e, &b, on_persisted, arg);
    e->has_record = true;
    batch_builder_done(&b);
}

void coordinator_env_init(struct group_env *env, const struct broker *b, atomic_llong *all_bytes)
{
    *env = (struct group_env){
        .wall_ms = env_wall_ms,
        .answer_join = env_answer_join,
        .answer_sync = env_answer_sync,
        .persist = env_persist,
        .initial_delay_ms = b->config.group_initial_rebalance_delay_ms,
        .new_member_timeout_ms = NEW_MEMBER_TIMEOUT_MS,
        .size_max = b->config.group_max_size,
        .all_bytes = all_bytes,
        .all_bytes_max = ALL_GROUPS_BYTES_MAX,
    };
}

/* ---- parked requests ---- */

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
