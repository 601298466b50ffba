/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rot: what a disk does to bytes that were safe. A bit turns, a sector cannot be read any more, a sector has what stands in
 * another. It comes while the broker is down, since what a process has looked at once it need not look at again (S15).
 *
 * The rule for the broker is: nothing wrong is served, and what is missing is told. For the checkers: the truth knows which
 * offsets of a partition the rotten bytes were of; only those may be missing.
 *
 * There is one rotten place in a .log at most, below the flush point that the disk knows, and good batches behind it: elsewhere the
 * log may rightly come up shorter (S9, S10). Files that can be made anew from the log may rot at any time. The registers, and whose the
 * directory is, are refused by a start, never believed; then they come from a backup.
 */
#ifndef KLOG_SIM_ROT_H
#define KLOG_SIM_ROT_H

#include "tests/sim/play.h"

/* a, b: which of what there is; b is ROT_OFFSET, ROT_REGISTERS, or another. */
enum { ROT_OFFSET = 6, ROT_REGISTERS = 7 };
void rot(struct play *p, int64_t a, int64_t b);
/* A bit of a log, now, while the broker runs. */
void rot_beneath(struct play *p, int64_t a);
/* A start has failed: if the registers, or meta.properties, have rotted, they are as they were. */
bool rot_taken_back(struct play *p);

#endif
