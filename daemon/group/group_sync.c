/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SyncGroup: the leader's assignment comes in, is made durable, and goes out to all; who asks before it is there waits, who
 * asks after it has it at once. When it cannot be stored, all are told to begin anew. Pure; the caller holds the group's
 * lock.
 */
#include <string.h>

#include "daemon/group/group_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

void group_answer_sync(struct group *g, struct group_member *m, void *waiter, enum kerr err)
{
    struct group_sync_answer a = { .err = err };

    if (err == KERR_NONE) {
        a.protocol_type = g->protocol_type;
        a.protocol = g->protocol;
        a.assignment = m->assignment;
        a.assignment_bytes = m->assignment_bytes;
    }
    g->env->answer_sync(g, waiter, &a);
}

static void answer_sync_error(struct group *g, void *waiter, enum kerr err)
{
    struct group_sync_answer a = { .err = err };

    g->env->answer_sync(g, waiter, &a);
}

/* A parked member could not expire: its session begins anew. */
static void member_unpark_sync(struct group *g, struct group_member *m, enum kerr err, int64_t now_ms)
{
    if (m->parked_sync == NULL)
        return;
    group_member_alive(g, m, now_ms);
    group_answer_sync(g, m, take(&m->parked_sync), err);
}

void group_syncs_fail(struct group *g, enum kerr err, int64_t now_ms)
{
    g->assigning_seq = 0;
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        group_member_assign(m, NULL, 0);
        member_unpark_sync(g, m, err, now_ms);
    }
}

static bool named_otherwise(const char *asked, const char *have)
{
    return asked != NULL && have != NULL && strcmp(asked, have) != 0;
}

static bool assignments_fit(const struct group_sync *rq)
{
    int64_t n = 0;

    for (int32_t i = 0; i < rq->n_assignments; i++)
        n += MAX(rq->assignments[i].n, 0);
    return n <= GROUP_BYTES_MAX;
}

static void sync_take_assignments(struct group *g, const struct group_sync *rq)
{
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next)
        group_member_assign(m, NULL, 0); /* whom the leader forgot gets nothing */
    for (int32_t i = 0; i < rq->n_assignments; i++) {
        struct group_member *m = NULL;
        if (rq->member_ids[i].n > 0)
            HASH_FIND(hh, g->members, rq->member_ids[i].p, (unsigned)rq->member_ids[i].n, m);
        if (m != NULL)
            group_member_assign(m, rq->assignments[i].p, rq->assignments[i].n);
    }
}

static void sync_park(struct group *g, struct group_member *m, const struct group_sync *rq, void *waiter)
{
    if (m->parked_sync != NULL)
        group_answer_sync(g, m, take(&m->parked_sync), KERR_REBALANCE_IN_PROGRESS);
    m->parked_sync = waiter;
    m->awaits_sync = false;
    if (group_member_leads(g, m) && g->assigning_seq == 0) {
        sync_take_assignments(g, rq);
        g->assigning_seq = group_persist(g);
    }
}

void group_sync(struct group *g, const struct group_sync *rq, void *waiter, int64_t now_ms)
{
    struct group_member *m;

    KCHECK(waiter != NULL);
    if (g->state == GROUP_DEAD) {
        answer_sync_error(g, waiter, KERR_COORDINATOR_NOT_AVAILABLE);
        return;
    }
    enum kerr err = group_member_check(g, rq->member_id, rq->instance_id, &m);
    if (err == KERR_NONE && rq->generation != g->generation)
        err = KERR_ILLEGAL_GENERATION;
    if (err == KERR_NONE &&
        (named_otherwise(rq->protocol_type, g->protocol_type) || named_otherwise(rq->protocol, g->protocol)))
        err = KERR_INCONSISTENT_GROUP_PROTOCOL;
    if (err == KERR_NONE && g->state == GROUP_PREPARING)
        err = KERR_REBALANCE_IN_PROGRESS;
    if (err == KERR_NONE && !assignments_fit(rq))
        err = KERR_GROUP_MAX_SIZE_REACHED;
    if (err != KERR_NONE) {
        answer_sync_error(g, waiter, err);
        return;
    }
    KCHECK(g->state == GROUP_COMPLETING || g->state == GROUP_STABLE);
    group_member_alive(g, m, now_ms);
    if (g->state == GROUP_STABLE) {
        m->awaits_sync = false;
        group_answer_sync(g, m, waiter, KERR_NONE);
    } else {
        sync_park(g, m, rq, waiter);
    }
}

void group_assignment_persisted(struct group *g, enum kerr err, int64_t now_ms)
{
    g->assigning_seq = 0;
    if (err != KERR_NONE) {
        group_syncs_fail(g, err, now_ms);
        group_prepare(g, now_ms);
        return;
    }
    group_move(g, GROUP_STABLE);
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next)
        member_unpark_sync(g, m, KERR_NONE, now_ms);
}
