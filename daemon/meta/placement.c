/* SPDX-License-Identifier: Apache-2.0 */
/* See placement.h. */
#include "daemon/meta/placement.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/meta/cluster.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

struct place {
    int32_t id;   /* broker */
    int32_t rack; /* number of its rack; all different when racks are not looked at */
};

struct placement {
    struct place *row;
    int32_t n, n_racks;
    uint32_t seed;
};

static bool all_have_racks(const struct cluster_broker *brokers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (brokers[i].rack == NULL)
            return false;
    return true;
}

static int compare_racks(const void *a, const void *b)
{
    const struct cluster_broker *const *x = a, *const *y = b;
    int order = strcmp((*x)->rack, (*y)->rack);

    return order != 0 ? order : ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* sorted: by rack. Takes one of each rack, then the next of each, until all are in the row. */
static void alternate(struct placement *p, const struct cluster_broker *const *sorted)
{
    CLEANUP(freep) int32_t *rack = xcalloc((size_t)p->n, sizeof *rack);
    CLEANUP(freep) int32_t *place = xcalloc((size_t)p->n, sizeof *place); /* in its rack */
    int32_t n = 0;

    for (int32_t i = 1; i < p->n; i++) {
        bool same = strcmp(sorted[i]->rack, sorted[i - 1]->rack) == 0;
        rack[i] = rack[i - 1] + !same;
        place[i] = same ? place[i - 1] + 1 : 0;
    }
    p->n_racks = rack[p->n - 1] + 1;
    for (int32_t round = 0; n < p->n; round++)
        for (int32_t i = 0; i < p->n; i++)
            if (place[i] == round)
                p->row[n++] = (struct place){ sorted[i]->id, rack[i] };
}

struct placement *placement_new(const struct cluster_broker *brokers, size_t n, uint32_t seed)
{
    struct placement *p = xcalloc(1, sizeof *p);

    KCHECK(n > 0);
    p->row = xcalloc(n, sizeof *p->row);
    p->n = (int32_t)n;
    p->seed = seed;
    if (all_have_racks(brokers, n)) {
        CLEANUP(freep) const struct cluster_broker **sorted = xcalloc(n, sizeof(*sorted));
        for (size_t i = 0; i < n; i++)
            sorted[i] = &brokers[i];
        qsort(sorted, n, sizeof(*sorted), compare_racks);
        alternate(p, sorted);
        return p;
    }
    p->n_racks = p->n;
    for (int32_t i = 0; i < p->n; i++)
        p->row[i] = (struct place){ brokers[i].id, i };
    return p;
}

void placement_free(struct placement *p)
{
    if (p == NULL)
        return;
    free(p->row);
    free(p);
}

/* The k-th place after the leader's, in an order that another distance makes another one. Never the leader's own. */
static const struct place *place_after(const struct placement *p, int32_t leader, uint32_t distance, uint32_t k)
{
    uint32_t step = 1 + (distance + k) % (uint32_t)(p->n - 1);

    return &p->row[((uint32_t)leader + step) % (uint32_t)p->n];
}

struct chosen {
    int32_t *ids;
    int32_t n, n_racks;
    const struct place *of[REPLICA_MAX];
};

static void choose(struct chosen *c, const struct place *pl)
{
    bool new_rack = true;

    for (int32_t i = 0; i < c->n; i++)
        new_rack &= c->of[i]->rack != pl->rack;
    c->n_racks += new_rack;
    c->of[c->n] = pl;
    c->ids[c->n++] = pl->id;
}

static bool may_choose(const struct placement *p, const struct chosen *c, const struct place *pl)
{
    bool new_rack = true;

    for (int32_t i = 0; i < c->n; i++) {
        if (c->of[i] == pl)
            return false;
        new_rack &= c->of[i]->rack != pl->rack;
    }
    return new_rack || c->n_racks == p->n_racks;
}

void placement_of(const struct placement *p, int32_t id, int32_t n_replicas, int32_t *ret)
{
    struct chosen c = { .ids = ret };
    int32_t leader = (int32_t)((p->seed + (uint32_t)id) % (uint32_t)p->n);
    uint32_t distance = (p->seed / (uint32_t)p->n + (uint32_t)(id / p->n)) * (p->n_racks < p->n ? (uint32_t)p->n_racks : 1);

    KCHECK(n_replicas >= 1 && n_replicas <= p->n && n_replicas <= REPLICA_MAX);
    choose(&c, &p->row[leader]);
    for (uint32_t k = 0; c.n < n_replicas; k++) {
        const struct place *pl = place_after(p, leader, distance, k);
        if (may_choose(p, &c, pl))
            choose(&c, pl);
    }
}
