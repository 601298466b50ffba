/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one partition of __consumer_offsets from its start to its high watermark and builds the groups of
 * that shard. On a worker; the shard is LOADING meanwhile and answers COORDINATOR_LOAD_IN_PROGRESS, so nobody
 * else touches what is built.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker.h"
#include "daemon/group/coordinator_int.h"
#include "daemon/group/group_log.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum { READ_BYTES = 1 << 20, PLAIN_BYTES_MAX = 64 << 20 };

struct loading {
    struct shard *shard;
    struct record_iter it;
    struct arena arena;
    int64_t records, damaged;
    int rc; /* 0, or -errno that ended it early */
};

static struct group_entry *loading_group(struct shard *sh, const char *id)
{
    struct group_entry *e = shard_find(sh, id);

    return e != NULL ? e : shard_add(sh, id);
}

/* A later record of a group replaces what an earlier one said; the offsets stay. */
static void load_group(struct loading *ld, const struct group_log_record *rec)
{
    struct group_entry *e = loading_group(ld->shard, rec->group);

    HASH_DEL(ld->shard->groups, e);
    group_free(e->group);
    e->group = group_new(rec->group, &ld->shard->coordinator->env, e);
    HASH_ADD_KEYPTR(hh, ld->shard->groups, e->group->id, strlen(e->group->id), e);
    if (!rec->tombstone)
        group_log_restore(e->group, rec->value, &ld->arena, clock_mono_ms());
}

static void load_record(struct loading *ld, const struct record *r)
{
    struct group_log_record rec;

    ld->records++;
    if (group_log_read(r, &ld->arena, &rec) != 0)
        ld->damaged++;
    else if (rec.kind == GROUP_LOG_GROUP)
        load_group(ld, &rec);
    else if (rec.kind == GROUP_LOG_OFFSET && rec.tombstone)
        committed_remove(&loading_group(ld->shard, rec.group)->offsets, rec.offset.topic,
                         rec.offset.partition, r->offset);
    else if (rec.kind == GROUP_LOG_OFFSET)
        committed_put(&loading_group(ld->shard, rec.group)->offsets, &rec.offset);
}

static void load_batch(struct loading *ld, struct slice batch, const struct batch_header *h)
{
    struct record r;
    int rc = batch_is_control(h) ? 0 : record_iter_start(&ld->it, batch, PLAIN_BYTES_MAX);

    while (rc == 0 && !batch_is_control(h) && (rc = record_iter_next(&ld->it, &r)) == 1) {
        load_record(ld, &r);
        rc = 0;
    }
    ld->damaged += rc < 0;
    arena_done(&ld->arena);
}

/* Returns the offset after the last batch of the span, or -errno. */
static int64_t load_span(struct loading *ld, const struct plog_span *sp)
{
    CLEANUP(freep) uint8_t *p = xmalloc((size_t)sp->n);
    struct slice rest = slice_of(p, (size_t)sp->n);
    struct batch_header h;
    int64_t next = sp->base_offset;
    int rc = plog_span_read(sp, p);

    while (rc == 0 && rest.n > 0) {
        rc = batch_check(rest, INT32_MAX, &h);
        if (rc != 0)
            break;
        load_batch(ld, slice_of(rest.p, (size_t)batch_size(&h)), &h);
        next = batch_last_offset(&h) + 1;
        rest = slice_of(rest.p + batch_size(&h), rest.n - (size_t)batch_size(&h));
    }
    return rc != 0 ? rc : next;
}

static int load_partition(struct loading *ld, struct plog *log, int64_t from, int64_t to)
{
    while (from < to && !atomic_load(&ld->shard->coordinator->stopping)) {
        struct plog_span sp;
        int rc = plog_read(log, from, to, READ_BYTES, true, &sp);
        if (rc != 0)
            return rc;
        KCHECK(sp.n > 0);
        int64_t next = load_span(ld, &sp);
        plog_span_release(&sp);
        if (next < 0)
            return (int)next;
        from = next;
    }
    return 0;
}

/* What is left of groups that were deleted, or that only ever had tombstones. */
static void drop_empty_groups(struct shard *sh)
{
    struct group_entry *e, *next;

    HASH_ITER (hh, sh->groups, e, next)
        if (e->group->members == NULL && committed_is_empty(&e->offsets) && e->group->generation == 0)
            shard_remove(sh, e);
}

static void load_all(struct loading *ld)
{
    struct shard *sh = ld->shard;
    struct partition_view v;

    partition_view(sh->partition, &v);
    record_iter_init(&ld->it);
    arena_init(&ld->arena);
    ld->rc = v.err == KERR_NONE ? load_partition(ld, sh->partition->log, v.start_offset, v.hw) : 0;
    record_iter_done(&ld->it);
    arena_done(&ld->arena);
    drop_empty_groups(sh);
}

static void load_run(struct job *j)
{
    struct loading ld = { .shard = container_of(j, struct shard, load) };
    int64_t began = clock_mono_ms();

    load_all(&ld);
    if (ld.rc != 0 || ld.damaged > 0)
        log_error("%s-%d: damage in its records: groups=%u records=%" PRId64 " unreadable=%" PRId64
                  " error=%d; what could be read is served, klog verify says where",
                  OFFSETS_TOPIC, ld.shard->id, HASH_COUNT(ld.shard->groups), ld.records, ld.damaged, ld.rc);
    else
        log_debug("%s-%d: loaded groups=%u records=%" PRId64 " ms=%" PRId64, OFFSETS_TOPIC, ld.shard->id,
                  HASH_COUNT(ld.shard->groups), ld.records, clock_mono_ms() - began);
}

static void load_done(struct job *j)
{
    struct shard *sh = container_of(j, struct shard, load);
    struct group_entry *e;

    pthread_mutex_lock(&sh->mu);
    if (sh->state == SHARD_LOADING) {
        sh->state = SHARD_ACTIVE;
        for (e = sh->groups; e != NULL; e = e->hh.next)
            shard_retime(sh, group_due_ms(e->group));
    }
    pthread_mutex_unlock(&sh->mu);
    coordinator_busy(sh->coordinator, -1);
}

void shard_load(struct shard *sh)
{
    struct broker *b = sh->coordinator->broker;
    struct partition *pt = partitions_get(b->partitions, kstr_of(OFFSETS_TOPIC), sh->id);
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
    sh->state = v.start_offset == v.hw ? SHARD_ACTIVE : SHARD_LOADING;
    if (sh->state == SHARD_ACTIVE)
        return;
    sh->load = (struct job){ .run = load_run, .done = load_done, .loop = sh->loop };
    coordinator_busy(sh->coordinator, +1);
    workers_submit(b->workers, &sh->load);
}
