/* SPDX-License-Identifier: Apache-2.0 */
/* KlogStat for any number of partitions: building the question, taking the answer apart. Pure. */
#ifndef KLOG_FUSE_STAT_CALL_H
#define KLOG_FUSE_STAT_CALL_H

#include "fuse/partition/pfile.h"
#include "lib/wire/wire.h"

/* Sorts files by topic and partition and puts the question together in arena memory. `known`: give each
 * partition's watched_end, so that the answer waits until one of them ends elsewhere. */
void stat_build(struct arena *a, struct pfile **files, size_t n, int32_t max_wait_ms, bool known,
                struct klog_stat_request *ret);
/* f for each of the files (sorted by stat_build) that the answer has. */
void stat_each(const struct klog_stat_response *resp, struct pfile **files, size_t n,
               void (*f)(void *arg, struct pfile *file, enum kerr err, const struct ends *e), void *arg);

#endif
