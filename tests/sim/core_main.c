/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core simulator: runs seeds.
 *
 *     core [--seed N] [--seeds A..B] [--jobs J] [--bug RULE] [--trace] [--plan FILE] [--print-plan] [--shrink] [--failures N] [--marks]
 *
 * A seed that fails is named with the rule. --shrink leaves out faults as long as it fails by the same one, and prints the plan
 * that is left. --bug switches a rule off (KLOG_BUG in daemon/replica) and expects to be found out: it prints the first seed
 * that fails, and ends with 1 where none does. --marks: ends with 1 if there is something that no seed has come past.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/core.h"

static struct options {
    uint64_t from, to;
    int jobs, failures;
    bool trace, print_plan, shrink, marks;
    const char *plan_file;
} opt = { .from = 1, .to = 1, .jobs = 1, .failures = 5 };

enum { JOBS_MAX = 64 };
static struct shared { /* with the children */
    _Atomic uint64_t next, n_done, steps, records, first_failed;
    _Atomic int n_failed;
    int64_t marks[JOBS_MAX][CORE_N_MARKS];
} *shared;

static struct core world;

static void usage(void)
{
    fprintf(stderr, "usage: core [--seed N] [--seeds A..B] [--jobs J] [--bug RULE] [--trace] [--plan FILE] [--print-plan] [--shrink]\n"
                    "            [--failures N] [--marks]\n");
    exit(2);
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void note_failure(uint64_t seed)
{
    uint64_t first = atomic_load(&shared->first_failed);
    while (seed < first && !atomic_compare_exchange_weak(&shared->first_failed, &first, seed))
        continue;
    atomic_fetch_add(&shared->n_failed, 1);
    if (core_bug == NULL)
        printf("seed %" PRIu64 ": %s: %s\nrepeat: tests/sim/core --seed %" PRIu64 " --trace\n", seed, core_failure.rule,
               core_failure.text, seed);
    fflush(stdout);
}

static void run_some(int job)
{
    core_marks = shared->marks[job];
    while (atomic_load(&shared->n_failed) < (core_bug != NULL ? 1 : opt.failures)) {
        uint64_t seed = atomic_fetch_add(&shared->next, 1);
        struct core_plan plan;
        if (seed > opt.to)
            break;
        core_plan_of(seed, &plan);
        if (!core_run(&world, &plan, false))
            note_failure(seed);
        atomic_fetch_add(&shared->n_done, 1);
        atomic_fetch_add(&shared->steps, world.steps);
        atomic_fetch_add(&shared->records, (uint64_t)world.n_committed);
    }
}

static bool run_many(void)
{
    int status, broken = 0;
    for (int i = 0; i < opt.jobs; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return false;
        if (pid == 0) {
            run_some(i);
            fflush(stdout);
            _exit(0);
        }
    }
    for (int i = 0; i < opt.jobs; i++) {
        wait(&status);
        broken += status != 0;
    }
    return broken == 0;
}

/* How many are 0. */
static int print_marks(void)
{
    int zeros = 0;
    for (int m = 0; m < CORE_N_MARKS; m++) {
        int64_t n = 0;
        for (int j = 0; j < opt.jobs; j++)
            n += shared->marks[j][m];
        printf("%12" PRId64 " %s\n", n, core_mark_names[m]);
        zeros += n == 0;
    }
    return zeros;
}

/* ---- one seed ---- */
static int run_one(const struct core_plan *plan)
{
    if (core_run(&world, plan, opt.trace))
        return 0;
    printf("seed %" PRIu64 ": %s: %s\n", plan->seed, core_failure.rule, core_failure.text);
    return 1;
}

/* Leaves out every n-th part of the faults in turn (ddmin). */
static int shrink(struct core_plan *best)
{
    char rule[sizeof core_failure.rule];
    if (core_run(&world, best, false)) {
        printf("seed %" PRIu64 " does not fail\n", best->seed);
        return 1;
    }
    memcpy(rule, core_failure.rule, sizeof rule);
    for (int size = best->n > 1 ? best->n / 2 : 1; size > 0;) {
        bool smaller = false;
        for (int from = 0; from < best->n;) {
            struct core_plan less = *best;
            int k = size < best->n - from ? size : best->n - from;
            memmove(&less.faults[from], &less.faults[from + k], (size_t)(best->n - from - k) * sizeof less.faults[0]);
            less.n -= k;
            if (!core_run(&world, &less, false) && strcmp(rule, core_failure.rule) == 0) {
                *best = less;
                smaller = true;
            } else {
                from += k;
            }
        }
        if (!smaller || size > best->n)
            size /= 2;
    }
    printf("# %s\n", rule);
    core_plan_print(best, stdout);
    return 0;
}

/* ---- the command line ---- */
static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(a, "--trace") == 0)
            opt.trace = true;
        else if (strcmp(a, "--print-plan") == 0)
            opt.print_plan = true;
        else if (strcmp(a, "--shrink") == 0)
            opt.shrink = true;
        else if (strcmp(a, "--marks") == 0)
            opt.marks = true;
        else if (strcmp(a, "--seed") == 0 && sscanf(value, "%" SCNu64, &opt.from) == 1)
            opt.to = opt.from, i++;
        else if (strcmp(a, "--seeds") == 0 && sscanf(value, "%" SCNu64 "..%" SCNu64, &opt.from, &opt.to) == 2)
            i++;
        else if (strcmp(a, "--jobs") == 0 && sscanf(value, "%d", &opt.jobs) == 1 && opt.jobs > 0 && opt.jobs <= JOBS_MAX)
            i++;
        else if (strcmp(a, "--failures") == 0 && sscanf(value, "%d", &opt.failures) == 1)
            i++;
        else if (strcmp(a, "--bug") == 0 && i + 1 < argc)
            core_bug = argv[++i];
        else if (strcmp(a, "--plan") == 0 && i + 1 < argc)
            opt.plan_file = argv[++i];
        else
            usage();
    }
}

static void read_plan(struct core_plan *ret)
{
    FILE *f = fopen(opt.plan_file, "r");
    if (f == NULL || !core_plan_read(ret, f)) {
        fprintf(stderr, "core: %s: %s\n", opt.plan_file, f == NULL ? strerror(errno) : "this is no plan");
        exit(2);
    }
    fclose(f);
}

static int main_many(void)
{
    double began = seconds();
    if (!run_many())
        return 1;
    double took = seconds() - began;
    int n_failed = atomic_load(&shared->n_failed);
    uint64_t n = atomic_load(&shared->n_done);
    if (core_bug != NULL && n_failed > 0) {
        printf("%s switched off: found at seed %" PRIu64 "\n", core_bug, atomic_load(&shared->first_failed));
        return 0;
    }
    printf("%" PRIu64 " seeds, %d failed, %.1f s (%.0f seeds/s), %" PRIu64 " steps, %" PRIu64 " records committed%s%s\n", n, n_failed, took,
           (double)n / (took > 0 ? took : 1), atomic_load(&shared->steps), atomic_load(&shared->records),
           core_bug == NULL ? "" : "; not found with this rule switched off: ", core_bug == NULL ? "" : core_bug);
    int zeros = opt.marks ? print_marks() : 0;
    return n_failed > 0 || core_bug != NULL || zeros > 0;
}

int main(int argc, char **argv)
{
    struct core_plan plan;
    parse(argc, argv);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    atomic_store(&shared->next, opt.from);
    atomic_store(&shared->first_failed, UINT64_MAX);
    if (opt.from != opt.to)
        return main_many();
    if (opt.plan_file != NULL)
        read_plan(&plan);
    else
        core_plan_of(opt.from, &plan);
    if (opt.print_plan)
        core_plan_print(&plan, stdout);
    return opt.print_plan ? 0 : opt.shrink ? shrink(&plan) : run_one(&plan);
}
