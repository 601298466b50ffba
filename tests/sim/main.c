/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator: runs seeds.
 *
 *     sim [--seed N] [--seeds A..B] [--jobs J] [--trace] [--log] [--plan FILE] [--print-plan] [--shrink] [--twice PERCENT]
 *         [--failures N] [--hashes] [--log-only] [--copies] [--cluster] [--bug RULE] [--all-marks]
 *
 * Many seeds run in processes of their own, a fork for each few hundred (what a crashed broker had in memory is never freed), J
 * of them at a time. A seed that fails is named with the command that repeats it. --trace prints each event, --log the
 * broker's own lines. --log-only runs a log without a broker (logplay.h), --copies one that
 * follows, --cluster several brokers (fleet.h), of whose rules --bug switches one off. --all-marks fails when something that is counted was
 * never come past. --shrink leaves out faults of a failing seed as long as it fails by the same rule, and prints the plan
 * that is left.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/plog_check.h"
#include "tests/sim/fleet.h"
#include "tests/sim/logplay.h"
#include "tests/sim/marks.h"
#include "tests/sim/play.h"

enum {
    SEEDS_A_FORK = 100,
    SEED_SECONDS = 60,     /* of processor time */
    STUCK_SECONDS = 1800, /* and of the clock: it may run at idle priority */
};

static struct options {
    uint64_t from, to;
    int jobs;
    bool trace, log, print_plan, shrink, hashes, log_only, copies, cluster, all_marks;
    int twice, failures; /* percent; after so many no more is begun */
    const char *plan_file, *bug; /* the rule that is switched off: to be found */
    struct plan plan;
} opt = { .from = 1, .to = 1, .jobs = 1, .twice = 1, .failures = 10 };

/* Shared with the children. */
static struct shared {
    _Atomic uint64_t next, n_done;
    _Atomic int64_t sim_ns, n_lives, n_crashes, n_power_cuts, acked, read, steps;
    _Atomic int n_failed;
} *shared;

static void usage(void)
{
    fprintf(stderr, "usage: sim [--seed N] [--seeds A..B] [--jobs J] [--trace] [--log] [--plan FILE] [--print-plan] [--shrink]\n"
                    "           [--twice PERCENT] [--failures N] [--hashes] [--log-only] [--copies] [--cluster] [--bug RULE] [--all-marks]\n");
    exit(2);
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void on_alarm(int sig)
{
    static const char text[] = "the seed takes too long: an endless loop, or a lock of the real thread\n";
    (void)sig;
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(72);
    abort();
}

/* An endless loop ends by the first, a real lock by the second. */
static void watch(int cpu_seconds, unsigned seconds)
{
    struct itimerval t = { .it_value.tv_sec = cpu_seconds };
    setitimer(ITIMER_PROF, &t, NULL);
    alarm(seconds);
}

static void play(uint64_t seed, unsigned prints, struct play_figures *ret)
{
    const struct plan *plan = opt.plan_file != NULL ? &opt.plan : NULL;
    if (opt.log_only)
        logplay_run(seed, opt.copies, prints, ret);
    else if (opt.cluster)
        fleet_run(seed, plan, prints, ret);
    else
        play_run(seed, plan, prints, ret);
}

static void plan_of(uint64_t seed, struct plan *ret)
{
    if (opt.cluster)
        fleet_plan_of(seed, ret);
    else
        play_plan_of(seed, ret);
}

static void run_one(uint64_t seed)
{
    struct play_figures f, again;
    unsigned prints = (opt.trace ? PLAY_TRACE : 0) | (opt.log ? PLAY_LINES : 0);
    watch(SEED_SECONDS, STUCK_SECONDS);
    play(seed, prints, &f);
    if (opt.hashes)
        printf("%" PRIu64 " %016" PRIx64 "\n", seed, f.hash);
    if (rnd_mix(seed) % 100 < (uint64_t)opt.twice) {
        play(seed, 0, &again);
        if (again.hash != f.hash) {
            printf("seed %" PRIu64 ": HASH: the second run is another one\n", seed);
            fflush(stdout);
            _exit(SIM_EXIT_FAILED);
        }
    }
    watch(0, 0);
    atomic_fetch_add(&shared->sim_ns, f.sim_ns);
    atomic_fetch_add(&shared->n_lives, f.n_lives);
    atomic_fetch_add(&shared->n_crashes, f.n_crashes);
    atomic_fetch_add(&shared->n_power_cuts, f.n_power_cuts);
    atomic_fetch_add(&shared->acked, f.acked);
    atomic_fetch_add(&shared->read, f.read);
    atomic_fetch_add(&shared->steps, (int64_t)f.steps);
    atomic_fetch_add(&shared->n_done, 1);
}

/* ---- many seeds ---- */
struct child {
    pid_t pid;
    _Atomic uint64_t *seed; /* shared: the one it is at */
};

static void child_main(struct child *ch)
{
    for (int i = 0; i < SEEDS_A_FORK && atomic_load(&shared->n_failed) < opt.failures; i++) {
        uint64_t seed = atomic_fetch_add(&shared->next, 1);
        if (seed > opt.to)
            break;
        atomic_store(ch->seed, seed);
        run_one(seed);
    }
    fflush(stdout);
    _exit(0);
}

static void note_failure(uint64_t seed, int status)
{
    atomic_fetch_add(&shared->n_failed, 1);
    if (WIFSIGNALED(status))
        printf("seed %" PRIu64 ": ended by signal %d (%s)\n", seed, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != SIM_EXIT_FAILED)
        printf("seed %" PRIu64 ": ended with status %d\n", seed, WEXITSTATUS(status));
    printf("repeat: tests/sim/sim%s --seed %" PRIu64 " --log\n", opt.copies ? " --copies" : opt.log_only ? " --log-only" : opt.cluster ? " --cluster" : "", seed);
    fflush(stdout);
}

static bool begin_child(struct child *ch)
{
    if (atomic_load(&shared->next) > opt.to || atomic_load(&shared->n_failed) >= opt.failures)
        return false;
    fflush(stdout);
    ch->pid = fork();
    KCHECK(ch->pid >= 0);
    if (ch->pid == 0)
        child_main(ch);
    return true;
}

static void run_many(void)
{
    struct child *children = xcalloc((size_t)opt.jobs, sizeof *children);
    _Atomic uint64_t *seeds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int running = 0, status;
    for (int i = 0; i < opt.jobs; i++) {
        children[i].seed = &seeds[i];
        running += begin_child(&children[i]);
    }
    while (running > 0) {
        pid_t pid = wait(&status);
        for (int i = 0; i < opt.jobs; i++) {
            if (children[i].pid != pid)
                continue;
            running--;
            if (status != 0)
                note_failure(atomic_load(children[i].seed), status);
            running += begin_child(&children[i]);
        }
    }
    free(children);
}

static void print_figures(double took)
{
    printf("%" PRIu64 " seeds, %d failed, %.1f s (%.0f seeds/s); %.1f simulated hours, %" PRId64 " steps, %" PRId64 " lives, %" PRId64
           " kills, %" PRId64 " power cuts, %" PRId64 " records acknowledged, %" PRId64 " read\n",
           atomic_load(&shared->n_done), atomic_load(&shared->n_failed), took, (double)shared->n_done / (took > 0 ? took : 1),
           (double)shared->sim_ns / 3600e9, shared->steps, shared->n_lives, shared->n_crashes, shared->n_power_cuts, shared->acked,
           shared->read);
}

/* ---- shrinking ---- */
/* The rule that a run fails by, in ret; empty: it does not fail. */
static void rule_of(uint64_t seed, const struct plan *plan, char ret[16])
{
    char text[4096] = "";
    size_t n = 0;
    int fds[2], status;
    ret[0] = '\0';
    fflush(stdout);
    if (pipe(fds) < 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        struct play_figures f;
        dup2(fds[1], STDOUT_FILENO);
        watch(SEED_SECONDS, STUCK_SECONDS);
        if (opt.cluster)
            fleet_run(seed, plan, 0, &f);
        else
            play_run(seed, plan, 0, &f);
        _exit(0);
    }
    close(fds[1]);
    for (;;) { /* the end of what it says */
        char some[4096];
        ssize_t k = read(fds[0], some, sizeof some);
        if (k <= 0)
            break;
        size_t keep = MIN(sizeof text - 1, n + (size_t)k) - MIN((size_t)k, sizeof text - 1);
        memmove(text, text + n - keep, keep);
        memcpy(text + keep, some + k - MIN((size_t)k, sizeof text - 1), MIN((size_t)k, sizeof text - 1));
        n = keep + MIN((size_t)k, sizeof text - 1);
        text[n] = '\0';
    }
    close(fds[0]);
    waitpid(pid, &status, 0);
    if (status == 0)
        return;
    char *at = strstr(text, "seed ");
    for (char *next; at != NULL && (next = strstr(at + 1, "seed ")) != NULL;)
        at = next;
    if (at == NULL || sscanf(at, "seed %*u: %15[^:]", ret) != 1)
        snprintf(ret, 16, "signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* Leaves out every n-th part of the faults in turn (ddmin). */
static void shrink(uint64_t seed)
{
    struct plan best = opt.plan, all;
    char rule[16], other[16];
    if (opt.plan_file == NULL) {
        plan_of(seed, &all);
        best = all;
    }
    rule_of(seed, &best, rule);
    if (rule[0] == '\0') {
        printf("seed %" PRIu64 " does not fail\n", seed);
        return;
    }
    for (int size = MAX(1, best.n / 2); size > 0;) {
        bool smaller = false;
        for (int from = 0; from < best.n;) {
            struct plan less = best;
            int k = MIN(size, best.n - from);
            memmove(&less.faults[from], &less.faults[from + k], (size_t)(best.n - from - k) * sizeof less.faults[0]);
            less.n -= k;
            rule_of(seed, &less, other);
            if (strcmp(rule, other) == 0) {
                best = less;
                smaller = true;
            } else {
                from += k;
            }
        }
        if (!smaller || size > best.n)
            size /= 2;
    }
    printf("# %s\n", rule);
    plan_print(&best, seed, stdout);
}

/* ---- the command line ---- */
static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(a, "--trace") == 0)
            opt.trace = true;
        else if (strcmp(a, "--log") == 0)
            opt.log = true;
        else if (strcmp(a, "--print-plan") == 0)
            opt.print_plan = true;
        else if (strcmp(a, "--shrink") == 0)
            opt.shrink = true;
        else if (strcmp(a, "--hashes") == 0)
            opt.hashes = true;
        else if (strcmp(a, "--log-only") == 0)
            opt.log_only = true;
        else if (strcmp(a, "--copies") == 0)
            opt.log_only = opt.copies = true;
        else if (strcmp(a, "--cluster") == 0)
            opt.cluster = true;
        else if (strcmp(a, "--bug") == 0 && fleet_switch_off(value))
            opt.bug = argv[++i];
        else if (strcmp(a, "--all-marks") == 0)
            opt.all_marks = true;
        else if (strcmp(a, "--seed") == 0 && sscanf(value, "%" SCNu64, &opt.from) == 1)
            opt.to = opt.from, i++;
        else if (strcmp(a, "--seeds") == 0 && sscanf(value, "%" SCNu64 "..%" SCNu64, &opt.from, &opt.to) == 2)
            i++;
        else if (strcmp(a, "--jobs") == 0 && sscanf(value, "%d", &opt.jobs) == 1 && opt.jobs > 0 && opt.jobs <= 256)
            i++;
        else if (strcmp(a, "--twice") == 0 && sscanf(value, "%d", &opt.twice) == 1)
            i++;
        else if (strcmp(a, "--failures") == 0 && sscanf(value, "%d", &opt.failures) == 1)
            i++;
        else if (strcmp(a, "--plan") == 0 && i + 1 < argc)
            opt.plan_file = argv[++i];
        else
            usage();
    }
}

static void read_plan(void)
{
    FILE *f = fopen(opt.plan_file, "r");
    if (f == NULL || !plan_read(&opt.plan, &opt.from, f)) {
        fprintf(stderr, "sim: %s: %s\n", opt.plan_file, f == NULL ? strerror(errno) : "this is no plan");
        exit(2);
    }
    fclose(f);
    opt.to = opt.from;
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    if (opt.plan_file != NULL)
        read_plan();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    KCHECK(shared != MAP_FAILED);
    marks_share();
    signal(SIGALRM, on_alarm);
    signal(SIGPROF, on_alarm);
    json_object_seed(1);
    plog_after_call = plog_check;
    atomic_store(&shared->next, opt.from);
    if (opt.print_plan) {
        struct plan plan;
        plan_of(opt.from, &plan);
        plan_print(&plan, opt.from, stdout);
        return 0;
    }
    double began = seconds();
    if (opt.shrink)
        shrink(opt.from);
    else if (opt.from == opt.to)
        run_one(opt.from);
    else
        run_many();
    if (opt.shrink)
        return 0;
    print_figures(seconds() - began);
    if (opt.bug != NULL) {
        printf("without %s: %s\n", opt.bug, atomic_load(&shared->n_failed) > 0 ? "found" : "NOT FOUND");
        return atomic_load(&shared->n_failed) == 0;
    }
    int n_never = opt.from != opt.to ? marks_print(stdout, opt.log_only ? MARKS_LOG : opt.cluster ? MARKS_FLEET : MARKS_BROKER) : 0;
    if (opt.all_marks && n_never > 0)
        printf("%d of these were never come past\n", n_never);
    return atomic_load(&shared->n_failed) > 0 || (opt.all_marks && n_never > 0);
}
