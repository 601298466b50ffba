/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a group, the ids handed out, the instance ids, and what protocols they share. */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

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

struct group_member *group_member_find(const struct group *g, const char *id)
{
    struct group_member *m;

    HASH_FIND_STR(g->members, id, m);
    return m;
}

struct group_member *group_static_find(const struct group *g, const char *instance_id)
{
    struct group_static *s;

    HASH_FIND_STR(g->statics, instance_id, s);
    return s != NULL ? s->member : NULL;
}

struct group_member *group_member_add(struct group *g, const struct group_join *rq, const char *id, int64_t now_ms)
{
    struct group_member *m = xcalloc(1, sizeof *m);

    KCHECK(group_member_find(g, id) == NULL);
    if (g->members == NULL) {                   /* an empty group takes on any type */
        free(g->protocol_type);
        g->protocol_type = xstrdup(rq->protocol_type);
    }
    m->id = xstrdup(id);
    m->client_id = xstrdup(rq->client_id);
    m->client_host = xstrdup(rq->client_host);
    m->is_new = true;
    m->session_due_ms = now_ms + g->env->new_member_timeout_ms;
    group_member_update(m, rq);
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
    return m;
}

void group_member_update(struct group_member *m, const struct group_join *rq)
{
    m->session_timeout_ms = rq->session_timeout_ms;
    m->rebalance_timeout_ms = rq->rebalance_timeout_ms;
    member_protocols_set(m, rq);
}

static void member_forget_leadership(struct group *g, const struct group_member *m)
{
    if (g->leader == NULL || strcmp(g->leader, m->id) != 0)
        return;
    free(g->leader);
    g->leader = g->members != NULL ? xstrdup(g->members->id) : NULL;
}

void group_member_remove(struct group *g, struct group_member *m)
{
    KINVARIANT("G5", m->parked_join == NULL && m->parked_sync == NULL);
    HASH_DEL(g->members, m);
    if (m->instance_id != NULL) {
        struct group_static *s;
        HASH_FIND_STR(g->statics, m->instance_id, s);
        KCHECK(s != NULL && s->member == m);
        HASH_DEL(g->statics, s);
        free(s);
    }
    member_forget_leadership(g, m);
    member_protocols_free(m);
    free(m->assignment);
    free(m->client_host);
    free(m->client_id);
    free(m->instance_id);
    free(m->id);
    free(m);
}

/* A static member came back under a new id; its place among the members and its leadership stay. */
void group_member_rename(struct group *g, struct group_member *m, const char *id)
{
    bool leads = g->leader != NULL && strcmp(g->leader, m->id) == 0;

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

void group_member_alive(struct group_member *m, int64_t now_ms)
{
    if (!m->is_new)
        m->session_due_ms = now_ms + m->session_timeout_ms;
}

enum kerr group_member_check(const struct group *g, const char *member_id, const char *instance_id,
                             struct group_member **ret)
{
    struct group_member *m = group_member_find(g, member_id);

    if (instance_id != NULL) {
        struct group_member *owner = group_static_find(g, instance_id);
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

/* ---- ids handed out ---- */

void group_pending_add(struct group *g, const char *id, int64_t due_ms)
{
    struct group_pending *p = xcalloc(1, sizeof *p);

    p->id = xstrdup(id);
    p->due_ms = due_ms;
    HASH_ADD_KEYPTR(hh, g->pending, p->id, strlen(p->id), p);
}

bool group_pending_remove(struct group *g, const char *id)
{
    struct group_pending *p;

    HASH_FIND_STR(g->pending, id, p);
    if (p == NULL)
        return false;
    HASH_DEL(g->pending, p);
    free(p->id);
    free(p);
    return true;
}

/* ---- what the members have in common ---- */

/* Does every member (but `except`) offer this protocol? */
static bool all_offer(const struct group *g, const char *name, const struct group_member *except)
{
    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next)
        if (m != except && group_member_protocol(m, name) == NULL)
            return false;
    return true;
}

/* A joining member must bring the group's protocol type and one protocol all others know. */
bool group_protocols_fit(const struct group *g, const struct group_join *rq)
{
    if (rq->protocol_type[0] == '\0' || rq->n_protocols == 0)
        return false;
    if (g->members == NULL)
        return true;
    if (g->protocol_type == NULL || strcmp(g->protocol_type, rq->protocol_type) != 0)
        return false;

    const struct group_member *self = group_member_find(g, rq->member_id);
    for (int32_t i = 0; i < rq->n_protocols; i++) {
        CLEANUP(freep) char *name = xstrndup(rq->names[i].p, (size_t)MAX(rq->names[i].n, 0));
        if (all_offer(g, name, self))
            return true;
    }
    return false;
}

static const char *member_vote(const struct group *g, const struct group_member *m)
{
    for (int32_t i = 0; i < m->n_protocols; i++)
        if (all_offer(g, m->protocols[i].name, NULL))
            return m->protocols[i].name;
    return NULL;
}

static int32_t votes_for(const struct group *g, const char *name)
{
    int32_t n = 0;

    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        const char *vote = member_vote(g, m);
        n += vote != NULL && strcmp(vote, name) == 0;
    }
    return n;
}

/* Each member votes for the first of its protocols that all offer; most votes win, then the first member's order. */
char *group_protocol_choose(const struct group *g)
{
    const char *best = NULL;
    int32_t best_votes = 0;

    KCHECK(g->members != NULL);
    for (int32_t i = 0; i < g->members->n_protocols; i++) {
        const char *name = g->members->protocols[i].name;
        int32_t votes = all_offer(g, name, NULL) ? votes_for(g, name) : 0;
        if (votes > best_votes) {
            best = name;
            best_votes = votes;
        }
    }
    KCHECK(best != NULL);
    return xstrdup(best);
}
