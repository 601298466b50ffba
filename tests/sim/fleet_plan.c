/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of a run of several brokers; see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "tests/sim/fleet_int.h"

static const struct {
    enum fault_kind kind;
    int weight;
    bool loses; /* what was not synced may be gone */
} kinds[] = {
    { FAULT_KILL, 3, false },         { FAULT_KILL_AT_DISK, 2, false }, { FAULT_KILL_AT_NET, 2, false }, { FAULT_CUT, 2, true },
    { FAULT_CUT_AT_DISK, 2, true },   { FAULT_CUT_AT_NET, 1, true },    { FAULT_STOP, 2, false },        { FAULT_PAUSE, 3, false },
    { FAULT_CLOCK, 1, false },        { FAULT_CLOG, 3, false },         { FAULT_CONNECTION, 2, false },  { FAULT_REFUSE, 1, false },
    { FAULT_FULL, 1, false },         { FAULT_SLOW, 1, false },         { FAULT_PART, 4, false },        { FAULT_AWAY, 4, false },
    { FAULT_EXPIRE, 3, false },       { FAULT_STORE, 1, false },        { FAULT_AMBUSH, 8, false },
};

bool fleet_has_fault(int kind)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if ((int)kinds[i].kind == kind)
            return true;
    return false;
}

static void draw_numbers(struct fault *f, struct rnd *r, int n_brokers)
{
    f->c = rnd_range(r, 0, n_brokers - 1);
    switch (f->kind) {
    case FAULT_KILL_AT_DISK:
    case FAULT_CUT_AT_DISK:
    case FAULT_KILL_AT_NET:
    case FAULT_CUT_AT_NET:
        f->a = rnd_log(r, 1, 512) - 1;
        break;
    case FAULT_PAUSE:
        f->a = rnd_log(r, 10, 20000);
        break;
    case FAULT_CLOCK:
        f->a = rnd_log(r, 1, 3600000) * (rnd_one_in(r, 2) ? 1 : -1);
        break;
    case FAULT_CLOG:
        f->a = rnd_range(r, 0, n_brokers - 1);
        f->b = rnd_range(r, 0, n_brokers - 1);
        f->c = rnd_log(r, 100, 20000);
        break;
    case FAULT_REFUSE:
        f->a = rnd_log(r, 100, 10000);
        break;
    case FAULT_FULL:
        f->a = rnd_log(r, 1, 1 << 20);
        f->b = rnd_log(r, 100, 10000);
        break;
    case FAULT_SLOW:
        f->a = rnd_log(r, 2000, 200000);
        f->b = rnd_log(r, 100, 10000);
        break;
    case FAULT_PART:
        f->a = rnd_range(r, 1, (1 << n_brokers) - 1);
        f->b = rnd_range(r, 0, 2);
        f->c = rnd_log(r, 100, 20000);
        break;
    case FAULT_AWAY:
        f->a = rnd_log(r, 10, 20000);
        break;
    case FAULT_STORE:
        f->a = rnd_log(r, 10, 5000);
        break;
    case FAULT_AMBUSH:
        f->a = (int64_t)rnd_below(r, FLEET_EVENTS);
        f->b = (int64_t)rnd_below(r, FLEET_BLOWS);
        f->c = rnd_log(r, 100, 20000);
        break;
    default:
        break;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct fault *x = a, *y = b;
    return x->at_ms != y->at_ms ? (x->at_ms < y->at_ms ? -1 : 1) : 0;
}

void fleet_plan_draw(struct plan *p, uint64_t seed, const struct fleet_swarm *sw)
{
    struct rnd r = rnd_of(seed, RND_PLAN, 0);
    enum fault_kind on[64];
    int n_on = 0;
    memset(p, 0, sizeof *p);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        bool drawn = rnd_one_in(&r, 2);
        for (int w = 0; drawn && !(kinds[k].loses && sw->async) && w < kinds[k].weight; w++)
            on[n_on++] = kinds[k].kind;
    }
    if (n_on == 0 || rnd_one_in(&r, 20))
        return;
    int n = (int)rnd_log(&r, 1, 40), n_bursts = rnd_one_in(&r, 2) ? 0 : (int)rnd_range(&r, 1, 4);
    int64_t bursts[4];
    for (int i = 0; i < 4; i++)
        bursts[i] = rnd_range(&r, 0, sw->faults_ms);
    for (int i = 0; i < n; i++) {
        struct fault *f = &p->faults[p->n++];
        struct rnd mine = rnd_of(seed, RND_PLAN, 1 + (uint64_t)i);
        f->at_ms = rnd_range(&mine, 0, sw->faults_ms);
        if (n_bursts > 0) /* one while another still works */
            f->at_ms = MIN(sw->faults_ms, bursts[rnd_below(&mine, (uint64_t)n_bursts)] + rnd_log(&mine, 1, 4000));
        f->kind = on[rnd_below(&mine, (uint64_t)n_on)];
        draw_numbers(f, &mine, sw->n_brokers);
    }
    qsort(p->faults, (size_t)p->n, sizeof p->faults[0], by_time);
    for (int i = 0; i < PLAN_MAX; i++) {
        struct rnd mine = rnd_of(seed, RND_PLAN, 1000 + (uint64_t)i);
        p->down_ms[i] = rnd_one_in(&mine, 3) ? 0 : rnd_log(&mine, 1, 15000);
    }
}
