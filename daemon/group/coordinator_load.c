/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one partition of __consumer_offsets from its start to its high watermark and builds the groups of
 * that shard. On a worker; the shard is LOADING meanwhile and answers COORDINATOR_LOAD_IN_PROGRESS, so nobody
 * else touches what is built.
 *
 *   L1  What a good batch says is never left out: damage is stepped over and told, one line each. Later commits
 *       take their place in the order of the log, whatever offset a damaged batch claims.
 *
 *   L2  A shard is served as a whole or not at all: when the disk cannot be read, loading begins anew after a while.
 *
 *   L3  Nothing is read before the high watermark is known to be current (R16 of daemon/replica): after a change of leader
 *       positions that were acknowledged may still be above it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/coordinator_int.h"
#include "daemon/group/group_replay.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum {
    PLAIN_BYTES_MAX = 64 << 20,
    LINES_MAX = 20, /* about damage, a loading */
    RETRY_MIN_MS = 500,
    RETRY_MAX_MS = 30000,
    CURRENT_MS = 20, /* between two looks whether the high watermark is current */
};

struct loading {
    struct shard *shard;
    struct group_replay replay;
    struct record_iter it;
    struct arena arena;
    int lost; /* batches, or places where some were */
};

static struct group_entry *add_entry(void *arg, const char *id)
{
    return shard_add(arg, id);
}

static void drop_entry(void *arg, struct group_entry *e)
{
    shard_remove(arg, e);
}

static void tell_lost(struct loading *ld, const struct plog_scan_item *it)
{
    if (++ld->lost <= LINES_MAX)
        log_error("%s-%d: segment %020" PRId64 ".log, position %" PRId64 ": %" PRId64
                  " bytes are damaged; what groups committed there, from offset %" PRId64
                  " on, is lost, and older positions may be back",
                  OFFSETS_TOPIC, ld->shard->id, it->segment, it->at, it->n, it->base_offset);
}

static void load_batch(struct loading *ld, const struct plog_scan_item *it)
{
    struct batch_header h;
    struct record r;

    batch_header_read(it->batch.p, &h);
    if (batch_is_control(&h))
        return;
    int rc = record_iter_start(&ld->it, it->batch, PLAIN_BYTES_MAX);
    while (rc == 0 && (rc = record_iter_next(&ld->it, &r)) == 1) {
        group_replay_record(&ld->replay, &r, it->base_offset + (r.offset - h.base_offset), &ld->arena);
        rc = 0;
    }
    if (rc < 0)
        tell_lost(ld, it);
}

static int load_log(struct loading *ld, struct plog *log, int64_t from, int64_t to)
{
    struct plog_scan *scan = plog_scan_new(log, from, to);
    struct plog_scan_item it;
    int rc;

    while ((rc = plog_scan_next(scan, &it)) == 1 && !atomic_load(&ld->shard->coordinator->stopping))
        if (it.lost)
            tell_lost(ld, &it);
        else
            load_batch(ld, &it);
    plog_scan_free(scan);
    return MIN(rc, 0);
}

static void tell_end(const struct loading *ld, int64_t began_ms)
{
    const struct group_replay *rp = &ld->replay;

    if (ld->lost > LINES_MAX)
        log_error("%s-%d: %d more places are damaged; klog verify names them all", OFFSETS_TOPIC, ld->shard->id,
                  ld->lost - LINES_MAX);
    if (rp->aside > 0)
        log_warn("%s-%d: %" PRId64 " records were not, or not wholly, taken: the first at offset %" PRId64
                 ", since %s; did another program write to this topic?",
                 OFFSETS_TOPIC, ld->shard->id, rp->aside, rp->first_aside, rp->why);
    if (rp->stray > 0)
        log_warn("%s-%d: %" PRId64 " records are of groups that belong to other partitions of the %d: the topic has been grown; "
                 "their positions are not found any more, klog group reset sets new ones",
                 OFFSETS_TOPIC, ld->shard->id, rp->stray, rp->n_shards);
    log_debug("%s-%d: loaded groups=%u records=%" PRId64 " ms=%" PRId64, OFFSETS_TOPIC, ld->shard->id,
              HASH_COUNT(ld->shard->groups), rp->records, world_mono_ms(shard_world(ld->shard)) - began_ms);
}

static int load_all(struct loading *ld)
{
    struct shard *sh = ld->shard;
    struct partition_view v;

    partition_view(sh->partition, &v);
    if (v.err != KERR_NONE)
        return 0; /* load_done sees to that */
    if (!v.hw_is_current)
        return -EAGAIN;
    record_iter_init(&ld->it);
    arena_init(&ld->arena);
    int rc = load_log(ld, sh->partition->log, v.start_offset, v.hw);
    record_iter_done(&ld->it);
    arena_done(&ld->arena);
    return rc;
}

static void load_run(struct job *j)
{
    struct shard *sh = container_of(j, struct shard, load);
    int64_t began_ms = world_mono_ms(shard_world(sh));
    struct loading ld = {
        .shard = sh,
        .replay = { .table = &sh->groups, .add = add_entry, .arg = sh, .shard = sh->id, .n_shards = sh->coordinator->n_shards, .env = &sh->coordinator->env, .now_ms = began_ms },
    };

    sh->load_rc = load_all(&ld);
    group_replay_end(&ld.replay, drop_entry);
    if (sh->load_rc == 0)
        tell_end(&ld, began_ms);
}

static void submit(struct shard *sh)
{
    sh->load = (struct job){ .run = load_run, .done = sh->load.done, .loop = sh->loop };
    sh->reading = true;
    coordinator_busy(sh->coordinator, +1);
    workers_submit(sh->coordinator->deps.workers, &sh->load);
}

static void on_retry(struct timer *t)
{
    struct shard *sh = container_of(t, struct shard, load_timer);

    lock_take(&sh->mu);
    if (sh->state == SHARD_LOADING && !sh->reading)
        submit(sh);
    lock_release(&sh->mu);
}

static void try_again_later(struct shard *sh)
{
    log_error("%s-%d: cannot be read: %s; its groups have no coordinator until it can, trying again in %d ms",
              OFFSETS_TOPIC, sh->id, strerror(-sh->load_rc), sh->retry_ms);
    shard_clear(sh, KERR_NOT_COORDINATOR);
    timer_set(sh->loop, &sh->load_timer, loop_now_ms(sh->loop) + sh->retry_ms);
    sh->retry_ms = MIN(2 * sh->retry_ms, RETRY_MAX_MS);
}

/* Its replicas are about to say how far they are. */
static void wait_until_current(struct shard *sh)
{
    timer_set(sh->loop, &sh->load_timer, loop_now_ms(sh->loop) + CURRENT_MS);
}

static void load_done(struct job *j)
{
    struct shard *sh = container_of(j, struct shard, load);
    struct coordinator *c = sh->coordinator;

    lock_take(&sh->mu);
    sh->reading = false;
    if (sh->state == SHARD_LOADING && shard_has_moved(sh)) {
        shard_unload(sh);
    } else if (sh->state == SHARD_LOADING && sh->load_rc == -EAGAIN) {
        wait_until_current(sh);
    } else if (sh->state == SHARD_LOADING && sh->load_rc < 0) {
        try_again_later(sh);
    } else if (sh->state == SHARD_LOADING) {
        sh->state = SHARD_ACTIVE;
        for (struct group_entry *e = sh->groups; e != NULL; e = e->hh.next)
            shard_retime(sh, group_due_ms(e->group));
    }
    loop_post(sh->loop, &sh->moved); /* to watch over the partition, or to let go of it */
    lock_release(&sh->mu);
    coordinator_busy(c, -1);
}

void shard_load_init(struct shard *sh)
{
    sh->load.done = load_done;
    sh->load_timer.cb = on_retry;
}

void shard_load(struct shard *sh)
{
    lock_assert_held(&sh->mu);
    struct partition *pt = partitions_get(sh->coordinator->deps.partitions, kstr_of(OFFSETS_TOPIC), sh->id);
    struct partition_view v;

    KCHECK(sh->state == SHARD_IDLE && sh->groups == NULL && sh->partition == NULL);
    if (pt == NULL)
        return;
    partition_view(pt, &v);
    if (v.err != KERR_NONE) {
        partition_unref(pt);
        return;
    }
    sh->partition = pt;
    sh->leader_epoch = v.leader_epoch;
    sh->retry_ms = RETRY_MIN_MS;
    sh->state = v.hw_is_current && v.start_offset == v.hw ? SHARD_ACTIVE : SHARD_LOADING;
    if (sh->state == SHARD_ACTIVE)
        loop_post(sh->loop, &sh->moved);
    else
        submit(sh);
}
