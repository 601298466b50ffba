/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two clocks. Durations and deadlines are of CLOCK_MONOTONIC; only what records, logs and people see is
 * of the wall clock, which may jump. Any thread; no state. Cores do not include this: they are given the
 * time, and what runs in a simulated world asks that world's clock (world.h).
 */
#include "lib/base/clock.h"

#include <time.h>

#include "lib/base/world.h"

static int64_t clock_read_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

int64_t clock_wall_ms(void)
{
    return clock_read_ns(CLOCK_REALTIME) / 1000000;
}

static int64_t real_mono_ns(const struct clock *c)
{
    (void)c;
    return clock_mono_ns();
}

static int64_t real_wall_ms(const struct clock *c)
{
    (void)c;
    return clock_wall_ms();
}

const struct clock clock_real = { .mono_ns = real_mono_ns, .wall_ms = real_wall_ms };
