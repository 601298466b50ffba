/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JoinGroup: who is this, may it join, and does its joining start a rebalance? The rules for members without an id, for
 * those that return, and for static members (KIP-345, KIP-814), whose restart is no rebalance while nothing changes. What
 * has to last is handed to group_persist and answered when it does. Pure; the caller holds the group's lock.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

void group_answer_join_error(struct group *g, void *waiter, enum kerr err, const char *member_id)
{
    struct group_join_answer a = { .err = err, .generation = -1, .leader = "", .member_id = member_id };

    g->env->answer_join(g, waiter, &a);
}

/* The current generation's answer; only the leader learns who the members are. */
void group_answer_join(struct group *g, struct group_member *m, void *waiter)
{
    struct group_join_answer a = {
        .err = KERR_NONE,
        .generation = g->generation,
        .protocol_type = g->protocol_type,
        .protocol = g->protocol,
        .leader = g->leader,
        .member_id = m->id,
        .members_of = group_member_leads(g, m) ? g : NULL,
    };

    KINVARIANT("G3", g->leader != NULL);
    g->env->answer_join(g, waiter, &a);
}

static void join_and_rebalance(struct group *g, struct group_member *m, void *waiter, int64_t now_ms)
{
    group_park_join(g, m, waiter);
    if (g->state != GROUP_PREPARING)
        group_prepare(g, now_ms);
    group_try_complete_join(g, now_ms);
}

static void join_new_member(struct group *g, const struct group_join *rq, const char *id, void *waiter,
                            int64_t now_ms)
{
    struct group_member *m = group_member_add(g, rq, id, now_ms);

    if (g->initial_left_ms >= 0)
        g->joined_in_delay = true;
    join_and_rebalance(g, m, waiter, now_ms);
}

static void join_updated_member(struct group *g, struct group_member *m, const struct group_join *rq,
                                void *waiter, int64_t now_ms)
{
    group_member_update(g, m, rq);
    group_member_alive(g, m, now_ms);
    join_and_rebalance(g, m, waiter, now_ms);
}

/* ---- KIP-345: a known instance comes back without an id ---- */

void group_return_forget(struct group_member *m)
{
    m->return_seq = 0;
    free(m->former_id);
    m->former_id = NULL;
}

/* Nothing changes for the others, so there is no rebalance; but the new id must be durable before the member
 * uses it, or a restarted coordinator would fence it. */
static void return_quietly(struct group *g, struct group_member *m, const struct group_join *rq,
                           const char *former_id, void *waiter)
{
    group_park_join(g, m, waiter);
    m->awaits_sync = false; /* what its former id had still to sync: its session watches over it now */
    m->former_id = xstrdup(former_id);
    m->can_skip_assignment = rq->can_skip_assignment;
    m->return_seq = group_persist(g);
}

/* An old client that sees itself leading would assign anew, and nobody would get that: so it is told its
 * former id as leader. A new one is told to skip the assignment (KIP-814). */
static void answer_return(struct group *g, struct group_member *m)
{
    bool leads = group_member_leads(g, m);
    bool skips = leads && m->can_skip_assignment;
    CLEANUP(freep) char *former_id = take(&m->former_id);
    struct group_join_answer a = {
        .err = KERR_NONE,
        .generation = g->generation,
        .protocol_type = g->protocol_type,
        .protocol = g->protocol,
        .leader = leads && !skips ? former_id : g->leader,
        .skip_assignment = skips,
        .member_id = m->id,
        .members_of = skips ? g : NULL,
    };

    g->env->answer_join(g, group_unpark_join(g, m), &a);
}

void group_returns_persisted(struct group *g, int64_t seq, enum kerr err, int64_t now_ms)
{
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        if (m->return_seq != seq)
            continue;
        KINVARIANT("G2", m->parked_join != NULL);
        group_member_alive(g, m, now_ms);
        if (err == KERR_NONE)
            answer_return(g, m);
        else
            group_answer_join_error(g, group_unpark_join(g, m), err, "");
    }
}

/* Whoever used the former id is fenced. */
static void join_static_again(struct group *g, struct group_member *m, const struct group_join *rq,
                              void *waiter, int64_t now_ms)
{
    if (m->parked_join != NULL)
        group_answer_join_error(g, group_unpark_join(g, m), KERR_FENCED_INSTANCE_ID, m->id);
    if (m->parked_sync != NULL)
        group_answer_sync(g, m, take(&m->parked_sync), KERR_FENCED_INSTANCE_ID);

    CLEANUP(freep) char *former_id = xstrdup(m->id);
    group_member_rename(g, m, rq->new_member_id);
    if (g->state != GROUP_STABLE) {
        join_updated_member(g, m, rq, waiter, now_ms);
        return;
    }
    group_member_update(g, m, rq);
    group_member_alive(g, m, now_ms);
    CLEANUP(freep) char *next = group_protocol_choose(g);
    if (g->protocol != NULL && strcmp(g->protocol, next) == 0)
        return_quietly(g, m, rq, former_id, waiter);
    else
        join_and_rebalance(g, m, waiter, now_ms);
}

/* ---- the request ---- */

static void join_without_id(struct group *g, const struct group_join *rq, struct group_member *known,
                            void *waiter, int64_t now_ms)
{
    if (known != NULL) {
        join_static_again(g, known, rq, waiter, now_ms);
    } else if (rq->instance_id == NULL && rq->id_required) {
        group_pending_add(g, rq->new_member_id, now_ms + rq->session_timeout_ms);
        group_answer_join_error(g, waiter, KERR_MEMBER_ID_REQUIRED, rq->new_member_id);
    } else {
        join_new_member(g, rq, rq->new_member_id, waiter, now_ms);
    }
}

/* A member that lost its answer gets it again; only news, or the leader's own wish, start a rebalance. */
static void join_known_member(struct group *g, struct group_member *m, const struct group_join *rq,
                              void *waiter, int64_t now_ms)
{
    bool same = group_member_same_protocols(m, rq);
    bool repeat =
        same && (g->state == GROUP_COMPLETING || (g->state == GROUP_STABLE && !group_member_leads(g, m)));

    KCHECK(g->state == GROUP_PREPARING || g->state == GROUP_COMPLETING || g->state == GROUP_STABLE);
    if (repeat) {
        group_member_alive(g, m, now_ms);
        group_answer_join(g, m, waiter);
        return;
    }
    join_updated_member(g, m, rq, waiter, now_ms);
}

static void join_with_id(struct group *g, const struct group_join *rq, void *waiter, int64_t now_ms)
{
    struct group_member *m;

    if (rq->instance_id == NULL && group_pending_remove(g, rq->member_id)) {
        join_new_member(g, rq, rq->member_id, waiter, now_ms);
        return;
    }
    enum kerr err = group_member_check(g, rq->member_id, rq->instance_id, &m);
    if (err != KERR_NONE)
        group_answer_join_error(g, waiter, err, rq->member_id);
    else
        join_known_member(g, m, rq, waiter, now_ms);
}

/* While a group rebalances, those who have joined count, so that a group that is too large loses those who
 * come last. */
static bool group_has_room(const struct group *g, const struct group_member *self)
{
    if (g->state == GROUP_PREPARING)
        return (self != NULL && self->parked_join != NULL) || g->n_parked_joins < g->env->size_max;
    return self != NULL || group_n_members(g) < g->env->size_max;
}

void group_join(struct group *g, const struct group_join *rq, void *waiter, int64_t now_ms)
{
    struct group_member *self = rq->member_id[0] != '\0'  ? group_member_find(g, rq->member_id)
                                : rq->instance_id != NULL ? group_instance_find(g, rq->instance_id)
                                                          : NULL;

    KCHECK(waiter != NULL);
    if (g->state == GROUP_DEAD) {
        group_answer_join_error(g, waiter, KERR_COORDINATOR_NOT_AVAILABLE, rq->member_id);
    } else if (!group_has_room(g, self) || !group_bytes_fit(g, rq, self)) {
        group_answer_join_error(g, waiter, KERR_GROUP_MAX_SIZE_REACHED, "");
        if (self != NULL)
            group_expel(g, self, KERR_GROUP_MAX_SIZE_REACHED, now_ms);
    } else if (!group_protocols_fit(g, rq, self)) {
        group_answer_join_error(g, waiter, KERR_INCONSISTENT_GROUP_PROTOCOL, rq->member_id);
    } else if (rq->member_id[0] == '\0') {
        join_without_id(g, rq, self, waiter, now_ms);
    } else {
        join_with_id(g, rq, waiter, now_ms);
    }
}
