/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that can be told to fail, or to stop: every call that changes something is counted, and at the
 * chosen one it answers an error once, or everything ends there (as by SIGKILL or a power cut). It remembers
 * what was synced, so that after a power cut the directory can be put back to what a disk may hold then:
 *   - bytes of a file count once it was fsynced, names once their directory was;
 *   - of later bytes none, all, or some may be there (torn: a random prefix, pages or sectors that are zeros, the
 *     rest of the page that was synced in part); bytes that were synced and rewritten are the old or the new.
 * One thread. Real fsyncs are left out: nothing but this file's memory decides what survives.
 */
#ifndef KLOG_FAULTYIO_H
#define KLOG_FAULTYIO_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/store/io.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_ERROR, /* call `at` answers -eno, and so do the `repeat` calls after it */
    FAULT_OPEN,  /* the same, but opens are counted, all of them, and only they fail (EMFILE) */
    FAULT_STOP,  /* from call `at` on (half of it done, if it is a write) nothing happens any more */
};

struct faulty;
struct faulty *faulty_new(const char *root); /* root: directory whose files are watched; they count as synced */
void faulty_free(struct faulty *f);
const struct store_io *faulty_io(struct faulty *f);
void faulty_arm(struct faulty *f, enum fault_kind kind, int64_t at, int eno, int64_t repeat);
int64_t faulty_calls(const struct faulty *f);
bool faulty_stopped(const struct faulty *f);
bool faulty_hit(const struct faulty *f); /* the chosen call was reached */

enum after_cut { CUT_SYNCED_ONLY, CUT_TORN };
/* Puts the directory's files back to what survives. seed decides what is torn how. */
void faulty_power_cut(struct faulty *f, enum after_cut how, uint32_t seed);

#endif
