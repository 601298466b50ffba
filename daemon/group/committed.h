/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The committed offsets of one group, and which of them have lived long enough. Pure; the caller
 * holds the group's lock.
 */
#ifndef KLOG_DAEMON_COMMITTED_H
#define KLOG_DAEMON_COMMITTED_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/group/group_topics.h"
#include "lib/base/uuid.h"

struct committed_offset {
    char *topic;
    struct uuid topic_id; /* of the topic that had this name then; zero: not known, the record in the log does not say */
    int32_t partition;
    int64_t offset;
    int32_t leader_epoch; /* -1 unknown */
    char *metadata;       /* metadata_bytes bytes */
    int32_t metadata_bytes;
    int64_t commit_ms;     /* wall clock */
    int64_t expire_ms;     /* explicit retention (OffsetCommit v2-4); -1 the broker's rule */
    int64_t record_offset; /* of the record in __consumer_offsets: a later one wins */
    char *key;             /* "topic/partition" for the table */
    UT_hash_handle hh;
};

struct committed {
    struct committed_offset *table; /* uthash */
    bool had_some;                  /* there was a position, if there is none now */
};

void committed_done(struct committed *c);
/* Takes the values of *o but its strings by copy; an older record_offset than the one there changes nothing.
 */
void committed_put(struct committed *c, const struct committed_offset *o);
/* Removes it, if the record that says so (record_offset) is not older than the one that is there. */
void committed_remove(struct committed *c, const char *topic, int32_t partition, int64_t record_offset);
const struct committed_offset *committed_find(const struct committed *c, const char *topic,
                                              int32_t partition);
/* Was it committed in this topic? */
static inline bool committed_is_of(const struct committed_offset *o, const struct uuid *topic_id)
{
    return uuid_is_zero(&o->topic_id) || uuid_eq(&o->topic_id, topic_id);
}
static inline bool committed_is_empty(const struct committed *c)
{
    return c->table == NULL;
}

/* Has this offset of group g expired (offsets.retention.minutes; KIP-211)? An empty group's offsets live
 * retention_ms from the moment it became empty, or from the commit when that came later; a simple consumer's
 * from the commit; a stable group's only where nobody subscribes any more. A commit that brought its own
 * retention (v2-4) is judged by that. */
bool committed_expired(const struct group *g, const struct group_topics *subscribed,
                       const struct committed_offset *o, int64_t retention_ms, int64_t now_wall_ms);

#endif
