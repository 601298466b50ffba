/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks as linear functions of simulated time; see simclock.h. */
#include "tests/sim/simclock.h"

#include "lib/base/attr.h"

static int64_t stretched(int64_t ns, int64_t ppb)
{
    return ns + (int64_t)((__int128)ns * ppb / 1000000000);
}

static int64_t mono_ns(const struct clock *clock)
{
    const struct simclock *c = container_of(clock, struct simclock, clock);
    return c->mono_start_ns + stretched(sim_now(c->sim) - c->up_ns, c->rate_ppb);
}

static int64_t wall_ms(const struct clock *clock)
{
    const struct simclock *c = container_of(clock, struct simclock, clock);
    return SIM_WALL_START_MS + sim_now(c->sim) / SIM_MS + c->wall_offset_ms;
}

void simclock_init(struct simclock *c, const struct sim *s, struct rnd *rnd, int64_t wall_offset_ms)
{
    *c = (struct simclock){
        .clock = { .mono_ns = mono_ns, .wall_ms = wall_ms },
        .sim = s,
        .up_ns = sim_now(s),
        .mono_start_ns = rnd_range(rnd, SIM_S, 1000000 * SIM_S),
        .rate_ppb = rnd_range(rnd, -200000, 200000),
        .wall_offset_ms = wall_offset_ms,
    };
}

void simclock_set(struct simclock *c, int64_t by_ms)
{
    c->wall_offset_ms += by_ms;
}

int64_t simclock_when_ms(const struct simclock *c, int64_t ms)
{
    if (ms >= INT64_MAX / SIM_MS)
        return INT64_MAX;
    int64_t left = ms * SIM_MS - mono_ns(&c->clock);
    if (left <= 0)
        return sim_now(c->sim);
    /* one more, so that the clock does show it then */
    int64_t at = sim_now(c->sim) + stretched(left, -c->rate_ppb) + left / 10000000 + 2;
    return at;
}
