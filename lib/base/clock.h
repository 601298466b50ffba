/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KLOG_BASE_CLOCK_H
#define KLOG_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_mono_ns(void);
int64_t clock_mono_ms(void);
int64_t clock_wall_ms(void);  /* milliseconds since 1970, as record timestamps are */

/* a + b for moments and durations that may be as large as the type: what would overflow stays at its end. */
static inline int64_t time_add(int64_t a, int64_t b)
{
    int64_t sum;

    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

#endif
