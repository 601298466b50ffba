/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands need to know of consumer groups; see group_entries.c. */
#ifndef KLOG_SRC_GROUP_ENTRIES_H
#define KLOG_SRC_GROUP_ENTRIES_H

#include "lib/client/positions.h"
#include "src/topic_entries.h"

struct group {
    const char *name;
    const struct describe_groups_response_groups *told; /* by its coordinator */
    struct position *positions;                         /* committed, sorted by topic and partition */
    size_t n_positions;
};

/* A partition that the group has a position in, or that a member was given. */
struct group_part {
    const char *topic;
    int32_t partition;
    int64_t current;                                       /* -1 none */
    const struct describe_groups_response_members *member; /* NULL none */
    const struct part *part;                               /* NULL: there is no such partition */
};

/* CLI_OK, or CLI_FAILED after saying why; a group that nobody knows is told, not refused. */
int group_describe(struct session *s, const char *name, struct group *ret);
bool group_is_known(const struct group *g);
bool group_has_members(const struct group *g);
/* Sorted by topic and partition. */
size_t group_parts(struct session *s, const struct group *g, struct group_part **ret);
/* Finds what each is in the cluster, and its ends. False after saying what could not be told. */
bool group_parts_ask(struct session *s, struct group_part *parts, size_t n);
/* The partitions that a member was given: "t:0,1;u:2", "" none; *ret_n counts them. */
const char *group_member_assignment(struct session *s, const struct describe_groups_response_members *m,
                                    int32_t *ret_n);

struct group_listed {
    const char *name;
    struct kstr state, protocol_type; /* null where the broker does not tell */
};
/* Every group of every broker, sorted by name. CLI_OK, or CLI_FAILED after saying why. */
int groups_list(struct session *s, struct group_listed **ret, size_t *ret_n);

/* Commits positions without membership. CLI_OK, or CLI_FAILED after saying why. */
int group_commit(struct session *s, const char *group, struct position *positions, size_t n);

#endif
