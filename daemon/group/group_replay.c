/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record after the other, as the log has them, into the table of groups: a later record of a group replaces an earlier
 * one, a tombstone deletes it, offsets are kept by committed.h's rule. What is set aside is counted, and the first reason
 * kept, for one line in the log. Pure.
 */
#include "daemon/group/group_replay.h"

#include "daemon/group/group_log.h"

static struct group_entry *entry_of(struct group_replay *rp, const char *group_id)
{
    struct group_entry *e;

    HASH_FIND_STR(*rp->table, group_id, e);
    return e != NULL ? e : rp->add(rp->arg, group_id);
}

static void set_aside(struct group_replay *rp, int64_t offset, const char *why)
{
    if (why == NULL)
        return;
    if (rp->aside++ == 0) {
        rp->first_aside = offset;
        rp->why = why;
    }
}

/* A later record of a group replaces what an earlier one said; the offsets stay. */
static void replay_group(struct group_replay *rp, const struct group_log_record *rec, int64_t offset,
                         struct arena *a)
{
    struct group_entry *e = entry_of(rp, rec->group);

    HASH_DEL(*rp->table, e);
    group_free(e->group);
    e->group = group_new(rec->group, rp->env, e);
    HASH_ADD_KEYPTR(hh, *rp->table, e->group->id, strlen(e->group->id), e);
    e->has_record = !rec->tombstone;
    if (!rec->tombstone)
        set_aside(rp, offset, group_log_restore(e->group, rec->value, a, rp->now_ms));
}

static void replay_offset(struct group_replay *rp, struct group_log_record *rec, int64_t offset)
{
    struct group_entry *e = entry_of(rp, rec->group);

    rec->offset.record_offset = offset;
    if (rec->tombstone)
        committed_remove(&e->offsets, rec->offset.topic, rec->offset.partition, offset);
    else
        committed_put(&e->offsets, &rec->offset);
}

void group_replay_record(struct group_replay *rp, const struct record *r, int64_t offset, struct arena *a)
{
    struct group_log_record rec;

    rp->records++;
    const char *why = group_log_read(r, a, &rec);
    if (why != NULL)
        set_aside(rp, offset, why);
    else if (rec.kind != GROUP_LOG_OTHER && coordinator_partition_of(kstr_of(rec.group), rp->n_shards) != rp->shard)
        rp->stray++;
    else if (rec.kind == GROUP_LOG_GROUP)
        replay_group(rp, &rec, offset, a);
    else if (rec.kind == GROUP_LOG_OFFSET)
        replay_offset(rp, &rec, offset);
    arena_done(a);
}

void group_replay_end(struct group_replay *rp, void (*drop)(void *arg, struct group_entry *e))
{
    struct group_entry *e, *next;

    HASH_ITER (hh, *rp->table, e, next)
        if (e->group->members == NULL && committed_is_empty(&e->offsets) && !e->has_record)
            drop(rp->arg, e);
}
