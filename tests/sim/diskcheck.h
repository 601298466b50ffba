/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of a run held against its truth, by a reader that is not klog's (diskread.h). What contradicts ends the run. */
#ifndef KLOG_SIM_DISKCHECK_H
#define KLOG_SIM_DISKCHECK_H

#include "tests/sim/play.h"

/* S4: the batch that is being acknowledged, is it on the disk? */
void diskcheck_acked(struct play *p, const struct truth_batch *b, int64_t base_offset);
/* After a clean stop: of every partition of which nothing has rotted all that must be there is, and nothing else. */
void diskcheck(struct play *p);

#endif
