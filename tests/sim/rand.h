/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers by counting: number n of a stream is a hash of (seed, entity, n), and each entity (a link, a loop, a disk, a
 * client, the plan) has a stream of its own. So leaving out one fault, or one draw more of one entity, shifts nobody else's
 * numbers, and a failing seed can be made smaller.
 */
#ifndef KLOG_SIM_RAND_H
#define KLOG_SIM_RAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rnd {
    uint64_t key, n;
};

/* Who draws; `which` tells those of one kind apart. */
enum rnd_kind {
    RND_PLAN = 1,
    RND_SWARM,
    RND_ORDER, /* of steps at one time, and their jitter */
    RND_CLOCK,
    RND_BYTES, /* what getrandom would give */
    RND_JOBS,
    RND_IO, /* latencies */
    RND_DISK,
    RND_LINK,
    RND_SOCKETS,
    RND_CLIENT,
    RND_CUT,
    RND_ROT,
    RND_LIFE, /* settings of a life */
    RND_STORE,
    RND_REGISTERS,
};

static inline uint64_t rnd_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline struct rnd rnd_of(uint64_t seed, enum rnd_kind kind, uint64_t which)
{
    uint64_t key = rnd_mix(seed + 0x9e3779b97f4a7c15u);
    key = rnd_mix(key ^ ((uint64_t)kind << 56) ^ which);
    return (struct rnd){ .key = key };
}

static inline uint64_t rnd_u64(struct rnd *r)
{
    return rnd_mix(r->key + ++r->n * 0x9e3779b97f4a7c15u);
}

/* 0 .. n - 1; 0 for n = 0 */
static inline uint64_t rnd_below(struct rnd *r, uint64_t n)
{
    return n == 0 ? 0 : (uint64_t)(((unsigned __int128)rnd_u64(r) * n) >> 64);
}

/* lo .. hi */
static inline int64_t rnd_range(struct rnd *r, int64_t lo, int64_t hi)
{
    return lo + (int64_t)rnd_below(r, (uint64_t)(hi - lo) + 1);
}

static inline bool rnd_one_in(struct rnd *r, uint64_t n)
{
    return rnd_below(r, n) == 0;
}

/* In so many of a million cases. */
static inline bool rnd_ppm(struct rnd *r, uint64_t ppm)
{
    return rnd_below(r, 1000000) < ppm;
}

/* lo .. hi, each order of magnitude (of two) as likely as the others; lo > 0. */
static inline int64_t rnd_log(struct rnd *r, int64_t lo, int64_t hi)
{
    int bits = 0;
    while (hi >> (bits + 1) >= lo)
        bits++;
    int64_t from = lo << rnd_below(r, (uint64_t)bits + 1);
    int64_t to = from > hi / 2 ? hi : 2 * from - 1;
    return rnd_range(r, from, to < from ? from : to);
}

#endif
