/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a test that has the real one, but for the disk. */
#ifndef KLOG_UNIT_WORLD_H
#define KLOG_UNIT_WORLD_H

#include "lib/base/world.h"
#include "lib/loop/exec.h"

static inline const struct world *test_world(void)
{
    static struct world w;
    if (w.exec == NULL)
        world_init_real(&w);
    return &w;
}

#endif
