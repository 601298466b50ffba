/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which klogd's locks are taken; those of the store come after them (lib/base/lock.h). */
#ifndef KLOG_DAEMON_RANKS_H
#define KLOG_DAEMON_RANKS_H

#include "lib/base/lock.h"

enum {
    LOCK_RANK_CLEANER = LOCK_RANK_DAEMON,
    LOCK_RANK_SHARD, /* of the groups */
    LOCK_RANK_COORDINATOR,
    LOCK_RANK_CHANGE, /* of a partition */
    LOCK_RANK_PARTITION,
    LOCK_RANK_LANE, /* of the flusher */
    /* Nothing is taken under these. */
    LOCK_RANK_IMAGE,
    LOCK_RANK_REGISTERS,
    LOCK_RANK_PARTITIONS,
    LOCK_RANK_LOGDIRS,
    LOCK_RANK_SERVER,
    LOCK_RANK_FOLLOW, /* letters to a fetcher */
    LOCK_RANK_THROTTLE,
};

#endif
