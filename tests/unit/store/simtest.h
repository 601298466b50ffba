/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log on a simulated disk (tests/sim/simdisk.h), for tests that stop it at any call. Each disk is another seed; what
 * goes wrong is told with it.
 */
#ifndef KLOG_SIMTEST_H
#define KLOG_SIMTEST_H

#include "storetest.h"

#include "tests/sim/rand.h"
#include "tests/sim/simdisk.h"

/* A new, empty disk. What it does by itself is drawn: how names become durable, how often it writes back early, and whether
 * reads and writes do parts. */
static inline struct simdisk *disk_new(struct fixture *f, uint64_t seed)
{
    struct rnd r = rnd_of(seed, RND_SWARM, 0);
    const uint32_t often[] = { 0, 0, 20000, 300000 };
    const struct simdisk_config cfg = { .seed = seed, .journal = rnd_one_in(&r, 2) };
    const struct simdisk_chances chances = { .part = often[rnd_below(&r, 4)], .write_back = often[rnd_below(&r, 4)] };
    struct simdisk *d = simdisk_new(&cfg);

    simdisk_set_chances(d, &chances);
    memcpy(f->real_path, f->path, sizeof f->path);
    snprintf(f->path, sizeof f->path, "/d");
    f->io = simdisk_io(d);
    return d;
}

static inline void disk_free(struct fixture *f, struct simdisk *d)
{
    memcpy(f->path, f->real_path, sizeof f->path);
    f->io = NULL;
    simdisk_free(d);
}

/* Calls that change something, and those that take room. */
enum {
    DISK_CHANGES = (1 << SIMDISK_OPS) - (1 << SIMDISK_CREATE),
    DISK_GROWS = 1 << SIMDISK_CREATE | 1 << SIMDISK_WRITE | 1 << SIMDISK_ALLOCATE,
    DISK_OPENS = 1 << SIMDISK_OPEN | 1 << SIMDISK_CREATE,
};

/* From call `at` of these on, n of them answer -eno. */
static inline void disk_fails(struct simdisk *d, unsigned ops, int eno, int64_t at, int64_t n)
{
    const struct simdisk_fault fault = { .ops = ops, .at = at, .n = n, .eno = eno, .part = true };
    simdisk_plan(d, &fault, 1);
}

/* How a life ends. */
enum stop { STOP_KILL, STOP_CUT }; /* STOP_CUT + enum simdisk_cut */

static inline void end_life(struct simdisk *d, int how)
{
    if (how == STOP_KILL)
        simdisk_kill(d);
    else
        simdisk_power_cut(d, (enum simdisk_cut)(how - STOP_CUT));
}

/* Seeds 0 to n - 1; SEED=N for one that failed (it is printed then), or SEED=N SEEDS=M for others. */
static inline void each_seed(struct fixture *f, uint64_t n, void (*run)(struct fixture *f, uint64_t seed))
{
    const char *from = getenv("SEED"), *many = getenv("SEEDS");
    uint64_t first = from == NULL ? 0 : strtoull(from, NULL, 10);

    n = many != NULL ? strtoull(many, NULL, 10) : from != NULL ? 1 : n / (uint64_t)test_step();
    for (uint64_t seed = first; seed < first + n; seed++) {
        f->seed = (int64_t)seed;
        run(f, seed);
        f->seed = -1;
    }
}

/* The log and its directory are left, as by SIGKILL. */
static inline void drop(struct fixture *f)
{
    if (f->l != NULL)
        plog_close(f->l, false, 0);
    datadir_close(f->dd, false);
    f->l = NULL;
    f->dd = NULL;
}


#endif
