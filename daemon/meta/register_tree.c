/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See register_tree.h. Every change of a node goes through one of four primitives (link, unlink,
 * set, restore), so that the byte counts and the children lists cannot drift from the table.
 */
#include "daemon/meta/register_tree.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>
#include <uthash.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

struct register_node {
    char *path; /* the key */
    uint8_t *value;
    size_t value_bytes;
    int64_t version;
    bool ephemeral;
    struct register_node *parent; /* NULL directly below "/" */
    LIST_HEAD(, register_node) children;
    LIST_ENTRY(register_node) sibling;
    UT_hash_handle hh;
};

struct register_undo_step {
    enum register_op_kind kind;
    struct register_node *node; /* DELETE: out of the tree, owned by the step */
    uint8_t *value;             /* SET: what was there before, owned */
    size_t value_bytes;
    int64_t version;
};

bool register_path_is_legal(const char *path)
{
    size_t n = strnlen(path, REGISTER_PATH_MAX + 1);

    return n >= 2 && n <= REGISTER_PATH_MAX && path[0] == '/' && path[n - 1] != '/' &&
           strstr(path, "//") == NULL;
}

bool register_path_is_under(const char *path, const char *top)
{
    size_t n = strlen(top);

    if (strcmp(top, "/") == 0)
        return true;
    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static const char *node_name(const struct register_node *nd)
{
    return strrchr(nd->path, '/') + 1;
}

static struct register_node *tree_find(const struct register_tree *t, const char *path)
{
    struct register_node *nd;

    HASH_FIND_STR(t->by_path, path, nd);
    return nd;
}

/* The node above path; *ret_top when that is "/", which is no node. */
static struct register_node *tree_find_parent(const struct register_tree *t, const char *path, bool *ret_top)
{
    size_t n = (size_t)(strrchr(path, '/') - path);
    struct register_node *nd = NULL;

    *ret_top = n == 0;
    if (n > 0)
        HASH_FIND(hh, t->by_path, path, n, nd);
    return nd;
}

static void tree_count(struct register_tree *t, const struct register_node *nd, int sign)
{
    if (nd->ephemeral)
        return;
    size_t bytes = strlen(nd->path) + nd->value_bytes;
    t->n_nodes = sign > 0 ? t->n_nodes + 1 : t->n_nodes - 1;
    t->bytes = sign > 0 ? t->bytes + bytes : t->bytes - bytes;
}

static void node_free(struct register_node *nd)
{
    KCHECK(LIST_EMPTY(&nd->children));
    free(nd->path);
    free(nd->value);
    free(nd);
}

static void tree_link(struct register_tree *t, struct register_node *nd)
{
    HASH_ADD_KEYPTR(hh, t->by_path, nd->path, strlen(nd->path), nd);
    if (nd->parent != NULL)
        LIST_INSERT_HEAD(&nd->parent->children, nd, sibling);
    tree_count(t, nd, +1);
}

static void tree_unlink(struct register_tree *t, struct register_node *nd)
{
    KCHECK(LIST_EMPTY(&nd->children));
    HASH_DEL(t->by_path, nd);
    if (nd->parent != NULL)
        LIST_REMOVE(nd, sibling);
    tree_count(t, nd, -1);
}

/* Takes value over; what was there comes back. */
static uint8_t *tree_set(struct register_tree *t, struct register_node *nd, uint8_t *value, size_t n,
                         int64_t version, size_t *ret_old_bytes)
{
    uint8_t *old = nd->value;

    tree_count(t, nd, -1);
    *ret_old_bytes = nd->value_bytes;
    nd->value = value;
    nd->value_bytes = n;
    nd->version = version;
    tree_count(t, nd, +1);
    return old;
}

static uint8_t *value_dup(struct slice v)
{
    uint8_t *p = xmalloc(v.n + 1);

    if (v.n > 0)
        memcpy(p, v.p, v.n);
    return p;
}

static struct register_node *tree_create(struct register_tree *t, const char *path,
                                         struct register_node *parent, struct slice value, int64_t version,
                                         bool ephemeral)
{
    struct register_node *nd = xcalloc(1, sizeof *nd);

    nd->path = xstrdup(path);
    nd->value = value_dup(value);
    nd->value_bytes = value.n;
    nd->version = version;
    nd->ephemeral = ephemeral;
    nd->parent = parent;
    LIST_INIT(&nd->children);
    tree_link(t, nd);
    return nd;
}

void register_tree_done(struct register_tree *t)
{
    struct register_node *nd, *next;

    HASH_ITER (hh, t->by_path, nd, next) {
        HASH_DEL(t->by_path, nd);
        LIST_INIT(&nd->children);
        node_free(nd);
    }
    memset(t, 0, sizeof *t);
}

/* ---- all or nothing ---- */

static struct register_undo_step *undo_push(struct register_undo *u, enum register_op_kind kind,
                                            struct register_node *nd)
{
    if (u->n == u->cap) {
        u->cap = u->cap == 0 ? 8 : 2 * u->cap;
        u->steps = xreallocarray(u->steps, u->cap, sizeof *u->steps);
    }
    struct register_undo_step *s = &u->steps[u->n++];
    *s = (struct register_undo_step){ .kind = kind, .node = nd };
    return s;
}

static int op_create(struct register_tree *t, struct register_op *op, struct register_undo *undo)
{
    bool top;
    struct register_node *parent = tree_find_parent(t, op->path, &top);

    if (parent == NULL && !top)
        return -ENOENT;
    if (parent != NULL && parent->ephemeral)
        return -EINVAL;
    if (tree_find(t, op->path) != NULL)
        return -EEXIST;

    bool ephemeral = op->kind == REGISTER_CREATE_EPHEMERAL;
    undo_push(undo, op->kind, tree_create(t, op->path, parent, op->value, 0, ephemeral));
    op->new_version = 0;
    return 0;
}

/* The node if it is there and has the expected version. */
static int op_find(const struct register_tree *t, const struct register_op *op, struct register_node **ret)
{
    struct register_node *nd = tree_find(t, op->path);

    if (nd == NULL)
        return -ENOENT;
    if (op->version != REGISTER_ANY_VERSION && op->version != nd->version)
        return -ESTALE;
    *ret = nd;
    return 0;
}

static int op_set(struct register_tree *t, struct register_op *op, struct register_undo *undo)
{
    struct register_node *nd;
    int rc = op_find(t, op, &nd);
    if (rc < 0)
        return rc;

    struct register_undo_step *s = undo_push(undo, op->kind, nd);
    s->version = nd->version;
    s->value = tree_set(t, nd, value_dup(op->value), op->value.n, nd->version + 1, &s->value_bytes);
    op->new_version = nd->version;
    return 0;
}

static int op_delete(struct register_tree *t, struct register_op *op, struct register_undo *undo)
{
    struct register_node *nd;
    int rc = op_find(t, op, &nd);
    if (rc < 0)
        return rc;
    if (!LIST_EMPTY(&nd->children))
        return -ENOTEMPTY;

    tree_unlink(t, nd);
    undo_push(undo, op->kind, nd);
    return 0;
}

static int op_check(struct register_tree *t, struct register_op *op)
{
    struct register_node *nd;
    int rc = op_find(t, op, &nd);

    if (rc == 0)
        op->new_version = nd->version;
    return rc;
}

static int op_apply(struct register_tree *t, struct register_op *op, struct register_undo *undo)
{
    if (!register_path_is_legal(op->path) || op->value.n > REGISTER_VALUE_MAX)
        return -EINVAL;

    switch (op->kind) {
    case REGISTER_CREATE:
    case REGISTER_CREATE_EPHEMERAL:
        return op_create(t, op, undo);
    case REGISTER_SET:
        return op_set(t, op, undo);
    case REGISTER_DELETE:
        return op_delete(t, op, undo);
    case REGISTER_CHECK:
        return op_check(t, op);
    }
    return -EINVAL;
}

static void undo_one(struct register_tree *t, struct register_undo_step *s)
{
    size_t bytes;

    switch (s->kind) {
    case REGISTER_CREATE:
    case REGISTER_CREATE_EPHEMERAL:
        tree_unlink(t, s->node);
        node_free(s->node);
        break;
    case REGISTER_SET:
        free(tree_set(t, s->node, s->value, s->value_bytes, s->version, &bytes));
        break;
    case REGISTER_DELETE:
        tree_link(t, s->node);
        break;
    case REGISTER_CHECK:
        break;
    }
}

static void undo_back_to(struct register_tree *t, struct register_undo *undo, size_t n)
{
    while (undo->n > n)
        undo_one(t, &undo->steps[--undo->n]);
}

int register_tree_multi(struct register_tree *t, struct register_op *ops, int n, struct register_undo *undo)
{
    size_t mark = undo->n;
    int rc = 0, failed = -1;

    for (int i = 0; i < n && rc == 0; i++)
        if ((rc = ops[i].rc = op_apply(t, &ops[i], undo)) < 0)
            failed = i;
    if (rc == 0)
        return 0;

    undo_back_to(t, undo, mark);
    for (int i = 0; i < n; i++)
        if (i != failed)
            ops[i].rc = -ECANCELED;
    return rc;
}

void register_undo_commit(struct register_undo *undo)
{
    for (size_t i = 0; i < undo->n; i++) {
        free(undo->steps[i].value);
        if (undo->steps[i].kind == REGISTER_DELETE)
            node_free(undo->steps[i].node);
    }
    free(undo->steps);
    memset(undo, 0, sizeof *undo);
}

void register_undo_revert(struct register_tree *t, struct register_undo *undo)
{
    undo_back_to(t, undo, 0);
    register_undo_commit(undo);
}

/* ---- reading ---- */

int register_tree_get(const struct register_tree *t, const char *path, struct slice *ret_value,
                      int64_t *ret_version)
{
    const struct register_node *nd = tree_find(t, path);

    if (nd == NULL)
        return -ENOENT;
    *ret_value = slice_of(nd->value, nd->value_bytes);
    *ret_version = nd->version;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int register_tree_children(const struct register_tree *t, const char *path, const char ***ret_names,
                           int *ret_n)
{
    bool top = strcmp(path, "/") == 0;
    struct register_node *nd = top ? NULL : tree_find(t, path), *child;
    if (nd == NULL && !top)
        return -ENOENT;

    size_t n = 0;
    const char **names = xcalloc(HASH_COUNT(t->by_path) + 1, sizeof *names);
    if (top) {
        for (child = t->by_path; child != NULL; child = child->hh.next)
            if (child->parent == NULL)
                names[n++] = node_name(child);
    } else {
        LIST_FOREACH (child, &nd->children, sibling)
            names[n++] = node_name(child);
    }
    qsort(names, n, sizeof *names, compare_names);
    *ret_names = names;
    *ret_n = (int)n;
    return 0;
}

bool register_tree_is_ephemeral(const struct register_tree *t, const char *path)
{
    const struct register_node *nd = tree_find(t, path);

    return nd != NULL && nd->ephemeral;
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp((*(struct register_node *const *)a)->path, (*(struct register_node *const *)b)->path);
}

/* A path sorts before those it is a prefix of: parents come first. */
void register_tree_each(struct register_tree *t,
                        void (*f)(void *arg, const char *path, struct slice value, int64_t version),
                        void *arg)
{
    struct register_node **all = xcalloc(t->n_nodes + 1, sizeof *all);
    size_t n = 0;

    for (struct register_node *nd = t->by_path; nd != NULL; nd = nd->hh.next)
        if (!nd->ephemeral)
            all[n++] = nd;
    KCHECK(n == t->n_nodes);
    qsort(all, n, sizeof(*all), compare_nodes);
    for (size_t i = 0; i < n; i++)
        f(arg, all[i]->path, slice_of(all[i]->value, all[i]->value_bytes), all[i]->version);
    free(all);
}

/* ---- loading ---- */

int register_tree_put(struct register_tree *t, const char *path, struct slice value, int64_t version)
{
    if (!register_path_is_legal(path) || value.n > REGISTER_VALUE_MAX || version < 0 || version > REGISTER_VERSION_MAX)
        return -EBADMSG;

    struct register_node *nd = tree_find(t, path);
    if (nd != NULL) {
        size_t bytes;
        free(tree_set(t, nd, value_dup(value), value.n, version, &bytes));
        return 0;
    }

    bool top;
    struct register_node *parent = tree_find_parent(t, path, &top);
    if (parent == NULL && !top)
        return -EBADMSG;
    tree_create(t, path, parent, value, version, false);
    return 0;
}

int register_tree_drop(struct register_tree *t, const char *path)
{
    struct register_node *nd = tree_find(t, path);

    if (nd == NULL || !LIST_EMPTY(&nd->children))
        return -EBADMSG;
    tree_unlink(t, nd);
    node_free(nd);
    return 0;
}
