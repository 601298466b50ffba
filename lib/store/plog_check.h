/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a log in memory one that could be? Sums, orders, borders, index entries, epochs, producers, flush point and what was
 * stored of them, in time that grows with its segments. For tests and the simulator, after each public call; klogd never asks.
 */
#ifndef KLOG_STORE_PLOG_CHECK_H
#define KLOG_STORE_PLOG_CHECK_H

#include <stddef.h>

#include "lib/base/attr.h"

struct plog;

/* NULL, or what is wrong. The caller holds none of the log's locks. What the holder of slow_mu or append_mu may be about to
 * change is not looked at while one is held. */
const char *plog_problem(struct plog *l);
/* Ends the process when something is. */
void plog_check(struct plog *l);

/* Called by each public function of a log when it is done; set before the first log is opened. NULL in klogd. */
extern void (*plog_after_call)(struct plog *l);
static inline void plog_call_done(struct plog *l)
{
    if (unlikely(plog_after_call != NULL))
        plog_after_call(l);
}

#endif
