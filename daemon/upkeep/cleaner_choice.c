/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How urgently a log wants to be cleaned, as one number: what may wait no longer comes before what is dirty, and that before
 * tombstones whose time has come; within each the share of dirty bytes decides. Pure; reads no clock.
 */
#include "daemon/upkeep/cleaner_choice.h"

#include "daemon/config/topic_config.h"

static double dirty_share(const struct clean_look *look)
{
    int64_t all = look->clean_bytes + look->dirty_bytes;
    return all == 0 ? 0 : (double)look->dirty_bytes / (double)all;
}

static bool has_waited_too_long(const struct topic_config *cfg, const struct clean_look *look, int64_t now_ms)
{
    return look->oldest_ms >= 0 && look->oldest_ms < now_ms &&
           now_ms - look->oldest_ms > cfg->max_compaction_lag_ms;
}

double cleaner_urgency(const struct topic_config *cfg, const struct clean_look *look, bool unfinished,
                       int64_t horizon_ms, int64_t now_ms)
{
    double share = dirty_share(look);

    if (look->dirty_bytes > 0 && (unfinished || has_waited_too_long(cfg, look, now_ms)))
        return 2 + share;
    if (look->dirty_bytes > 0 && share > cfg->min_cleanable_dirty_ratio)
        return 1 + share;
    if (horizon_ms >= 0 && horizon_ms <= now_ms && look->clean_bytes > 0)
        return 0.5;
    return 0;
}
