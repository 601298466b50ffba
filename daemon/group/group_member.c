/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a group: the table by member id, the table of static ones by instance id, what each offers as
 * protocols, its assignment, its session. Pure; under the shard's lock.
 *
 * A static member is in both tables, and the two are changed together, here alone. Whoever removes a member has
 * answered what it had parked (G5). The group's leader is a member (G3): when the leader goes another takes its
 * place, and one that comes back under a new id stays the leader. A member that has not been answered yet (is_new)
 * has no session that could end. Knows neither rebalances nor what is durable.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* ---- G6 ---- */

enum { MEMBER_BYTES = 512, PROTOCOL_BYTES = 64 }; /* what they take besides their strings */

void group_bytes_count(struct group *g, int64_t delta)
{
    g->bytes += delta;
    KINVARIANT("G6", g->bytes >= 0);
    if (g->env->all_bytes != NULL)
        atomic_fetch_add_explicit(g->env->all_bytes, delta, memory_order_relaxed);
}

static int64_t text_bytes(const char *s)
{
    return s != NULL ? (int64_t)strlen(s) : 0;
}

static int64_t protocols_bytes(const struct group_join *rq)
{
    int64_t n = 0;

    for (int32_t i = 0; i < rq->n_protocols; i++)
        n += PROTOCOL_BYTES + MAX(rq->names[i].n, 0) + (int64_t)MAX(rq->metadata[i].n, 0);
    return n;
}

/* An id is kept as the member's and perhaps as the leader's; a group that only this member makes is counted with it. */
static int64_t names_bytes(const struct group *g, const char *id, const char *instance_id, const char *client_id)
{
    return MEMBER_BYTES + text_bytes(g->id) + 2 * text_bytes(id) + text_bytes(instance_id) + text_bytes(client_id);
}

bool group_bytes_fit(const struct group *g, const struct group_join *rq, const struct group_member *instead)
{
    const char *id = rq->member_id[0] != '\0' ? rq->member_id : rq->new_member_id;
    int64_t more = names_bytes(g, id, rq->instance_id, rq->client_id) + protocols_bytes(rq) -
                   (instead != NULL ? instead->bytes : 0);

    if (more <= 0)
        return true;
    return g->bytes + more <= GROUP_BYTES_MAX &&
           (g->env->all_bytes == NULL ||
            atomic_load_explicit(g->env->all_bytes, memory_order_relaxed) + more <= g->env->all_bytes_max);
}

static void member_count(struct group *g, struct group_member *m, const struct group_join *rq)
{
    group_bytes_count(g, -m->bytes);
    m->bytes = names_bytes(g, m->id, m->instance_id, m->client_id) + protocols_bytes(rq);
    group_bytes_count(g, m->bytes);
}

/* ---- protocols of one member ---- */

static void *dup_bytes(const void *p, int32_t n)
{
    void *copy = xmalloc((size_t)MAX(n, 1));

    if (n > 0)
        memcpy(copy, p, (size_t)n);
    return copy;
}

static void member_protocols_free(struct group_member *m)
{
    for (int32_t i = 0; i < m->n_protocols; i++) {
        free(m->protocols[i].name);
        free(m->protocols[i].metadata);
    }
    free(m->protocols);
    m->protocols = NULL;
    m->n_protocols = 0;
}

static void member_protocols_set(struct group_member *m, const struct group_join *rq)
{
    member_protocols_free(m);
    m->protocols = xcalloc((size_t)MAX(rq->n_protocols, 1), sizeof *m->protocols);
    m->n_protocols = rq->n_protocols;
    for (int32_t i = 0; i < rq->n_protocols; i++) {
        struct group_protocol *p = &m->protocols[i];
        p->name = xstrndup(rq->names[i].p, (size_t)MAX(rq->names[i].n, 0));
        p->metadata_bytes = MAX(rq->metadata[i].n, 0);
        p->metadata = dup_bytes(rq->metadata[i].p, p->metadata_bytes);
    }
}

bool group_member_same_protocols(const struct group_member *m, const struct group_join *rq)
{
    if (m->n_protocols != rq->n_protocols)
        return false;
    for (int32_t i = 0; i < m->n_protocols; i++) {
        const struct group_protocol *p = &m->protocols[i];
        if (!kstr_eqz(rq->names[i], p->name) ||
            !kstr_eq(kstr_bytes(p->metadata, (size_t)p->metadata_bytes),
                     kstr_bytes(rq->metadata[i].p, (size_t)MAX(rq->metadata[i].n, 0))))
            return false;
    }
    return true;
}

const struct group_protocol *group_member_protocol(const struct group_member *m, const char *name)
{
    for (int32_t i = 0; i < m->n_protocols; i++)
        if (strcmp(m->protocols[i].name, name) == 0)
            return &m->protocols[i];
    return NULL;
}

/* ---- members ---- */

static void member_set(struct group_member *m, const struct group_join *rq)
{
    m->session_timeout_ms = rq->session_timeout_ms;
    m->rebalance_timeout_ms = rq->rebalance_timeout_ms;
    member_protocols_set(m, rq);
}

struct group_member *group_member_find(const struct group *g, const char *id)
{
    struct group_member *m;

    HASH_FIND_STR(g->members, id, m);
    return m;
}

struct group_member *group_instance_find(const struct group *g, const char *instance_id)
{
    struct group_static *s;

    HASH_FIND_STR(g->statics, instance_id, s);
    return s != NULL ? s->member : NULL;
}

struct group_member *group_member_add(struct group *g, const struct group_join *rq, const char *id,
                                      int64_t now_ms)
{
    struct group_member *m = xcalloc(1, sizeof *m);

    KCHECK(group_member_find(g, id) == NULL);
    if (g->members == NULL) { /* an empty group takes on any type */
        free(g->protocol_type);
        g->protocol_type = xstrdup(rq->protocol_type);
    }
    m->id = xstrdup(id);
    m->client_id = xstrdup(rq->client_id);
    m->client_host = xstrdup(rq->client_host);
    m->is_new = true;
    m->session_due_ms = now_ms + g->env->new_member_timeout_ms;
    group_due_at(g, m->session_due_ms);
    member_set(m, rq);
    group_offers_add(g, m);
    HASH_ADD_KEYPTR(hh, g->members, m->id, strlen(m->id), m);
    if (rq->instance_id != NULL) {
        struct group_static *s = xcalloc(1, sizeof *s);
        m->instance_id = xstrdup(rq->instance_id);
        s->instance_id = m->instance_id;
        s->member = m;
        HASH_ADD_KEYPTR(hh, g->statics, s->instance_id, strlen(s->instance_id), s);
    }
    if (g->leader == NULL)
        g->leader = xstrdup(id);
    member_count(g, m, rq);
    return m;
}

void group_member_update(struct group *g, struct group_member *m, const struct group_join *rq)
{
    group_offers_remove(g, m);
    member_set(m, rq);
    group_offers_add(g, m);
    member_count(g, m, rq);
}

bool group_member_leads(const struct group *g, const struct group_member *m)
{
    return g->leader != NULL && strcmp(g->leader, m->id) == 0;
}

static void static_forget(struct group *g, const struct group_member *m)
{
    struct group_static *s;

    HASH_FIND_STR(g->statics, m->instance_id, s);
    KCHECK(s != NULL && s->member == m);
    HASH_DEL(g->statics, s);
    free(s);
}

void group_member_remove(struct group *g, struct group_member *m)
{
    KINVARIANT("G5", m->parked_join == NULL && m->parked_sync == NULL);
    bool led = group_member_leads(g, m);
    HASH_DEL(g->members, m);
    if (m->instance_id != NULL)
        static_forget(g, m);
    if (led) {
        free(g->leader);
        g->leader = g->members != NULL ? xstrdup(g->members->id) : NULL;
    }
    group_offers_remove(g, m);
    group_bytes_count(g, -m->bytes);
    member_protocols_free(m);
    group_return_forget(m);
    free(m->assignment);
    free(m->client_host);
    free(m->client_id);
    free(m->instance_id);
    free(m->id);
    free(m);
}

/* A static member came back under a new id; its leadership stays. */
void group_member_rename(struct group *g, struct group_member *m, const char *id)
{
    bool leads = group_member_leads(g, m);

    HASH_DEL(g->members, m);
    free(m->id);
    m->id = xstrdup(id);
    HASH_ADD_KEYPTR(hh, g->members, m->id, strlen(m->id), m);
    if (leads) {
        free(g->leader);
        g->leader = xstrdup(id);
    }
}

void group_member_assign(struct group_member *m, const void *p, int32_t n)
{
    free(m->assignment);
    m->assignment = dup_bytes(p, n);
    m->assignment_bytes = MAX(n, 0);
}

void group_member_alive(struct group *g, struct group_member *m, int64_t now_ms)
{
    if (m->is_new)
        return;
    m->session_due_ms = now_ms + m->session_timeout_ms;
    group_due_at(g, m->session_due_ms);
}

enum kerr group_member_check(const struct group *g, const char *member_id, const char *instance_id,
                             struct group_member **ret)
{
    struct group_member *m = group_member_find(g, member_id);

    if (instance_id != NULL) {
        struct group_member *owner = group_instance_find(g, instance_id);
        if (owner == NULL)
            return KERR_UNKNOWN_MEMBER_ID;
        if (owner != m)
            return KERR_FENCED_INSTANCE_ID;
    }
    if (m == NULL)
        return KERR_UNKNOWN_MEMBER_ID;
    *ret = m;
    return KERR_NONE;
}
