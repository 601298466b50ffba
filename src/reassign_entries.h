/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of klog reassign share: the file, the requests, the throttle; see reassign_entries.c. */
#ifndef KLOG_SRC_REASSIGN_ENTRIES_H
#define KLOG_SRC_REASSIGN_ENTRIES_H

#include "src/reassign_plan.h"
#include "src/topic_entries.h"

struct move { /* one partition of the file; in the session's arena */
    const char *topic;
    int32_t partition;
    int32_t replicas[PLAN_REPLICAS_MAX], n; /* as they shall be */
};

struct moves {
    struct move *at; /* in order of topic and partition */
    size_t n;
};

/* Reads kafka-reassign-partitions' JSON; "-": standard input. CLI_OK, or CLI_FAILED after saying why. */
int moves_read(struct session *s, const char *path, struct moves *ret);
json_t *moves_json(const struct moves *m); /* the same JSON */

struct moving { /* what is going on; in the session's arena */
    const char *topic;
    const struct list_partition_reassignments_response_partitions *p;
};
/* All of the cluster, or, with m, those of m. CLI_OK, or CLI_FAILED after saying why. */
int moving_list(struct session *s, const struct moves *m, struct moving **ret, size_t *ret_n);
/* How much of a replica that is being added is there, by each broker's own word; -1 where it does not tell. */
int64_t moving_copied(struct session *s, const struct moving *m, int32_t broker);

/* Begins all, or with `back` takes all back to what was before. CLI_OK, or CLI_FAILED after saying which were refused; the others are
 * begun then. */
int moves_begin(struct session *s, const struct moves *m, bool back);

/* The rate is set at every broker that is there, and the replicas of m that move, from and to, keep to it. CLI_OK, or
 * CLI_FAILED after saying why. */
int throttle_put(struct session *s, const struct metadata_response *md, const struct moves *m, int64_t bytes_per_second);
/* Takes it away again, whoever has put it; of the topics of m. */
int throttle_take(struct session *s, const struct metadata_response *md, const struct moves *m);
/* Metadata of the topics of m; NULL after saying why, also when a topic or partition is not there. */
const struct metadata_response *moves_metadata(struct session *s, const struct moves *m);
const struct metadata_response_partitions *moves_partition(const struct metadata_response *md, const struct move *m);

#endif
