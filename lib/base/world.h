/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world as a program sees it: clock, random, machine, who runs loops and jobs, network, disk. Handed down from main()
 * (or from a test) to whoever needs it; nobody reaches for a clock, a thread, a socket or a file in another way. That is
 * what lets several brokers run in one process under a clock, disk and network that a seed decides (tests/sim).
 *
 * Filled once, before anything is made with it, and outlives all of that; then immutable, any thread. The members that this
 * folder knows nothing of are declared where they live: lib/loop/exec.h, lib/loop/net.h, lib/store/io.h.
 */
#ifndef KLOG_BASE_WORLD_H
#define KLOG_BASE_WORLD_H

#include <stddef.h>
#include <stdint.h>

struct exec;
struct net;
struct store_io;

/* Any thread; never fails; mono never goes back. */
struct clock {
    int64_t (*mono_ns)(const struct clock *c);
    int64_t (*wall_ms)(const struct clock *c); /* milliseconds since 1970, as record timestamps are; may jump */
};

/* Any thread; never fails. */
struct random {
    void (*fill)(struct random *r, void *p, size_t n);
};

struct machine {
    int64_t (*fd_limit)(const struct machine *m); /* RLIMIT_NOFILE; INT64_MAX: none */
    int64_t (*fds_open)(const struct machine *m); /* how many descriptors are open now */
    int (*cores)(const struct machine *m);
    /* Its name as other machines may know it, ended by '\0'; "localhost" when it has none. */
    void (*host_name)(const struct machine *m, char *ret, size_t size);
    /* The process ends at once, with that exit status: nothing is flushed. Does not return in a program; does in a
     * simulated one, from whose world nothing goes out any more. */
    void (*die)(const struct machine *m, int status);
};

struct world {
    const struct clock *clock;
    struct random *random;
    const struct machine *machine;
    struct exec *exec;
    const struct net *net;
    const struct store_io *io; /* NULL in programs without a store */
};

extern const struct clock clock_real;
extern struct random random_real;
extern const struct machine machine_real;

static inline int64_t world_mono_ns(const struct world *w)
{
    return w->clock->mono_ns(w->clock);
}

static inline int64_t world_mono_ms(const struct world *w)
{
    return world_mono_ns(w) / 1000000;
}

static inline int64_t world_wall_ms(const struct world *w)
{
    return w->clock->wall_ms(w->clock);
}

static inline void world_random(const struct world *w, void *p, size_t n)
{
    w->random->fill(w->random, p, n);
}

#endif
