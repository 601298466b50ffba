/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the start of a rebalance to the answers of the joins. Pure; under the shard's lock.
 *
 * group_prepare() begins one. It is over when every member has a join parked and nobody who was just given an id is
 * missing (group_try_complete_join), or when the longest rebalance time-out of the members is over
 * (group_rebalance_tick); an empty group's first one waits the initial delay besides, and again for each time
 * somebody came in it (KIP-134), never longer than the time-out. Who has not come back is dropped, static members
 * are not (KIP-345). Then the generation grows by one, a protocol that all offer is chosen, and each parked join has
 * its answer. A member joins twice: the later join takes the earlier one's place, which is answered.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

static int32_t group_rebalance_timeout_ms(const struct group *g)
{
    int32_t longest = 0;

    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next)
        longest = MAX(longest, m->rebalance_timeout_ms);
    return longest;
}

/* A second join of the same member takes the place of the first. */
void group_park_join(struct group *g, struct group_member *m, void *waiter)
{
    if (m->parked_join != NULL)
        group_answer_join_error(g, group_unpark_join(g, m), KERR_REBALANCE_IN_PROGRESS, m->id);
    m->parked_join = waiter;
    g->n_parked_joins++;
}

void *group_unpark_join(struct group *g, struct group_member *m)
{
    void *waiter = take(&m->parked_join);

    g->n_parked_joins -= waiter != NULL;
    KINVARIANT("G5", g->n_parked_joins >= 0);
    group_return_forget(m);
    return waiter;
}

static void group_rebalance_due_at(struct group *g, int64_t due_ms)
{
    g->rebalance_due_ms = due_ms;
    group_due_at(g, due_ms);
}

/* KIP-134: the first members of an empty group wait a little for others, so that they share one rebalance. */
static void group_set_initial_delay(struct group *g, int64_t now_ms)
{
    int32_t timeout = group_rebalance_timeout_ms(g);
    int32_t delay = MIN(g->env->initial_delay_ms, timeout);

    g->initial_left_ms = timeout - delay;
    g->joined_in_delay = false;
    group_rebalance_due_at(g, now_ms + delay);
}

void group_prepare(struct group *g, int64_t now_ms)
{
    bool was_empty = g->state == GROUP_EMPTY;

    if (g->state == GROUP_COMPLETING)
        group_syncs_fail(g, KERR_REBALANCE_IN_PROGRESS, now_ms);
    g->sync_due_ms = 0;
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        m->awaits_sync = false;
        group_return_forget(m); /* it has joined the new generation instead */
    }
    if (g->state != GROUP_PREPARING)
        group_move(g, GROUP_PREPARING);
    if (was_empty && g->env->initial_delay_ms > 0)
        group_set_initial_delay(g, now_ms);
    else
        group_rebalance_due_at(g, now_ms + group_rebalance_timeout_ms(g));
    group_try_complete_join(g, now_ms);
}

static bool all_have_joined(const struct group *g)
{
    return g->n_parked_joins == group_n_members(g) && g->pending == NULL;
}

/* Dynamic members that did not come back are gone; static ones stay until their session ends (KIP-345). */
static void group_drop_stragglers(struct group *g)
{
    struct group_member *m, *next;

    HASH_ITER (hh, g->members, m, next)
        if (m->parked_join == NULL && m->instance_id == NULL)
            group_member_drop(g, m, KERR_UNKNOWN_MEMBER_ID);
}

/* Someone who is here must lead. False when only static members are left and none of them has rejoined. */
static bool group_elect_leader(struct group *g)
{
    struct group_member *leader = g->leader != NULL ? group_member_find(g, g->leader) : NULL;

    if (leader != NULL && leader->parked_join != NULL)
        return true;
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next)
        if (m->parked_join != NULL) {
            free(g->leader);
            g->leader = xstrdup(m->id);
            return true;
        }
    return false;
}

static void group_become_empty(struct group *g)
{
    g->generation++;
    free(g->protocol);
    g->protocol = NULL;
    group_move(g, GROUP_EMPTY);
    group_persist(g);
}

static void group_answer_all_joins(struct group *g, int64_t now_ms)
{
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        if (m->parked_join == NULL)
            continue;
        m->is_new = false;
        m->awaits_sync = true;
        group_member_alive(g, m, now_ms);
        group_answer_join(g, m, group_unpark_join(g, m));
    }
}

static void group_complete_join(struct group *g, int64_t now_ms)
{
    KCHECK(g->state == GROUP_PREPARING);
    group_drop_stragglers(g);
    g->initial_left_ms = -1;
    g->rebalance_due_ms = 0;
    if (g->members == NULL) {
        group_become_empty(g);
        return;
    }
    if (!group_elect_leader(g)) { /* wait for one of the static members, or for their sessions to end */
        group_rebalance_due_at(g, now_ms + MAX(group_rebalance_timeout_ms(g), 1));
        return;
    }
    g->generation++;
    free(g->protocol);
    g->protocol = group_protocol_choose(g);
    group_move(g, GROUP_COMPLETING);
    g->sync_due_ms = now_ms + group_rebalance_timeout_ms(g);
    group_due_at(g, g->sync_due_ms);
    group_answer_all_joins(g, now_ms);
}

void group_try_complete_join(struct group *g, int64_t now_ms)
{
    if (g->state != GROUP_PREPARING || g->initial_left_ms >= 0)
        return; /* the initial delay is waited out, whoever is here */
    if (all_have_joined(g))
        group_complete_join(g, now_ms);
}

void group_rebalance_tick(struct group *g, int64_t now_ms)
{
    if (g->state != GROUP_PREPARING || g->rebalance_due_ms == 0 || g->rebalance_due_ms > now_ms)
        return;
    if (g->initial_left_ms > 0 && g->joined_in_delay) {
        int64_t more = MIN(g->env->initial_delay_ms, g->initial_left_ms);
        g->initial_left_ms -= more;
        g->joined_in_delay = false;
        group_rebalance_due_at(g, now_ms + more);
        return;
    }
    group_complete_join(g, now_ms);
}

/* The only way out of a living group: whatever the member has parked is answered first (G5). */
void group_member_drop(struct group *g, struct group_member *m, enum kerr err)
{
    if (m->parked_join != NULL)
        group_answer_join_error(g, group_unpark_join(g, m), err, "");
    if (m->parked_sync != NULL)
        group_answer_sync(g, m, take(&m->parked_sync), err);
    group_member_remove(g, m);
}

/* Leave and expiry: the member goes, and the others rebalance. */
void group_expel(struct group *g, struct group_member *m, enum kerr err, int64_t now_ms)
{
    group_member_drop(g, m, err);
    if (g->state == GROUP_STABLE || g->state == GROUP_COMPLETING)
        group_prepare(g, now_ms);
    else
        group_try_complete_join(g, now_ms); /* it may have been the last one waited for */
}
