/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time: one timer a shard, on its loop, for sessions and rebalances; one for all, on loops[0], for the age of
 * positions. A deadline that another thread learns of is posted to the shard's loop. The timer may ring early
 * and look again, which is cheaper than moving it with each heartbeat.
 */
#include <stdlib.h>

#include "daemon/config/broker_config.h"
#include "daemon/group/coordinator_int.h"
#include "daemon/group/group_log.h"
#include "lib/base/mem.h"

/* ---- sessions and rebalances ---- */

static void on_retime(struct task *t)
{
    struct shard *sh = container_of(t, struct shard, retime);

    lock_take(&sh->mu);
    if (sh->due_ms != INT64_MAX)
        timer_set(sh->loop, &sh->group_timer, sh->due_ms);
    lock_release(&sh->mu);
}

void shard_retime(struct shard *sh, int64_t due_ms)
{
    lock_assert_held(&sh->mu);
    if (due_ms >= sh->due_ms)
        return;
    sh->due_ms = due_ms;
    loop_post(sh->loop, &sh->retime);
}

static void on_groups_due(struct timer *t)
{
    struct shard *sh = container_of(t, struct shard, group_timer);
    struct group_entry *e;
    int64_t now = world_mono_ms(shard_world(sh)), due = INT64_MAX;

    lock_take(&sh->mu);
    sh->due_ms = INT64_MAX;
    if (sh->state == SHARD_ACTIVE)
        for (e = sh->groups; e != NULL; e = e->hh.next) {
            if (group_due_ms(e->group) <= now)
                group_tick(e->group, now);
            due = MIN(due, group_due_ms(e->group));
        }
    shard_retime(sh, due);
    lock_release(&sh->mu);
}

void shard_timer_init(struct shard *sh)
{
    sh->due_ms = INT64_MAX;
    sh->retime.cb = on_retime;
    sh->group_timer.cb = on_groups_due;
}

/* ---- the age of positions ---- */

static void on_expired_written(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    struct committed *gone = arg;

    if (err == KERR_NONE)
        for (struct committed_offset *o = gone->table; o != NULL; o = o->hh.next)
            committed_remove(&e->offsets, o->topic, o->partition, base_offset);
    committed_done(gone);
    free(gone);
}

/* The tombstones of what has expired; *ret_gone names the same. */
static void collect_expired(struct group_entry *e, int64_t retention_ms, struct batch_builder *b,
                            struct committed *ret_gone)
{
    int64_t now = world_wall_ms(shard_world(e->shard));
    struct group_topics subscribed = { 0 };

    if (e->group->state == GROUP_STABLE)
        group_topics_init(&subscribed, e->group);
    for (struct committed_offset *o = e->offsets.table; o != NULL; o = o->hh.next)
        if (committed_expired(e->group, &subscribed, o, retention_ms, now)) {
            group_log_add_offset_tombstone(b, e->group->id, o->topic, o->partition, now);
            committed_put(ret_gone, o);
        }
    group_topics_done(&subscribed);
}

/* A group that has lost its last position goes at the next look. */
static void expire_group(struct group_entry *e, int64_t retention_ms)
{
    struct committed *gone = xcalloc(1, sizeof *gone);
    struct batch_builder b;

    batch_builder_init(&b);
    collect_expired(e, retention_ms, &b, gone);
    if (b.count > 0) {
        group_write(e, &b, on_expired_written, gone);
    } else {
        free(gone);
        group_drop_if_empty(e);
    }
    batch_builder_done(&b);
}

static void expire_shard(struct shard *sh, int64_t retention_ms)
{
    struct group_entry *e, *next;

    lock_take(&sh->mu);
    if (sh->state == SHARD_ACTIVE)
        HASH_ITER (hh, sh->groups, e, next)
            if (e->writing == 0)
                expire_group(e, retention_ms);
    lock_release(&sh->mu);
}

static void expiry_set(struct coordinator *c)
{
    struct loop *lp = c->deps.loops[0];

    timer_set_in(lp, &c->expiry, c->deps.config->offsets_retention_check_interval_ms);
}

static void on_expiry(struct timer *t)
{
    struct coordinator *c = container_of(t, struct coordinator, expiry);
    int64_t retention_ms = (int64_t)c->deps.config->offsets_retention_minutes * 60000;

    if (atomic_load(&c->stopping))
        return;
    for (int32_t i = 0, n = coordinator_n_shards(c); i < n; i++)
        expire_shard(c->shards[i], retention_ms);
    expiry_set(c);
}

void coordinator_expiry_start(struct coordinator *c)
{
    c->expiry.cb = on_expiry;
    expiry_set(c);
}
