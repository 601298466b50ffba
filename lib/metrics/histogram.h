/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long things took, in buckets that are the same everywhere. Each thread that measures has histograms of its own, on cache
 * lines that no other one writes; whoever wants to know adds them up. Adding costs two stores and takes no lock.
 */
#ifndef KLOG_METRICS_HISTOGRAM_H
#define KLOG_METRICS_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { HISTOGRAM_BOUNDS = 16, HISTOGRAM_BUCKETS = HISTOGRAM_BOUNDS + 1 };

/* Between what one thread writes and what others use. */
#define CACHE_LINE 64

/* Upper bounds, inclusive, in microseconds: 100 us to 10 s. What took longer is in the last bucket, which has no bound. */
extern const uint32_t histogram_bounds_us[HISTOGRAM_BOUNDS];

struct histogram { /* one thread adds; any thread reads */
    atomic_ullong n[HISTOGRAM_BUCKETS];
    atomic_ullong sum_us;
};

/* What took us microseconds; below zero counts as 0. Its thread. */
void histogram_add(struct histogram *h, int64_t us);

struct histogram_sum {
    uint64_t n[HISTOGRAM_BUCKETS]; /* in each bucket alone */
    uint64_t count;                /* in all of them */
    uint64_t sum_us;
};
void histogram_collect(struct histogram_sum *to, const struct histogram *h); /* adds h to it. Any thread */
/* The least bound below which at least the share q (0 to 1) lies, in microseconds; 0 of nothing, UINT64_MAX above the last bound. */
uint64_t histogram_quantile_us(const struct histogram_sum *s, double q);

/* A counter that one thread writes and any reads: no locked instruction. */
static inline void counter_add(atomic_ullong *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}
static inline uint64_t counter_get(const atomic_ullong *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

#endif
