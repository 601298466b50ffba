/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the leader of a group does: it asks for the partitions of all topics that any member subscribes to and
 * shares them out; later it looks now and then whether there are more, and then calls for another rebalance.
 * On the loop's thread.
 */
#include <errno.h>
#include <string.h>
#include <uthash.h>

#include "lib/client/member_int.h"

enum { METADATA_TIMEOUT_MS = 30000 };

/* ---- who is there, and what they want ---- */
/* Copies what the plan needs out of the answer. A member whose subscription cannot be read gets nothing. */
static void plan_members(struct member *m, const struct join_group_response *r)
{
    m->n_members = (size_t)r->n_members;
    m->members = arena_array(&m->round, m->n_members, sizeof *m->members);
    for (size_t i = 0; i < m->n_members; i++) {
        const struct join_group_response_members *from = &r->members[i];
        struct assign_member *to = &m->members[i];
        struct kstr *topics = NULL;
        to->id = arena_kstr(&m->round, from->member_id);
        to->instance_id = arena_kstr(&m->round, from->group_instance_id);
        if (assign_read_subscription(arena_kstr(&m->round, from->metadata), &m->round, &topics,
                                     &to->n_topics) != 0)
            to->n_topics = 0;
        to->topics = topics;
    }
}

struct wanted {
    struct kstr name;
    UT_hash_handle hh;
};

static void want(struct arena *a, struct wanted **table, struct kstr name)
{
    struct wanted *w;
    HASH_FIND(hh, *table, name.p, (unsigned)name.n, w);
    if (w != NULL)
        return;
    w = arena_alloc(a, sizeof *w);
    w->name = name;
    HASH_ADD_KEYPTR(hh, *table, w->name.p, (unsigned)w->name.n, w);
}

static void plan_topics(struct member *m)
{
    struct wanted *table = NULL, *w, *next;
    for (size_t i = 0; i < m->n_members; i++) {
        for (int32_t k = 0; k < m->members[i].n_topics; k++)
            want(&m->round, &table, m->members[i].topics[k]);
    }
    m->plan = arena_array(&m->round, HASH_COUNT(table), sizeof *m->plan);
    m->n_plan = 0;
    HASH_ITER (hh, table, w, next) {
        m->plan[m->n_plan++] =
            (struct plan_topic){ .m = m, .name = arena_printf(&m->round, "%.*s", KSTR_FMT(w->name)) };
        HASH_DEL(table, w);
    }
}

/* ---- asking ---- */
static void plan_answered(struct member *m);

static void on_refreshed(struct client_refresh *r, int rc)
{
    struct plan_topic *t = container_of(r, struct plan_topic, refresh);
    struct member *m = t->m;
    t->asked = false;
    m->plan_failed |= rc != 0;
    if (--m->n_plan_asked == 0)
        plan_answered(m);
}

static void plan_ask(struct member *m)
{
    m->plan_failed = false;
    m->n_plan_asked = m->n_plan;
    for (size_t i = 0; i < m->n_plan; i++) {
        struct plan_topic *t = &m->plan[i];
        t->refresh = (struct client_refresh){
            .topic = t->name,
            .deadline_ms = member_deadline(m, METADATA_TIMEOUT_MS),
            .cb = on_refreshed,
        };
        t->asked = true;
        client_refresh(m->c, &t->refresh);
    }
}

void plan_stop(struct member *m)
{
    for (size_t i = 0; i < m->n_plan && m->n_plan_asked > 0; i++) {
        struct plan_topic *t = &m->plan[i];
        if (!t->asked)
            continue;
        client_refresh_cancel(m->c, &t->refresh);
        t->asked = false;
        m->n_plan_asked--;
    }
    KCHECK(m->n_plan_asked == 0);
}

static int32_t topic_partitions(struct member *m, const char *name)
{
    const struct client_topic *t = client_topic(m->c, name);
    return t != NULL ? t->n_partitions : 0;
}

/* ---- sharing out ---- */
static void plan_make(struct member *m)
{
    struct assign_topic *topics = arena_array(&m->round, m->n_plan, sizeof *topics);
    for (size_t i = 0; i < m->n_plan; i++) {
        m->plan[i].n_partitions = topic_partitions(m, m->plan[i].name);
        topics[i] = (struct assign_topic){ kstr_of(m->plan[i].name), m->plan[i].n_partitions };
    }
    int as = assignor_of(kstr_of(m->protocol));
    KCHECK(as >= 0);
    assign((enum assignor)as, &m->round, m->members, m->n_members, topics, m->n_plan);
}

static bool plan_is_outdated(struct member *m)
{
    for (size_t i = 0; i < m->n_plan; i++) {
        if (topic_partitions(m, m->plan[i].name) != m->plan[i].n_partitions)
            return true;
    }
    return false;
}

static void plan_answered(struct member *m)
{
    if (m->state == MEMBER_PLANNING && m->plan_failed) {
        join_again(m);
    } else if (m->state == MEMBER_PLANNING) {
        plan_make(m);
        join_sync(m);
    } else if (m->state == MEMBER_OWNING && !m->plan_failed && plan_is_outdated(m)) {
        member_revoke(m, false);
    } else {
        plan_watch(m); /* owning: nothing is new */
    }
}

void plan_start(struct member *m, const struct join_group_response *r)
{
    plan_members(m, r);
    plan_topics(m);
    if (m->n_plan > 0) {
        plan_ask(m);
    } else {
        plan_make(m);
        join_sync(m);
    }
}

/* ---- looking for more ---- */
void plan_watch(struct member *m)
{
    if (m->leads && m->n_plan > 0)
        timer_set(m->loop, &m->look, member_deadline(m, m->metadata_ms));
}

void plan_on_look(struct timer *t)
{
    plan_ask(container_of(t, struct member, look));
}
