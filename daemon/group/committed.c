/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of one group's committed offsets, by topic and partition. Of two records for the same partition the one that
 * stands later in the log wins, whichever is read first, so that loading in any order gives the same table. What expires,
 * and when, is judged here and done by the caller. Pure; the caller holds the group's lock.
 */
#include "daemon/group/committed.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static char *offset_key(const char *topic, int32_t partition)
{
    return xasprintf("%s/%d", topic, partition); /* no topic name has a slash */
}

static void offset_free(struct committed_offset *o)
{
    free(o->topic);
    free(o->metadata);
    free(o->key);
    free(o);
}

static struct committed_offset *offset_find(const struct committed *c, const char *topic, int32_t partition)
{
    CLEANUP(freep) char *key = offset_key(topic, partition);
    struct committed_offset *o;

    HASH_FIND_STR(c->table, key, o);
    return o;
}

const struct committed_offset *committed_find(const struct committed *c, const char *topic, int32_t partition)
{
    return offset_find(c, topic, partition);
}

static void offset_delete(struct committed *c, struct committed_offset *o)
{
    HASH_DEL(c->table, o);
    offset_free(o);
}

void committed_done(struct committed *c)
{
    struct committed_offset *o, *next;

    HASH_ITER (hh, c->table, o, next)
        offset_delete(c, o);
}

void committed_put(struct committed *c, const struct committed_offset *from)
{
    struct committed_offset *o = offset_find(c, from->topic, from->partition);

    if (o != NULL && o->record_offset > from->record_offset)
        return;
    if (o != NULL)
        offset_delete(c, o);
    o = xcalloc(1, sizeof *o);
    *o = *from;
    memset(&o->hh, 0, sizeof o->hh);
    o->topic = xstrdup(from->topic);
    o->metadata_bytes = MAX(from->metadata_bytes, 0);
    o->metadata = xmalloc((size_t)MAX(o->metadata_bytes, 1));
    if (o->metadata_bytes > 0)
        memcpy(o->metadata, from->metadata, (size_t)o->metadata_bytes);
    o->key = offset_key(from->topic, from->partition);
    HASH_ADD_KEYPTR(hh, c->table, o->key, strlen(o->key), o);
    c->had_some = true;
}

void committed_remove(struct committed *c, const char *topic, int32_t partition, int64_t record_offset)
{
    struct committed_offset *o = offset_find(c, topic, partition);

    if (o != NULL && o->record_offset <= record_offset)
        offset_delete(c, o);
}

/* ---- expiry ---- */

bool committed_expired(const struct group *g, const struct group_topics *subscribed,
                       const struct committed_offset *o, int64_t retention_ms, int64_t now_wall_ms)
{
    bool simple = g->protocol_type == NULL || g->protocol_type[0] == '\0';
    int64_t since = o->commit_ms;

    if (g->state == GROUP_EMPTY && !simple)
        since = MAX(since, g->state_since_ms);
    else if (g->state == GROUP_STABLE && group_topics_has(subscribed, o->topic))
        return false;
    else if (g->state != GROUP_EMPTY && g->state != GROUP_STABLE)
        return false;
    return o->expire_ms >= 0 ? now_wall_ms >= o->expire_ms : now_wall_ms - since >= retention_ms;
}
