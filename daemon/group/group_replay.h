/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records of __consumer_offsets make of a table of groups. They may be anybody's: another program may have
 * written them, another version, or nobody should have. Each is taken whole, made legal, or set aside with a reason;
 * no order of records makes a group that the state machine could not have come to. Pure; who calls it has the table
 * for itself.
 */
#ifndef KLOG_DAEMON_GROUP_REPLAY_H
#define KLOG_DAEMON_GROUP_REPLAY_H

#include "daemon/group/coordinator.h"
#include "lib/base/arena.h"
#include "lib/record/iter.h"

struct group_replay {
    struct group_entry **table; /* uthash, by group id */
    struct group_entry *(*add)(void *arg, const char *group_id); /* a new entry, in the table */
    void *arg;
    const struct group_env *env;
    int64_t now_ms; /* monotonic: sessions begin */
    int32_t shard, n_shards; /* the partition that is read, of how many */
    int64_t records, aside, stray; /* stray: of groups that belong to another partition */
    int64_t first_aside; /* offset of the first that was set aside, wholly or in part */
    const char *why;     /* of that one; static. NULL: none */
};

/* offset: where the record stands, which decides between two of one key. a: scratch, emptied here. */
void group_replay_record(struct group_replay *rp, const struct record *r, int64_t offset, struct arena *a);
/* At the end: what was deleted, or only ever had tombstones, leaves the table by `drop`. */
void group_replay_end(struct group_replay *rp, void (*drop)(void *arg, struct group_entry *e));

#endif
