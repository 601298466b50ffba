/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of one simulated process (lib/loop/exec.h): loops, workers, threads and conditions are fibers. A loop is a fiber
 * that runs loop_run(); it gives way in its poller.
 */
#ifndef KLOG_SIM_SIMEXEC_H
#define KLOG_SIM_SIMEXEC_H

#include "lib/loop/exec.h"
#include "tests/sim/fiber.h"
#include "tests/sim/simclock.h"

struct simexec {
    struct exec exec; /* first: what the world hands out */
    struct fibers fibers;
    const struct simclock *clock;
};

void simexec_init(struct simexec *e, struct sim *s, const struct simclock *clock, struct rnd rnd);

#endif
