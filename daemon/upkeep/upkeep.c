/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds. Each has a timer on a loop and a job on a worker; the timer is set again when the job is
 * done, so a slow round is never overtaken by the next one. All fields belong to the loop's thread.
 */
#include "daemon/upkeep/upkeep.h"

#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/replica/partition.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"
#include "lib/loop/workers.h"

/* How far a recovery after a crash may have to look back when the flush policy leaves flushing to the kernel.
 */
enum { CHECKPOINT_INTERVAL_MS = 60000 };

enum { ROUND_RETENTION, ROUND_CHECKPOINT, ROUNDS };

struct upkeep_round {
    struct upkeep *upkeep;
    struct timer timer;
    struct job job;
    int64_t interval_ms;
    void (*each)(void *arg, struct partition *pt);
};

struct upkeep {
    const struct world *world;
    struct loop *loop;
    struct workers *workers;
    struct partitions *partitions;
    bool stopping;
    struct upkeep_round rounds[ROUNDS];
};

/* ---- the work, on a worker ---- */
static void note_failure(struct partition *pt, const char *what, int rc)
{
    if (rc < 0 && !partition_note_error(pt, -rc))
        log_warn("%s: %s: %s; it is tried again later", plog_name(pt->log), what, strerror(-rc));
}

static void retain_partition(void *arg, struct partition *pt)
{
    const struct upkeep *u = arg;
    struct partition_view v;
    partition_view(pt, &v);
    if (!partition_view_is_settled(&v))
        return;
    plog_expire_producers(pt->log, world_wall_ms(u->world));
    if (v.copies) /* the leader's retention is everybody's: a follower lets go of what its leader has let go of */
        return;

    int rc = plog_retain(pt->log, v.hw, world_wall_ms(u->world));
    note_failure(pt, "retention", rc);
    if (rc > 0) {
        partition_view(pt, &v);
        log_info("%s: retention removed %d segments; the log starts at offset %lld now", plog_name(pt->log),
                 rc, (long long)v.start_offset);
    }
}

/* What was flushed until now goes into the checkpoint, and what was not is flushed for the next one. */
static void checkpoint_partition(void *arg, struct partition *pt)
{
    (void)arg;
    struct partition_view v;
    partition_view(pt, &v);
    if (v.err == KERR_UNKNOWN_TOPIC_OR_PARTITION || v.err == KERR_KAFKA_STORAGE_ERROR)
        return;

    note_failure(pt, "checkpoint", plog_checkpoint(pt->log, v.hw, true));
    partition_flush_soon(pt);
}

/* ---- timers, on the loop ---- */
static void round_set(struct upkeep_round *rd)
{
    if (!rd->upkeep->stopping)
        timer_set_in(rd->upkeep->loop, &rd->timer, rd->interval_ms);
}

static void round_run(struct job *j)
{
    struct upkeep_round *rd = container_of(j, struct upkeep_round, job);
    partitions_each(rd->upkeep->partitions, rd->each, rd->upkeep);
}

static void round_done(struct job *j)
{
    round_set(container_of(j, struct upkeep_round, job));
}

static void round_due(struct timer *t)
{
    struct upkeep_round *rd = container_of(t, struct upkeep_round, timer);
    workers_submit(rd->upkeep->workers, &rd->job);
}

static void start_on_loop(void *arg)
{
    struct upkeep *u = arg;
    for (int i = 0; i < ROUNDS; i++)
        round_set(&u->rounds[i]);
}

static void stop_on_loop(void *arg)
{
    struct upkeep *u = arg;
    u->stopping = true;
    for (int i = 0; i < ROUNDS; i++)
        timer_clear(u->loop, &u->rounds[i].timer);
}

static void round_init(struct upkeep *u, int i, int64_t interval_ms, void (*each)(void *, struct partition *))
{
    u->rounds[i] = (struct upkeep_round){
        .upkeep = u,
        .interval_ms = interval_ms,
        .each = each,
        .timer.cb = round_due,
        .job = { .run = round_run, .done = round_done, .loop = u->loop },
    };
}

struct upkeep *upkeep_new(const struct world *w, struct loop *lp, struct workers *workers, struct partitions *ps,
                          const struct broker_config *cfg)
{
    struct upkeep *u = xcalloc(1, sizeof *u);
    u->world = w;
    u->loop = lp;
    u->workers = workers;
    u->partitions = ps;
    round_init(u, ROUND_RETENTION, cfg->log_retention_check_interval_ms, retain_partition);
    round_init(u, ROUND_CHECKPOINT, CHECKPOINT_INTERVAL_MS, checkpoint_partition);
    loop_call(lp, start_on_loop, u);
    return u;
}

void upkeep_stop(struct upkeep *u)
{
    if (u != NULL)
        loop_call(u->loop, stop_on_loop, u);
}

void upkeep_free(struct upkeep *u)
{
    free(u);
}
