/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the groups' state machines ask of the world (struct group_env): the wall clock, answers, records.
 *
 * These functions run under the shard's lock, on whichever thread is in the group, and must not block: a record is
 * handed to group_write() and comes back through on_persisted(), an answer goes to whoever parked the request.
 */
#include <stdlib.h>

#include "daemon/config/broker_config.h"
#include "daemon/group/coordinator_int.h"
#include "daemon/group/group_log.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum {
    NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000, /* Kafka's */
    ALL_GROUPS_BYTES_MAX = 1 << 29,        /* a million members with ordinary subscriptions */
};

static const struct coordinator_deps *deps_of(const struct group *g)
{
    const struct group_entry *e = g->user;

    return &e->shard->coordinator->deps;
}

static int64_t env_wall_ms(struct group *g)
{
    return world_wall_ms(deps_of(g)->world);
}

static void env_answer_join(struct group *g, void *waiter, const struct group_join_answer *a)
{
    deps_of(g)->answer_join(waiter, a);
}

static void env_answer_sync(struct group *g, void *waiter, const struct group_sync_answer *a)
{
    deps_of(g)->answer_sync(waiter, a);
}

static void on_persisted(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    int64_t *seq = arg;

    (void)base_offset;
    if (err == KERR_INVALID_COMMIT_OFFSET_SIZE) {
        log_error(
            "group %s: its %d members do not fit into one record; raise max.message.bytes of " OFFSETS_TOPIC,
            e->group->id, group_n_members(e->group));
        err = KERR_UNKNOWN_SERVER_ERROR;
    }
    if (e->group->state != GROUP_DEAD)
        group_persisted(e->group, *seq, err, world_mono_ms(shard_world(e->shard)));
    shard_retime(e->shard, group_due_ms(e->group));
    free(seq);
}

static void env_persist(struct group *g, int64_t seq)
{
    struct group_entry *e = g->user;
    struct batch_builder b;
    int64_t *arg = xmalloc(sizeof *arg);

    *arg = seq;
    batch_builder_init(&b);
    group_log_add_group(&b, g, world_wall_ms(shard_world(e->shard)));
    group_write(e, &b, on_persisted, arg);
    e->has_record = true;
    batch_builder_done(&b);
}

void coordinator_env_init(struct coordinator *c)
{
    const struct broker_config *cfg = c->deps.config;

    c->env = (struct group_env){
        .wall_ms = env_wall_ms,
        .answer_join = env_answer_join,
        .answer_sync = env_answer_sync,
        .persist = env_persist,
        .initial_delay_ms = cfg->group_initial_rebalance_delay_ms,
        .new_member_timeout_ms = NEW_MEMBER_TIMEOUT_MS,
        .size_max = cfg->group_max_size,
        .all_bytes = &c->group_bytes,
        .all_bytes_max = ALL_GROUPS_BYTES_MAX,
    };
}
