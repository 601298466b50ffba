/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some space of a log directory that is kept back (the file `reserve`), so that a full disk can be emptied: to
 * begin a new segment, so that the old one may go, takes a few blocks. Who empties the disk spends it; from
 * then on nobody else may write until it could be set aside again, or the space would be gone in no time.
 * Thread-safe.
 */
#ifndef KLOG_STORE_RESERVE_H
#define KLOG_STORE_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/world.h"
#include "lib/store/ranks.h"

struct reserve {
    const struct world *world;
    int dirfd; /* -1: nothing is kept back */
    struct lock mu;
    atomic_bool spent;
    bool kept;        /* guarded by mu, as is: */
    int64_t tried_ms; /* when it was last tried to set it aside again */
};

void reserve_init(struct reserve *r, const struct world *w);
void reserve_done(struct reserve *r);
/* Sets it aside in this directory from now on; when there is no room for it, it counts as spent. Blocks. */
void reserve_keep(struct reserve *r, int dirfd);
/* True: there is a little room now. Blocks. */
bool reserve_spend(struct reserve *r);
/* While it is, only what empties the disk may write. Now and then this looks whether there is room again. */
bool reserve_is_spent(struct reserve *r);

#endif
