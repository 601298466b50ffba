/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers in memory: a tree of named values with versions, and the all-or-nothing change of several
 * of them. Pure: no I/O, no locks, no clock; one thread at a time.
 *
 * A parent must exist before its child and cannot go before it, as in ZooKeeper.
 */
#ifndef KLOG_DAEMON_REGISTER_TREE_H
#define KLOG_DAEMON_REGISTER_TREE_H

#include "daemon/meta/registers.h"
#include "lib/store/register_files.h"

struct register_node;
struct register_tree {
    struct register_node *by_path; /* uthash */
    size_t n_nodes, bytes;         /* of durable registers: paths and values, for the size of a snapshot */
};
void register_tree_done(struct register_tree *t);

/* Steps back over one change, until it is known to be durable. */
struct register_undo_step;
struct register_undo {
    struct register_undo_step *steps;
    size_t n, cap;
};

/* Applies all ops or none; fills rc and new_version of each. Returns 0 or the first op's error. What was done
 * is added to undo: end it with register_undo_commit or register_undo_revert. */
int register_tree_multi(struct register_tree *t, struct register_op *ops, int n, struct register_undo *undo);
void register_undo_commit(struct register_undo *undo);
void register_undo_revert(struct register_tree *t, struct register_undo *undo);

int register_tree_get(const struct register_tree *t, const char *path, struct slice *ret_value,
                      int64_t *ret_version);
/* -ENOENT; the names are sorted and point into the tree, the array is the caller's to free. "/" is always
 * there. */
int register_tree_children(const struct register_tree *t, const char *path, const char ***ret_names,
                           int *ret_n);

/* For loading: what a journal or snapshot says is taken as it is. -EBADMSG when it cannot be. */
int register_tree_put(struct register_tree *t, const char *path, struct slice value, int64_t version);
int register_tree_drop(struct register_tree *t, const char *path);
/* Durable registers, parents before children. */
void register_tree_each(struct register_tree *t,
                        void (*f)(void *arg, const char *path, struct slice value, int64_t version),
                        void *arg);
bool register_tree_is_ephemeral(const struct register_tree *t, const char *path);

bool register_path_is_legal(const char *path);
/* Is path the register `top` or below it? */
bool register_path_is_under(const char *path, const char *top);

#endif
