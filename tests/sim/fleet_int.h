/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of fleet.h. */
#ifndef KLOG_SIM_FLEET_INT_H
#define KLOG_SIM_FLEET_INT_H

#include "tests/sim/fleet.h"

void fleet_plan_draw(struct plan *p, uint64_t seed, const struct fleet_swarm *sw);

#endif
