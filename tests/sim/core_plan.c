/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of faults of the core simulator: drawn, printed, read; see core.h. */
#include "tests/sim/core.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const core_fault_names[CORE_FAULT_KINDS] = {
    [CORE_KILL] = "kill",       [CORE_CUT] = "power-cut",  [CORE_STOP] = "stop", [CORE_PAUSE] = "pause",
    [CORE_EXPIRE] = "expire",   [CORE_AWAY] = "store-away", [CORE_UNKNOWN] = "unknown", [CORE_LINK] = "link",
    [CORE_DAMAGE] = "damage",   [CORE_AIL] = "ail",        [CORE_PREFER] = "prefer",
};

static void draw_numbers(struct core_fault *f, struct rnd *r, int n_brokers)
{
    f->a = (int64_t)rnd_below(r, (uint64_t)n_brokers);
    f->b = rnd_log(r, 5, 2000);
    switch (f->kind) {
    case CORE_UNKNOWN:
        f->c = (int64_t)rnd_below(r, 3);
        break;
    case CORE_LINK:
        f->c = (int64_t)rnd_below(r, (uint64_t)n_brokers);
        break;
    default:
        break;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct core_fault *x = a, *y = b;
    return x->at_ms != y->at_ms ? (x->at_ms < y->at_ms ? -1 : 1) : 0;
}

void core_plan_draw(struct core_plan *p, uint64_t seed, int n_brokers, int64_t faults_ms)
{
    struct rnd r = rnd_of(seed, RND_PLAN, 0);
    enum core_fault_kind on[CORE_FAULT_KINDS];
    int n_on = 0;
    memset(p, 0, sizeof *p);
    p->seed = seed;
    for (int k = 0; k < CORE_FAULT_KINDS; k++)
        if (rnd_one_in(&r, 2))
            on[n_on++] = (enum core_fault_kind)k;
    if (n_on == 0 || rnd_one_in(&r, 20))
        return;
    p->n = (int)rnd_log(&r, 1, CORE_FAULTS);
    for (int i = 0; i < p->n; i++) {
        struct core_fault *f = &p->faults[i];
        struct rnd mine = rnd_of(seed, RND_PLAN, 1 + (uint64_t)i);
        f->at_ms = rnd_range(&mine, 0, faults_ms);
        f->kind = on[rnd_below(&mine, (uint64_t)n_on)];
        draw_numbers(f, &mine, n_brokers);
    }
    qsort(p->faults, (size_t)p->n, sizeof p->faults[0], by_time);
}

void core_plan_print(const struct core_plan *p, FILE *to)
{
    fprintf(to, "seed %" PRIu64 "\n", p->seed);
    for (int i = 0; i < p->n; i++) {
        const struct core_fault *f = &p->faults[i];
        fprintf(to, "%" PRId64 " %s %" PRId64 " %" PRId64 " %" PRId64 "\n", f->at_ms, core_fault_names[f->kind], f->a, f->b, f->c);
    }
}

static bool read_line(struct core_plan *p, const char *line)
{
    struct core_fault f = { 0 };
    char name[32];
    if (line[0] == '#' || line[0] == '\n' || line[0] == '\0')
        return true;
    if (sscanf(line, "seed %" SCNu64, &p->seed) == 1)
        return true;
    if (sscanf(line, "%" SCNd64 " %31s %" SCNd64 " %" SCNd64 " %" SCNd64, &f.at_ms, name, &f.a, &f.b, &f.c) != 5 ||
        f.a < 0 || f.a >= CORE_BROKERS || f.c < 0 || f.c >= CORE_BROKERS)
        return false;
    for (int k = 0; k < CORE_FAULT_KINDS && p->n < CORE_FAULTS; k++) {
        if (strcmp(name, core_fault_names[k]) == 0) {
            f.kind = (enum core_fault_kind)k;
            p->faults[p->n++] = f;
            return true;
        }
    }
    return false;
}

bool core_plan_read(struct core_plan *p, FILE *from)
{
    char line[256];
    memset(p, 0, sizeof *p);
    while (fgets(line, sizeof line, from) != NULL)
        if (!read_line(p, line))
            return false;
    return true;
}
