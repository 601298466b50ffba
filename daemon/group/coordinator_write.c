/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records into __consumer_offsets. They are appended under the shard's lock, so that their order is the order
 * of the decisions, and take effect in that order, when they are committed: the shard keeps them in a queue,
 * and one watcher waits for the first of them. A record that is not committed in time fails, as in Kafka, and
 * may still be committed after that.
 */
#include <stdlib.h>

#include "daemon/config/broker_config.h"
#include "daemon/group/coordinator_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/record/codec.h"

enum { PLAIN_BYTES_MAX = 64 * 1024 }; /* more is compressed: a large group shall fit into one batch */

struct shard_write {
    TAILQ_ENTRY(shard_write) link;
    struct group_entry *e;            /* NULL: of no group that is left */
    enum kerr err;                    /* of the append */
    int64_t base_offset, last_offset; /* -1: a barrier */
    int64_t due_ms;
    group_written *cb;
    void *arg;
};

/* What a failed append means to a member (Kafka's GroupMetadataManager says the same). */
static enum kerr group_error_of(enum kerr append)
{
    switch (append) {
    case KERR_NONE:
        return KERR_NONE;
    case KERR_UNKNOWN_TOPIC_OR_PARTITION:
    case KERR_NOT_ENOUGH_REPLICAS:
    case KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case KERR_REQUEST_TIMED_OUT:
        return KERR_COORDINATOR_NOT_AVAILABLE;
    case KERR_NOT_LEADER_OR_FOLLOWER:
    case KERR_KAFKA_STORAGE_ERROR:
    case KERR_NOT_COORDINATOR:
        return KERR_NOT_COORDINATOR;
    case KERR_MESSAGE_TOO_LARGE:
    case KERR_RECORD_LIST_TOO_LARGE:
    case KERR_INVALID_FETCH_SIZE:
        return KERR_INVALID_COMMIT_OFFSET_SIZE;
    default:
        return KERR_UNKNOWN_SERVER_ERROR;
    }
}

/* ---- the end of a record; the shard is locked ---- */

static void write_end(struct shard *sh, struct shard_write *w, enum kerr err)
{
    TAILQ_REMOVE(&sh->writes, w, link);
    if (w->cb != NULL)
        w->cb(w->arg, w->e, group_error_of(err), w->base_offset);
    if (w->e != NULL && --w->e->writing == 0 && w->e->detached)
        group_entry_free(w->e);
    free(w);
    coordinator_busy(sh->coordinator, -1);
}

void shard_writes_fail(struct shard *sh, enum kerr err)
{
    lock_assert_held(&sh->mu);
    struct shard_write *w;

    while ((w = TAILQ_FIRST(&sh->writes)) != NULL)
        write_end(sh, w, w->err != KERR_NONE ? w->err : err);
}

static bool write_is_over(const struct shard_write *w, const struct partition_view *v, int64_t now_ms,
                          enum kerr *ret)
{
    *ret = w->err != KERR_NONE      ? w->err
           : w->last_offset < v->hw ? KERR_NONE
           : v->err != KERR_NONE    ? v->err
           : w->due_ms <= now_ms    ? KERR_REQUEST_TIMED_OUT
                                    : KERR_NONE;
    return *ret != KERR_NONE || w->last_offset < v->hw;
}

/* With nothing under way the partition need not be held any longer: its deletion waits for that, and the stop of the broker for
 * the deletion. */
static void let_go(struct shard *sh)
{
    if (sh->reading)
        return;
    if (sh->state != SHARD_STOPPED) {
        shard_unload(sh);
    } else {
        partition_unref(sh->partition);
        sh->partition = NULL;
    }
}

/* Ends what can end, then waits for the first that cannot, or for the partition to leave. False: it has just happened,
 * look again. */
static bool shard_progress(struct shard *sh)
{
    lock_assert_held(&sh->mu);
    struct partition_view v;
    struct shard_write *w;
    enum kerr err;

    partition_view(sh->partition, &v);
    while ((w = TAILQ_FIRST(&sh->writes)) != NULL && write_is_over(w, &v, loop_now_ms(sh->loop), &err))
        write_end(sh, w, err);
    if (w == NULL && (v.err != KERR_NONE || sh->state == SHARD_STOPPED)) {
        let_go(sh);
        return true;
    }
    sh->watcher.wake_at = w != NULL ? w->last_offset + 1 : INT64_MAX;
    if (w != NULL)
        timer_set(sh->loop, &sh->write_timer, w->due_ms);
    return partition_watch(sh->partition, &sh->watcher);
}

static void on_moved(struct shard *sh)
{
    lock_take(&sh->mu);
    timer_clear(sh->loop, &sh->write_timer);
    if (sh->partition != NULL) {
        partition_unwatch(sh->partition, &sh->watcher);
        while (!shard_progress(sh))
            ;
    }
    lock_release(&sh->mu);
}

static void on_moved_task(struct task *t)
{
    on_moved(container_of(t, struct shard, moved));
}

static void on_write_due(struct timer *t)
{
    on_moved(container_of(t, struct shard, write_timer));
}

void shard_writes_init(struct shard *sh)
{
    TAILQ_INIT(&sh->writes);
    sh->moved.cb = on_moved_task;
    sh->write_timer.cb = on_write_due;
    sh->watcher = (struct watcher){ .loop = sh->loop, .task = &sh->moved, .what = WATCH_HW };
}

/* ---- its beginning; the shard is locked ---- */

static struct shard_write *write_new(struct shard *sh, struct group_entry *e, group_written *cb, void *arg)
{
    struct shard_write *w = xcalloc(1, sizeof *w);

    KCHECK(sh->partition != NULL);
    w->e = e;
    w->cb = cb;
    w->arg = arg;
    w->base_offset = w->last_offset = -1;
    w->due_ms = INT64_MAX;
    if (e != NULL)
        e->writing++;
    coordinator_busy(sh->coordinator, +1);
    TAILQ_INSERT_TAIL(&sh->writes, w, link);
    loop_post(sh->loop, &sh->moved);
    return w;
}

static enum codec codec_for(size_t plain_bytes)
{
    if (plain_bytes <= PLAIN_BYTES_MAX)
        return CODEC_NONE;
    return codec_available(CODEC_LZ4) ? CODEC_LZ4 : codec_available(CODEC_GZIP) ? CODEC_GZIP : CODEC_NONE;
}

static void write_append(struct shard *sh, struct shard_write *w, struct batch_builder *b)
{
    const struct batch_producer nobody = { .id = -1, .epoch = -1, .base_sequence = -1 };
    struct bytebuf batch = { 0 };
    struct partition_appended a;

    int rc = batch_builder_finish(b, codec_for(batch_builder_size(b)), 0, &nobody, 0, &batch);
    KCHECK(rc == 0);
    partition_append(sh->partition, batch.p, batch.n, -1, true, true, &a);
    bytebuf_done(&batch);
    w->err = a.err;
    w->base_offset = a.base_offset;
    w->last_offset = a.last_offset;
    w->due_ms = world_mono_ms(shard_world(sh)) + sh->coordinator->deps.config->offsets_commit_timeout_ms;
}

void group_write(struct group_entry *e, struct batch_builder *b, group_written *cb, void *arg)
{
    write_append(e->shard, write_new(e->shard, e, cb, arg), b);
}

void group_barrier(struct group_entry *e, group_written *cb, void *arg)
{
    write_new(e->shard, e, cb, arg);
}

void shard_write(struct shard *sh, struct batch_builder *b)
{
    lock_assert_held(&sh->mu);
    write_append(sh, write_new(sh, NULL, NULL, NULL), b);
}
