/* SPDX-License-Identifier: Apache-2.0 */
/* Which log is cleaned next. Pure. */
#ifndef KLOG_DAEMON_CLEANER_CHOICE_H
#define KLOG_DAEMON_CLEANER_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/store/clean.h"

#define HORIZON_NONE    (-1) /* no tombstone waits for its time */
#define HORIZON_UNKNOWN 0    /* one may: a pass will tell */

struct topic_config;

/* 0: it is not due; else the larger, the sooner. First what max.compaction.lag.ms demands and what an earlier
 * pass could not get done, then by the share of dirty bytes (if over min.cleanable.dirty.ratio), then logs
 * with tombstones whose time has come. */
double cleaner_urgency(const struct topic_config *cfg, const struct clean_look *look, bool unfinished,
                       int64_t horizon_ms, int64_t now_ms);

#endif
