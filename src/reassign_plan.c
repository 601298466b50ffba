/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See reassign_plan.h. Three steps: what stands where it may not goes elsewhere; then, one replica at a time, from the broker that has
 * most to the one that has least; at last, preferred leaders, which costs no copying. Each choice takes the broker with the
 * fewest replicas, the lower id first.
 */
#include "src/reassign_plan.h"

#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"

static struct plan_broker *broker_of(struct plan *p, int32_t id)
{
    for (size_t i = 0; i < p->n_brokers; i++)
        if (p->brokers[i].id == id)
            return &p->brokers[i];
    return NULL;
}

static bool has(const struct plan_part *pt, int32_t id)
{
    for (int32_t i = 0; i < pt->n; i++)
        if (pt->replicas[i] == id)
            return true;
    return false;
}

/* How many of the partition's replicas stand in that rack, but for the one at `but`. */
static int32_t in_rack(struct plan *p, const struct plan_part *pt, int32_t rack, int32_t but)
{
    int32_t n = 0;

    for (int32_t i = 0; i < pt->n && rack >= 0; i++) {
        const struct plan_broker *b = i == but ? NULL : broker_of(p, pt->replicas[i]);
        n += b != NULL && b->rack == rack;
    }
    return n;
}

static void count(struct plan *p)
{
    for (size_t i = 0; i < p->n_brokers; i++)
        p->brokers[i].n_replicas = p->brokers[i].n_first = 0;
    for (size_t i = 0; i < p->n_parts; i++)
        for (int32_t k = 0; k < p->parts[i].n; k++) {
            struct plan_broker *b = broker_of(p, p->parts[i].replicas[k]);
            if (b == NULL)
                continue;
            b->n_replicas++;
            b->n_first += k == 0;
        }
}

/* For a replica of pt in place of the one at `at`: the rack that has fewest of it, then the broker that has fewest. */
static struct plan_broker *best_for(struct plan *p, const struct plan_part *pt, int32_t at)
{
    struct plan_broker *best = NULL;
    int32_t best_rack = 0;

    for (size_t i = 0; i < p->n_brokers; i++) {
        struct plan_broker *b = &p->brokers[i];
        if (b->empties || !b->receives || has(pt, b->id))
            continue;
        int32_t rack = in_rack(p, pt, b->rack, at);
        if (best == NULL || rack < best_rack || (rack == best_rack && b->n_replicas < best->n_replicas)) {
            best = b;
            best_rack = rack;
        }
    }
    return best;
}

static void put(struct plan *p, struct plan_part *pt, int32_t at, struct plan_broker *b)
{
    struct plan_broker *before = at < pt->n ? broker_of(p, pt->replicas[at]) : NULL;

    if (before != NULL) {
        before->n_replicas--;
        before->n_first -= at == 0;
    }
    pt->replicas[at] = b->id;
    pt->n = MAX(pt->n, at + 1);
    b->n_replicas++;
    b->n_first += at == 0;
}

/* ---- what has to be ---- */
static void take_one_away(struct plan *p, struct plan_part *pt)
{
    int32_t worst = pt->n - 1, worst_rack = -1, worst_n = -1;

    for (int32_t i = pt->n - 1; i > 0; i--) { /* the preferred leader stays */
        const struct plan_broker *b = broker_of(p, pt->replicas[i]);
        int32_t rack = b == NULL || b->empties ? INT32_MAX : in_rack(p, pt, b->rack, i), n = b == NULL ? 0 : b->n_replicas;
        if (rack > worst_rack || (rack == worst_rack && n > worst_n)) {
            worst = i;
            worst_rack = rack;
            worst_n = n;
        }
    }
    struct plan_broker *b = broker_of(p, pt->replicas[worst]);
    if (b != NULL)
        b->n_replicas--;
    memmove(&pt->replicas[worst], &pt->replicas[worst + 1], (size_t)(pt->n - worst - 1) * sizeof pt->replicas[0]);
    pt->n--;
}

static bool settle(struct plan *p, struct plan_part *pt)
{
    int32_t wanted = p->n_replicas > 0 ? p->n_replicas : pt->n;

    while (pt->n > wanted)
        take_one_away(p, pt);
    for (int32_t i = 0; i < wanted; i++) {
        const struct plan_broker *now = i < pt->n ? broker_of(p, pt->replicas[i]) : NULL;
        if (now != NULL && !now->empties)
            continue;
        struct plan_broker *b = best_for(p, pt, i);
        if (b == NULL)
            return false;
        put(p, pt, i, b);
    }
    return true;
}

/* ---- as many as each other ---- */
static int32_t spread_by(struct plan *p, const struct plan_part *pt, int32_t at, const struct plan_broker *from,
                         const struct plan_broker *to)
{
    return in_rack(p, pt, to->rack, at) - in_rack(p, pt, from->rack, at);
}

/* A replica of a partition that `to` has none of, and whose racks are no worse for it; one that is no preferred leader first. */
static bool move_one(struct plan *p, struct plan_broker *from, struct plan_broker *to)
{
    struct plan_part *first = NULL;

    for (size_t i = 0; i < p->n_parts; i++) {
        struct plan_part *pt = &p->parts[i];
        for (int32_t k = 0; k < pt->n; k++) {
            if (pt->replicas[k] != from->id || has(pt, to->id) || spread_by(p, pt, k, from, to) > 0)
                continue;
            if (k > 0) {
                put(p, pt, k, to);
                return true;
            }
            first = first == NULL ? pt : first;
        }
    }
    if (first == NULL)
        return false;
    put(p, first, 0, to);
    return true;
}

static bool may_give(const struct plan_broker *from, const struct plan_broker *to)
{
    return !from->empties && !to->empties && to->receives && from->n_replicas - to->n_replicas >= 2;
}

/* The pair that differs most and of which something can go; pairs are tried from the widest difference on. */
static bool balance_one(struct plan *p)
{
    int32_t widest = INT32_MAX;

    for (;;) {
        int32_t next = 0;
        for (size_t i = 0; i < p->n_brokers; i++)
            for (size_t k = 0; k < p->n_brokers; k++) {
                struct plan_broker *a = &p->brokers[i], *b = &p->brokers[k];
                int32_t d = may_give(a, b) ? a->n_replicas - b->n_replicas : 0;
                if (d == widest && move_one(p, a, b))
                    return true;
                next = d < widest ? MAX(next, d) : next;
            }
        if (next == 0)
            return false;
        widest = next;
    }
}

/* ---- preferred leaders ---- */
static bool lead_one(struct plan *p)
{
    for (size_t i = 0; i < p->n_parts; i++) {
        struct plan_part *pt = &p->parts[i];
        struct plan_broker *first = broker_of(p, pt->replicas[0]);
        for (int32_t k = 1; k < pt->n; k++) {
            struct plan_broker *b = broker_of(p, pt->replicas[k]);
            if (first->n_first - b->n_first < 2)
                continue;
            pt->replicas[0] = b->id;
            pt->replicas[k] = first->id;
            first->n_first--;
            b->n_first++;
            return true;
        }
    }
    return false;
}

static void note_changes(struct plan_part *pt, const struct plan_part *before)
{
    pt->changed = pt->n != before->n || memcmp(pt->replicas, before->replicas, (size_t)pt->n * sizeof pt->replicas[0]) != 0;
    pt->n_moved = 0;
    for (int32_t i = 0; i < pt->n; i++)
        pt->n_moved += !has(before, pt->replicas[i]);
}

static int64_t make(struct plan *p)
{
    for (size_t i = 0; i < p->n_parts; i++)
        if (!settle(p, &p->parts[i]))
            return (int64_t)i;
    if (!p->balance)
        return -1;
    while (balance_one(p))
        ;
    while (lead_one(p))
        ;
    return -1;
}

int64_t plan_make(struct plan *p)
{
    CLEANUP(freep) struct plan_part *before = xcalloc(p->n_parts + 1, sizeof *before);

    if (p->n_parts > 0)
        memcpy(before, p->parts, p->n_parts * sizeof *before);
    count(p);
    int64_t failed = make(p);
    for (size_t i = 0; i < p->n_parts; i++)
        note_changes(&p->parts[i], &before[i]);
    return failed;
}
