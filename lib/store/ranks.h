/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the store's locks are taken; what a log's are for stands in plog_int.h. */
#ifndef KLOG_STORE_RANKS_H
#define KLOG_STORE_RANKS_H

#include "lib/base/lock.h"

enum {
    LOCK_RANK_SLOW = LOCK_RANK_STORE,
    LOCK_RANK_APPEND,
    LOCK_RANK_MARK,
    LOCK_RANK_FIX,
    LOCK_RANK_PLOG,
    LOCK_RANK_RESERVE, /* of a directory */
    LOCK_RANK_FILES,   /* the cache of a directory's files */
};

#endif
