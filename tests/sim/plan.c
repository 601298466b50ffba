/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of faults: drawn, printed, read; see plan.h. */
#include "tests/sim/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/rand.h"

const char *const fault_names[FAULT_KINDS] = {
    [FAULT_KILL] = "kill",
    [FAULT_KILL_AT_DISK] = "kill-at-disk",
    [FAULT_KILL_AT_NET] = "kill-at-net",
    [FAULT_CUT] = "power-cut",
    [FAULT_CUT_AT_DISK] = "power-cut-at-disk",
    [FAULT_CUT_AT_NET] = "power-cut-at-net",
    [FAULT_STOP] = "stop",
    [FAULT_PAUSE] = "pause",
    [FAULT_CLOCK] = "clock",
    [FAULT_CLOG] = "clog",
    [FAULT_CONNECTION] = "connection",
    [FAULT_REFUSE] = "refuse",
    [FAULT_FULL] = "disk-full",
    [FAULT_SYNC] = "sync-fails",
    [FAULT_EIO] = "disk-error",
    [FAULT_FDS] = "no-descriptors",
    [FAULT_SLOW] = "slow-disk",
    [FAULT_ROT] = "rot",
    [FAULT_PART] = "parted",
    [FAULT_AWAY] = "no-registers",
    [FAULT_EXPIRE] = "session-over",
    [FAULT_STORE] = "registers-down",
    [FAULT_AMBUSH] = "ambush",
};

static void draw_numbers(struct fault *f, struct rnd *r, int n_hosts)
{
    switch (f->kind) {
    case FAULT_KILL_AT_DISK:
    case FAULT_CUT_AT_DISK:
    case FAULT_KILL_AT_NET:
    case FAULT_CUT_AT_NET:
        f->a = rnd_log(r, 1, 512) - 1;
        break;
    case FAULT_PAUSE:
        f->a = rnd_log(r, 10, 30000);
        break;
    case FAULT_CLOCK:
        f->a = rnd_log(r, 1, 3600000) * (rnd_one_in(r, 2) ? 1 : -1);
        break;
    case FAULT_CLOG:
        f->b = rnd_range(r, 1, n_hosts - 1);
        f->c = rnd_log(r, 100, 30000);
        if (rnd_one_in(r, 2)) {
            f->a = f->b;
            f->b = 0;
        }
        break;
    case FAULT_REFUSE:
        f->a = rnd_log(r, 100, 10000);
        break;
    case FAULT_FULL:
        f->a = rnd_log(r, 1, 1 << 20);
        f->b = rnd_log(r, 100, 20000);
        break;
    case FAULT_SYNC:
        f->a = rnd_log(r, 1, 64) - 1;
        break;
    case FAULT_EIO:
        f->a = rnd_log(r, 1, 256) - 1;
        f->b = (int64_t)rnd_below(r, 64);
        break;
    case FAULT_FDS:
        f->a = rnd_log(r, 1, 16) - 1;
        f->b = rnd_log(r, 100, 20000);
        break;
    case FAULT_SLOW:
        f->a = rnd_log(r, 2000, 200000);
        f->b = rnd_log(r, 100, 20000);
        break;
    case FAULT_ROT:
        f->a = rnd_log(r, 1, 1 << 30);
        f->b = rnd_range(r, 0, 15);
        f->c = rnd_one_in(r, 3);
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

void plan_draw(struct plan *p, uint64_t seed, int64_t faults_ms, int n_hosts)
{
    struct rnd r = rnd_of(seed, RND_PLAN, 0);
    enum fault_kind on[FAULT_KINDS];
    int n_on = 0;
    memset(p, 0, sizeof *p);
    for (int k = 0; k < FAULT_ALONE_KINDS; k++)
        if (rnd_one_in(&r, 2))
            on[n_on++] = (enum fault_kind)k;
    if (n_on == 0 || rnd_one_in(&r, 20))
        return;
    int n = (int)rnd_log(&r, 1, 40);
    for (int i = 0; i < n; i++) {
        struct fault *f = &p->faults[p->n++];
        struct rnd mine = rnd_of(seed, RND_PLAN, 1 + (uint64_t)i);
        f->at_ms = rnd_range(&mine, 0, faults_ms);
        f->kind = on[rnd_below(&mine, (uint64_t)n_on)];
        draw_numbers(f, &mine, n_hosts);
    }
    qsort(p->faults, (size_t)p->n, sizeof p->faults[0], by_time);
    for (int i = 0; i < PLAN_MAX; i++) {
        struct rnd mine = rnd_of(seed, RND_PLAN, 1000 + (uint64_t)i);
        p->down_ms[i] = rnd_one_in(&mine, 3) ? 0 : rnd_log(&mine, 10, 20000);
    }
}

void plan_print(const struct plan *p, uint64_t seed, FILE *to)
{
    fprintf(to, "seed %" PRIu64 "\n", seed);
    for (int i = 0; i < p->n; i++) {
        const struct fault *f = &p->faults[i];
        fprintf(to, "%" PRId64 " %s %" PRId64 " %" PRId64 " %" PRId64 "\n", f->at_ms, fault_names[f->kind], f->a, f->b, f->c);
    }
    int n_down = PLAN_MAX;
    while (n_down > 0 && p->down_ms[n_down - 1] == 0)
        n_down--;
    for (int i = 0; i < n_down; i++)
        fprintf(to, "down %" PRId64 "\n", p->down_ms[i]);
}

static bool read_line(struct plan *p, const char *line, uint64_t *ret_seed, int *n_down)
{
    struct fault f = { 0 };
    char name[32];
    if (line[0] == '#' || line[0] == '\n' || line[0] == '\0')
        return true;
    if (sscanf(line, "seed %" SCNu64, ret_seed) == 1)
        return true;
    if (sscanf(line, "down %" SCNd64, &f.a) == 1 && *n_down < PLAN_MAX) {
        p->down_ms[(*n_down)++] = f.a;
        return true;
    }
    if (sscanf(line, "%" SCNd64 " %31s %" SCNd64 " %" SCNd64 " %" SCNd64, &f.at_ms, name, &f.a, &f.b, &f.c) != 5)
        return false;
    for (int k = 0; k < FAULT_KINDS && p->n < PLAN_MAX; k++) {
        if (strcmp(name, fault_names[k]) == 0) {
            f.kind = (enum fault_kind)k;
            p->faults[p->n++] = f;
            return true;
        }
    }
    return false;
}

bool plan_read(struct plan *p, uint64_t *ret_seed, FILE *from)
{
    char line[256];
    int n_down = 0;
    memset(p, 0, sizeof *p);
    while (fgets(line, sizeof line, from) != NULL)
        if (!read_line(p, line, ret_seed, &n_down))
            return false;
    return true;
}
