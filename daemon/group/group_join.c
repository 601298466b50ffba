/* SPDX-License-Identifier: Apache-2.0 */
/* JoinGroup: who is this, may it join, and does its joining start a rebalance? */
#include <string.h>

#include "daemon/group/group_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

void group_answer_join_error(struct group *g, void *waiter, enum kerr err, const char *member_id)
{
    struct group_join_answer a = { .err = err, .generation = -1, .leader = "", .member_id = member_id };

    g->env->answer_join(g, waiter, &a);
}

static bool member_leads(const struct group *g, const struct group_member *m)
{
    return g->leader != NULL && strcmp(g->leader, m->id) == 0;
}

/* The current generation's answer; only the leader learns who the members are. */
void group_answer_join(struct group *g, struct group_member *m, void *waiter, bool skip_assignment)
{
    struct group_join_answer a = {
        .err = KERR_NONE,
        .generation = g->generation,
        .protocol_type = g->protocol_type,
        .protocol = g->protocol,
        .leader = g->leader != NULL ? g->leader : "",
        .skip_assignment = skip_assignment,
        .member_id = m->id,
        .members_of = member_leads(g, m) ? g : NULL,
    };

    g->env->answer_join(g, waiter, &a);
}

static void join_and_rebalance(struct group *g, struct group_member *m, void *waiter, int64_t now_ms)
{
    group_park_join(g, m, waiter);
    if (g->state != GROUP_PREPARING)
        group_prepare(g, now_ms);
    group_try_complete_join(g, now_ms);
}

static void join_new_member(struct group *g, const struct group_join *rq, const char *id, void *waiter, int64_t now_ms)
{
    struct group_member *m = group_member_add(g, rq, id, now_ms);

    if (g->initial_left_ms >= 0)
        g->joined_in_delay = true;
    join_and_rebalance(g, m, waiter, now_ms);
}

static void join_updated_member(struct group *g, struct group_member *m, const struct group_join *rq, void *waiter,
                                int64_t now_ms)
{
    group_member_update(m, rq);
    group_member_alive(m, now_ms);
    join_and_rebalance(g, m, waiter, now_ms);
}

/* KIP-345: a known instance came back without an id. Whoever used the old id is fenced. */
static void join_static_again(struct group *g, struct group_member *m, const struct group_join *rq, void *waiter,
                              int64_t now_ms)
{
    if (m->parked_join != NULL)
        group_answer_join_error(g, m->parked_join, KERR_FENCED_INSTANCE_ID, m->id);
    if (m->parked_sync != NULL)
        group_answer_sync(g, m, m->parked_sync, KERR_FENCED_INSTANCE_ID);
    m->parked_join = m->parked_sync = NULL;

    bool led = member_leads(g, m);
    CLEANUP(freep) char *old_id = xstrdup(m->id);
    group_member_rename(g, m, rq->new_member_id);

    if (g->state != GROUP_STABLE) {
        join_updated_member(g, m, rq, waiter, now_ms);
        return;
    }
    CLEANUP(freep) char *before = g->protocol != NULL ? xstrdup(g->protocol) : NULL;
    bool same = group_member_same_protocols(m, rq);
    group_member_update(m, rq);
    group_member_alive(m, now_ms);
    CLEANUP(freep) char *after = group_protocol_choose(g);
    if (before == NULL || strcmp(before, after) != 0 || (led && !same)) {
        join_and_rebalance(g, m, waiter, now_ms);
        return;
    }
    /* Nothing changes for the others: no rebalance. An old client that sees itself leading would assign anew, so it
     * is told the old id as leader; a new one is told to skip the assignment (KIP-814). */
    struct group_join_answer a = {
        .generation = g->generation,
        .protocol_type = g->protocol_type,
        .protocol = g->protocol,
        .leader = led && !rq->can_skip_assignment ? old_id : g->leader,
        .skip_assignment = led && rq->can_skip_assignment,
        .member_id = m->id,
        .members_of = led && rq->can_skip_assignment ? g : NULL,
    };
    g->env->persist(g);
    g->env->answer_join(g, waiter, &a);
}

static void join_without_id(struct group *g, const struct group_join *rq, void *waiter, int64_t now_ms)
{
    struct group_member *known = rq->instance_id != NULL ? group_static_find(g, rq->instance_id) : NULL;

    if (known != NULL) {
        join_static_again(g, known, rq, waiter, now_ms);
    } else if (rq->instance_id == NULL && rq->id_required) {
        group_pending_add(g, rq->new_member_id, now_ms + rq->session_timeout_ms);
        group_answer_join_error(g, waiter, KERR_MEMBER_ID_REQUIRED, rq->new_member_id);
    } else {
        join_new_member(g, rq, rq->new_member_id, waiter, now_ms);
    }
}

/* A member the group knows; by state: docs say which answers repeat and which start a rebalance. */
static void join_known_member(struct group *g, struct group_member *m, const struct group_join *rq, void *waiter,
                              int64_t now_ms)
{
    bool same = group_member_same_protocols(m, rq);
    bool repeat = same && (g->state == GROUP_COMPLETING || (g->state == GROUP_STABLE && !member_leads(g, m)));

    KCHECK(g->state == GROUP_PREPARING || g->state == GROUP_COMPLETING || g->state == GROUP_STABLE);
    if (repeat) {
        group_member_alive(m, now_ms);
        group_answer_join(g, m, waiter, false);
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

static bool group_is_full(const struct group *g, const struct group_join *rq)
{
    if (group_member_find(g, rq->member_id) != NULL)
        return false;
    if (rq->instance_id != NULL && group_static_find(g, rq->instance_id) != NULL)
        return false;
    return group_n_members(g) >= g->env->size_max;
}

void group_join(struct group *g, const struct group_join *rq, void *waiter, int64_t now_ms)
{
    KCHECK(waiter != NULL);
    if (g->state == GROUP_DEAD)
        group_answer_join_error(g, waiter, KERR_COORDINATOR_NOT_AVAILABLE, rq->member_id);
    else if (group_is_full(g, rq))
        group_answer_join_error(g, waiter, KERR_GROUP_MAX_SIZE_REACHED, rq->member_id);
    else if (!group_protocols_fit(g, rq))
        group_answer_join_error(g, waiter, KERR_INCONSISTENT_GROUP_PROTOCOL, rq->member_id);
    else if (rq->member_id[0] == '\0')
        join_without_id(g, rq, waiter, now_ms);
    else
        join_with_id(g, rq, waiter, now_ms);
}
