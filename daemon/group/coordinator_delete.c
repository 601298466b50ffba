/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking positions and groups away, with tombstones. The shard is locked in every function here, but for
 * coordinator_topic_deleted.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/coordinator_int.h"
#include "daemon/group/group_log.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* ---- positions ---- */

struct deleting {
    struct committed gone; /* what the tombstones name */
    group_written *cb;
    void *arg;
};

static void on_deleted(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    struct deleting *d = arg;

    if (err == KERR_NONE)
        for (struct committed_offset *o = d->gone.table; o != NULL; o = o->hh.next)
            committed_remove(&e->offsets, o->topic, o->partition, base_offset);
    if (d->cb != NULL)
        d->cb(d->arg, e, err, base_offset);
    committed_done(&d->gone);
    free(d);
}

/* Adds the tombstone of a position, if it is one of those asked for and has none in this batch yet. */
static void bury(struct group_entry *e, const char *topic, const struct uuid *id, const struct committed_offset *o,
                 struct deleting *d, struct batch_builder *b)
{
    if (o == NULL || (topic != NULL && strcmp(o->topic, topic) != 0) || (id != NULL && !committed_is_of(o, id)) ||
        committed_find(&d->gone, o->topic, o->partition) != NULL)
        return;
    group_log_add_offset_tombstone(b, e->group->id, o->topic, o->partition, world_wall_ms(shard_world(e->shard)));
    committed_put(&d->gone, o);
}

void group_delete_offsets(struct group_entry *e, const char *topic, const struct uuid *id, const int32_t *partitions,
                          int32_t n, group_written *cb, void *arg)
{
    struct deleting *d = xcalloc(1, sizeof *d);
    struct batch_builder b;

    d->cb = cb;
    d->arg = arg;
    batch_builder_init(&b);
    for (int32_t i = 0; i < n; i++)
        bury(e, topic, id, committed_find(&e->offsets, topic, partitions[i]), d, &b);
    for (const struct committed_offset *o = n < 0 ? e->offsets.table : NULL; o != NULL; o = o->hh.next)
        bury(e, topic, id, o, d, &b);
    if (b.count > 0)
        group_write(e, &b, on_deleted, d);
    else
        group_barrier(e, on_deleted, d);
    batch_builder_done(&b);
}

/* ---- groups ---- */

/* A group that only ever kept positions has no record. */
static void write_group_tombstone(struct group_entry *e)
{
    struct batch_builder b;

    if (!e->has_record)
        return;
    batch_builder_init(&b);
    group_log_add_group_tombstone(&b, e->group->id, world_wall_ms(shard_world(e->shard)));
    shard_write(e->shard, &b);
    batch_builder_done(&b);
}

static void on_group_deleted(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    struct deleting *d = arg;

    e->closing = false;
    if (err == KERR_NONE) {
        write_group_tombstone(e);
        group_unload(e->group, KERR_COORDINATOR_NOT_AVAILABLE);
        shard_remove(e->shard, e);
    }
    d->cb(d->arg, e, err, base_offset);
    free(d);
}

static void on_group_quiet(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    if (err != KERR_NONE)
        on_group_deleted(arg, e, err, base_offset);
    else
        group_delete_offsets(e, NULL, NULL, NULL, -1, on_group_deleted, arg);
}

/* A position that is on its way to the log would not be named by a tombstone and come back one day: so everything that was begun before has to end first. */
void group_delete(struct group_entry *e, group_written *cb, void *arg)
{
    struct deleting *d = xcalloc(1, sizeof *d);

    KCHECK(e->group->state == GROUP_EMPTY && e->group->pending == NULL && !e->closing);
    d->cb = cb;
    d->arg = arg;
    e->closing = true;
    group_barrier(e, on_group_quiet, d);
}

bool group_drop_if_empty(struct group_entry *e)
{
    if (e->group->state != GROUP_EMPTY || e->group->pending != NULL || !committed_is_empty(&e->offsets) ||
        e->writing > 0)
        return false;
    write_group_tombstone(e);
    group_unload(e->group, KERR_COORDINATOR_NOT_AVAILABLE);
    shard_remove(e->shard, e);
    return true;
}

/* ---- a topic is gone ---- */

struct gone_topic {
    struct uuid id;
    char name[];
};

static void on_topic_quiet(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    struct gone_topic *t = arg;

    (void)base_offset;
    if (err == KERR_NONE && e->shard->state == SHARD_ACTIVE)
        group_delete_offsets(e, t->name, &t->id, NULL, -1, NULL, NULL);
    free(t);
}

static struct gone_topic *gone_topic_new(const char *name, const struct uuid *id)
{
    size_t n = strlen(name) + 1;
    struct gone_topic *t = xmalloc(sizeof *t + n);

    t->id = *id;
    memcpy(t->name, name, n);
    return t;
}

static bool has_offsets_in(const struct group_entry *e, const char *topic)
{
    for (const struct committed_offset *o = e->offsets.table; o != NULL; o = o->hh.next)
        if (strcmp(o->topic, topic) == 0)
            return true;
    return false;
}

void coordinator_topic_deleted(struct coordinator *c, const char *topic, const struct uuid *id)
{
    lock_take(&c->mu);
    int32_t n = c->n_shards; /* not coordinator_n_shards: the cluster may just be starting */
    lock_release(&c->mu);
    for (int32_t i = 0; i < n; i++) {
        struct shard *sh = c->shards[i];
        struct group_entry *e, *next;
        lock_take(&sh->mu);
        if (sh->state == SHARD_ACTIVE)
            HASH_ITER (hh, sh->groups, e, next)
                if (e->writing > 0 || has_offsets_in(e, topic))
                    group_barrier(e, on_topic_quiet, gone_topic_new(topic, id));
        lock_release(&sh->mu);
    }
}
