/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of times. Pure; histogram_add() by the one thread that a histogram belongs to, all else by any. */
#include "lib/metrics/histogram.h"

#include <math.h>

const uint32_t histogram_bounds_us[HISTOGRAM_BOUNDS] = { 100,    250,    500,    1000,    2500,    5000,    10000,   25000,
                                                         50000,  100000, 250000, 500000,  1000000, 2500000, 5000000, 10000000 };

void histogram_add(struct histogram *h, int64_t us)
{
    int i = 0;
    while (i < HISTOGRAM_BOUNDS && us > (int64_t)histogram_bounds_us[i])
        i++;
    counter_add(&h->n[i], 1);
    counter_add(&h->sum_us, us < 0 ? 0 : (uint64_t)us);
}

void histogram_collect(struct histogram_sum *to, const struct histogram *h)
{
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t n = counter_get(&h->n[i]);
        to->n[i] += n;
        to->count += n;
    }
    to->sum_us += counter_get(&h->sum_us);
}

uint64_t histogram_quantile_us(const struct histogram_sum *s, double q)
{
    uint64_t wanted = (uint64_t)ceil(q * (double)s->count), seen = 0;
    if (s->count == 0)
        return 0;
    for (int i = 0; i < HISTOGRAM_BOUNDS; i++) {
        seen += s->n[i];
        if (seen >= wanted && seen > 0)
            return histogram_bounds_us[i];
    }
    return UINT64_MAX;
}
