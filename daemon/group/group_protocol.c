/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which protocols the members have in common. A count a name is kept as members come and go, so that neither
 * a join nor the choice has to ask every member for every name. Each walk over one member's names carries a
 * mark of its own, so that a name given twice counts once.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

static struct group_offer *offer_find(const struct group *g, const char *name, size_t n)
{
    struct group_offer *o;

    HASH_FIND(hh, g->offers, name, n, o);
    return o;
}

static struct group_offer *offer_get(struct group *g, const char *name)
{
    struct group_offer *o = offer_find(g, name, strlen(name));

    if (o == NULL) {
        o = xcalloc(1, sizeof *o);
        o->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, g->offers, o->name, strlen(o->name), o);
    }
    return o;
}

void group_offers_add(struct group *g, const struct group_member *m)
{
    uint64_t mark = ++g->offer_mark;

    for (int32_t i = 0; i < m->n_protocols; i++) {
        struct group_offer *o = offer_get(g, m->protocols[i].name);
        o->n_members += o->mark != mark;
        o->mark = mark;
    }
}

void group_offers_remove(struct group *g, const struct group_member *m)
{
    uint64_t mark = ++g->offer_mark;

    for (int32_t i = 0; i < m->n_protocols; i++) {
        struct group_offer *o = offer_find(g, m->protocols[i].name, strlen(m->protocols[i].name));
        if (o == NULL || o->mark == mark) /* named twice */
            continue;
        KCHECK(o->n_members > 0);
        o->mark = mark;
        if (--o->n_members == 0) {
            HASH_DEL(g->offers, o);
            free(o->name);
            free(o);
        }
    }
}

/* A joining member must bring the group's protocol type and one protocol that all the others know. */
bool group_protocols_fit(struct group *g, const struct group_join *rq, const struct group_member *self)
{
    int32_t others = group_n_members(g) - (self != NULL);
    uint64_t mark = ++g->offer_mark;

    if (rq->protocol_type[0] == '\0' || rq->n_protocols == 0)
        return false;
    if (g->members == NULL)
        return true;
    if (g->protocol_type == NULL || strcmp(g->protocol_type, rq->protocol_type) != 0)
        return false;
    for (int32_t i = 0; self != NULL && i < self->n_protocols; i++)
        offer_get(g, self->protocols[i].name)->mark = mark;
    for (int32_t i = 0; i < rq->n_protocols; i++) {
        const struct group_offer *o = offer_find(g, rq->names[i].p, (size_t)MAX(rq->names[i].n, 0));
        if ((o != NULL ? o->n_members - (o->mark == mark) : 0) == others)
            return true;
    }
    return false;
}

/* Each member votes for the first of its protocols that all offer. */
static void member_vote(struct group *g, const struct group_member *m)
{
    for (int32_t i = 0; i < m->n_protocols; i++) {
        struct group_offer *o = offer_get(g, m->protocols[i].name);
        if (o->n_members == group_n_members(g)) {
            o->votes++;
            return;
        }
    }
}

/* Most votes win; with as many, the first member's order counts. */
char *group_protocol_choose(struct group *g)
{
    const struct group_offer *best = NULL;

    KCHECK(g->members != NULL);
    for (struct group_offer *o = g->offers; o != NULL; o = o->hh.next)
        o->votes = 0;
    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next)
        member_vote(g, m);
    for (int32_t i = 0; i < g->members->n_protocols; i++) {
        const struct group_offer *o = offer_get(g, g->members->protocols[i].name);
        if (o->votes > (best != NULL ? best->votes : 0))
            best = o;
    }
    KCHECK(best != NULL);
    return xstrdup(best->name);
}
