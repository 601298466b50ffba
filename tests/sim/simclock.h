/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of one simulated machine: the monotonic one begins where each power-up puts it and goes a little too fast or too
 * slow; the wall clock has an offset of its own and may be set, forwards or back. Both stand still during a step.
 */
#ifndef KLOG_SIM_SIMCLOCK_H
#define KLOG_SIM_SIMCLOCK_H

#include "lib/base/world.h"
#include "tests/sim/sim.h"

#define SIM_WALL_START_MS 1700000000000LL

struct simclock {
    struct clock clock; /* first */
    const struct sim *sim;
    int64_t up_ns;          /* of the simulation, when the machine got power */
    int64_t mono_start_ns;  /* what its clock showed then */
    int64_t rate_ppb;       /* too fast by */
    int64_t wall_offset_ms; /* from the true time */
};

/* wall_offset_ms: as it was left by the last life. */
void simclock_init(struct simclock *c, const struct sim *s, struct rnd *rnd, int64_t wall_offset_ms);
void simclock_set(struct simclock *c, int64_t by_ms); /* the wall clock jumps */
/* When, in simulated time, the monotonic clock will show that; INT64_MAX for what is never. */
int64_t simclock_when_ms(const struct simclock *c, int64_t mono_ms);

#endif
