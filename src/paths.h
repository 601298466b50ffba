/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount's own paths as operands: "orders/json/@-1h/p0" (lib/view). What they name is asked of the cluster here; what is
 * wrong with one is said here, too. One thread.
 */
#ifndef KLOG_SRC_PATHS_H
#define KLOG_SRC_PATHS_H

#include "lib/view/view.h"
#include "src/session.h"

struct path {
    const char *text; /* as it was given */
    struct view_path at;
    struct uuid topic_id;
    int32_t n_partitions; /* of the topic */
};

/* Enough about them for paths_next. CLI_OK; CLI_USAGE: that is no path; CLI_FAILED: there is no such topic or partition. */
int path_find(struct session *s, const char *text, struct path *ret);
/* May it be read (all, pN) or appended to (any, pN) by klog? CLI_USAGE after saying why not. */
int path_may_read(const struct session *s, const struct path *p);
int path_may_append(const struct session *s, const struct path *p);
/* Its partitions, in the session's arena: one, or all of them. */
const int32_t *path_partitions(struct session *s, const struct path *p, size_t *ret_n);
/* A shell cannot know what "orders/p*" stands for: such an operand becomes one a partition, in their order. 0 and the
 * operands, in the session's arena, or a status after saying why. */
int paths_expand(struct session *s, const char *const *operands, size_t n, const char ***ret, size_t *ret_n);

#endif
