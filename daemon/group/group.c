/* SPDX-License-Identifier: Apache-2.0 */
/*
 *            join                     all joined, or time is up            leader's assignment written
 *   EMPTY ----------> PREPARING ------------------------------> COMPLETING --------------------------> STABLE
 *     ^   group_prepare  |  ^        group_complete_join            |          group_persisted           |
 *     +------------------+  +---------------------------------------+------------------------------------+
 *        nobody is left            join, leave, expiry: group_prepare
 *
 *   any ----> DEAD: group_unload
 */
#include "daemon/group/group.h"

#include <stdlib.h>

#include "daemon/group/group_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

#define TO(s) (1u << GROUP_##s)
static const uint8_t group_next[GROUP_STATES] = {
    [GROUP_EMPTY] = TO(PREPARING) | TO(STABLE) | TO(DEAD), /* STABLE: restored from the log */
    [GROUP_PREPARING] = TO(COMPLETING) | TO(EMPTY) | TO(DEAD),
    [GROUP_COMPLETING] = TO(STABLE) | TO(PREPARING) | TO(DEAD),
    [GROUP_STABLE] = TO(PREPARING) | TO(DEAD),
    [GROUP_DEAD] = 0,
};
#undef TO

static const char *const state_names[GROUP_STATES] = {
    [GROUP_EMPTY] = "Empty",
    [GROUP_PREPARING] = "PreparingRebalance",
    [GROUP_COMPLETING] = "CompletingRebalance",
    [GROUP_STABLE] = "Stable",
    [GROUP_DEAD] = "Dead",
};

const char *group_state_name(enum group_state s)
{
    KCHECK(s < GROUP_STATES);
    return state_names[s];
}

void group_move(struct group *g, enum group_state to)
{
    KINVARIANT("G1", group_next[g->state] & (1u << to));
    g->state = to;
    g->state_since_ms = g->env->wall_ms(g);
    KINVARIANT("G3", (to != GROUP_COMPLETING && to != GROUP_STABLE) ||
                         (g->leader != NULL && group_member_find(g, g->leader) != NULL));
}

int64_t group_persist(struct group *g)
{
    g->env->persist(g, ++g->persist_seq);
    return g->persist_seq;
}

/* Written or not: only those whom exactly this record concerns hear of it. */
void group_persisted(struct group *g, int64_t seq, enum kerr err, int64_t now_ms)
{
    KCHECK(seq > 0 && seq <= g->persist_seq);
    if (g->state == GROUP_STABLE)
        group_returns_persisted(g, seq, err, now_ms);
    else if (g->state == GROUP_COMPLETING && seq == g->assigning_seq)
        group_assignment_persisted(g, err, now_ms);
}

struct group *group_new(const char *id, const struct group_env *env, void *user)
{
    struct group *g = xcalloc(1, sizeof *g);

    g->id = xstrdup(id);
    g->env = env;
    g->user = user;
    g->state = GROUP_EMPTY;
    g->state_since_ms = env->wall_ms(g);
    g->initial_left_ms = -1;
    g->due_ms = INT64_MAX;
    return g;
}

void group_free(struct group *g)
{
    struct group_member *m, *next;

    if (g == NULL)
        return;
    HASH_ITER (hh, g->members, m, next)
        group_member_remove(g, m);
    group_pending_expire(g, INT64_MAX);
    KCHECK(g->offers == NULL && g->statics == NULL && g->n_parked_joins == 0 && g->bytes == 0);
    free(g->id);
    free(g->protocol_type);
    free(g->protocol);
    free(g->leader);
    free(g);
}

int32_t group_n_members(const struct group *g)
{
    return (int32_t)HASH_COUNT(g->members);
}

enum kerr group_heartbeat(struct group *g, const char *member_id, const char *instance_id, int32_t generation,
                          int64_t now_ms)
{
    struct group_member *m;

    if (g->state == GROUP_DEAD)
        return KERR_COORDINATOR_NOT_AVAILABLE;
    enum kerr err = group_member_check(g, member_id, instance_id, &m);
    if (err != KERR_NONE)
        return err;
    if (generation != g->generation)
        return KERR_ILLEGAL_GENERATION;
    KCHECK(g->state != GROUP_EMPTY);
    group_member_alive(g, m, now_ms);
    return g->state == GROUP_PREPARING ? KERR_REBALANCE_IN_PROGRESS : KERR_NONE;
}

enum kerr group_may_commit(struct group *g, const char *member_id, const char *instance_id,
                           int32_t generation, int64_t now_ms)
{
    struct group_member *m;

    if (g->state == GROUP_DEAD)
        return KERR_COORDINATOR_NOT_AVAILABLE;
    if (generation < 0 && g->state == GROUP_EMPTY)
        return KERR_NONE; /* a simple consumer, or a tool */
    enum kerr err = group_member_check(g, member_id, instance_id, &m);
    if (err != KERR_NONE)
        return err;
    if (generation != g->generation)
        return KERR_ILLEGAL_GENERATION;
    if (g->state == GROUP_COMPLETING)
        return KERR_REBALANCE_IN_PROGRESS;
    group_member_alive(g, m, now_ms);
    return KERR_NONE;
}

enum kerr group_leave(struct group *g, const char *member_id, const char *instance_id, int64_t now_ms)
{
    struct group_member *m;

    if (g->state == GROUP_DEAD)
        return KERR_COORDINATOR_NOT_AVAILABLE;
    if (instance_id == NULL && group_pending_remove(g, member_id)) {
        group_try_complete_join(g, now_ms); /* it may have been the last one waited for */
        return KERR_NONE;
    }
    if (instance_id != NULL && member_id[0] == '\0') {
        m = group_instance_find(g, instance_id);
        if (m == NULL)
            return KERR_UNKNOWN_MEMBER_ID;
    } else {
        enum kerr err = group_member_check(g, member_id, instance_id, &m);
        if (err != KERR_NONE)
            return err;
    }
    group_expel(g, m, KERR_UNKNOWN_MEMBER_ID, now_ms);
    return KERR_NONE;
}

/* ---- time ---- */

/* Old members live while a request of theirs is parked; a new one has new_member_timeout_ms for its first
 * join. */
static bool member_can_expire(const struct group_member *m)
{
    return m->is_new || (m->parked_join == NULL && m->parked_sync == NULL);
}

void group_due_at(struct group *g, int64_t due_ms)
{
    g->due_ms = MIN(g->due_ms, due_ms);
}

int64_t group_due_ms(const struct group *g)
{
    return g->due_ms;
}

static int64_t group_next_due_ms(const struct group *g)
{
    int64_t due = group_pending_due_ms(g);

    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next)
        if (member_can_expire(m))
            due = MIN(due, m->session_due_ms);
    if (g->rebalance_due_ms != 0)
        due = MIN(due, g->rebalance_due_ms);
    if (g->sync_due_ms != 0)
        due = MIN(due, g->sync_due_ms);
    return due;
}

static struct group_member *group_first_expired(const struct group *g, int64_t now_ms)
{
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next)
        if (member_can_expire(m) && m->session_due_ms <= now_ms)
            return m;
    return NULL;
}

/* Expelling one may remove others with it (a join completes without them): so each time from the front. */
static void group_expire_members(struct group *g, int64_t now_ms)
{
    struct group_member *m;

    while ((m = group_first_expired(g, now_ms)) != NULL)
        group_expel(g, m, KERR_UNKNOWN_MEMBER_ID, now_ms);
}

static void group_expire_syncs(struct group *g, int64_t now_ms)
{
    struct group_member *m, *next;
    bool any = false;

    if (g->sync_due_ms == 0 || g->sync_due_ms > now_ms)
        return;
    g->sync_due_ms = 0;
    HASH_ITER (hh, g->members, m, next)
        if (m->awaits_sync) {
            group_member_drop(g, m, KERR_UNKNOWN_MEMBER_ID);
            any = true;
        }
    if (any)
        group_prepare(g, now_ms);
}

void group_tick(struct group *g, int64_t now_ms)
{
    if (g->state == GROUP_DEAD || now_ms < g->due_ms)
        return;
    if (group_pending_expire(g, now_ms))
        group_try_complete_join(g, now_ms);
    group_expire_members(g, now_ms);
    group_expire_syncs(g, now_ms);
    group_rebalance_tick(g, now_ms);
    g->due_ms = group_next_due_ms(g);
}

void group_unload(struct group *g, enum kerr err)
{
    for (struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        if (m->parked_join != NULL)
            group_answer_join_error(g, group_unpark_join(g, m), err, m->id);
        if (m->parked_sync != NULL)
            group_answer_sync(g, m, take(&m->parked_sync), err);
    }
    g->rebalance_due_ms = g->sync_due_ms = 0;
    g->due_ms = INT64_MAX;
    if (g->state != GROUP_DEAD)
        group_move(g, GROUP_DEAD);
}

/* ---- restoring ---- */

static char *dup_or_null(const char *s)
{
    return s != NULL ? xstrdup(s) : NULL;
}

void group_restore(struct group *g, int32_t generation, const char *protocol_type, const char *protocol,
                   const char *leader, int64_t state_since_ms)
{
    KCHECK(g->state == GROUP_EMPTY && g->members == NULL && g->leader == NULL);
    g->generation = generation;
    g->protocol_type = dup_or_null(protocol_type);
    g->protocol = dup_or_null(protocol);
    g->leader = dup_or_null(leader);
    g->state_since_ms = state_since_ms;
}

void group_restore_member(struct group *g, const struct group_join *as, const void *assignment,
                          int32_t assignment_bytes, int64_t now_ms)
{
    struct group_member *m = group_member_add(g, as, as->member_id, now_ms);

    m->is_new = false;
    group_member_alive(g, m, now_ms);
    group_member_assign(m, assignment, assignment_bytes);
}

void group_restored(struct group *g, int64_t now_ms)
{
    int64_t since = g->state_since_ms;

    if (g->members != NULL) {
        if (g->leader == NULL || group_member_find(g, g->leader) == NULL) {
            free(g->leader);
            g->leader = xstrdup(g->members->id);
        }
        group_move(g, GROUP_STABLE);
    }
    g->state_since_ms = since;
    if (group_n_members(g) > g->env->size_max)
        group_prepare(g, now_ms);
}
