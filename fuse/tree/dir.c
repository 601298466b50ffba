/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing directories. The names are taken once, at the first read (and again after rewinddir), so a listing
 * has every name that stays exactly once, whatever comes and goes meanwhile; an entry's offset is its place
 * in that list. Loop's thread.
 */
#include "fuse/tree/dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/tree/file.h"
#include "lib/base/mem.h"

#define DIR_BUFFER_MAX (64 * 1024)

struct dir_entry {
    char *name;
    enum node_kind kind;
    int32_t partition;
    struct topic *topic; /* owned reference; of a topic in the root, else NULL */
};

struct dir_list {
    struct dir_entry *entries;
    size_t n, cap;
};

struct dir_op {
    struct request r;
    struct handle *h; /* owned reference */
    size_t size;
    bool plus;
    struct topics_wait metadata;
    struct groups_list groups; /* .groups */
    struct group_ask ask;      /* .groups/G */
};

void dir_list_free(struct dir_list *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->n; i++) {
        free(d->entries[i].name);
        topic_unref(d->entries[i].topic);
    }
    free(d->entries);
    free(d);
}

static void dir_add(struct dir_list *d, char *name, enum node_kind kind, int32_t partition,
                    struct topic *topic)
{
    if (d->n == d->cap) {
        d->cap = d->cap == 0 ? 16 : d->cap * 2;
        d->entries = xreallocarray(d->entries, d->cap, sizeof *d->entries);
    }
    d->entries[d->n++] = (struct dir_entry){ name, kind, partition, topic };
}

struct root_listing {
    struct mount *mount;
    struct dir_list *list;
};

bool dir_lists_topic(const struct client_topic *ct)
{
    return ct->err != KERR_UNKNOWN_TOPIC_OR_PARTITION && !ct->internal && topic_name_ok(ct->name) &&
           strcmp(ct->name, ".status") != 0;
}

static void list_topic(void *arg, const struct client_topic *ct)
{
    struct root_listing *r = arg;
    if (!dir_lists_topic(ct))
        return;
    dir_add(r->list, xstrdup(ct->name), NODE_TOPIC, -1, topic_of(r->mount, ct));
}

static void list_partitions(struct dir_list *d, const struct node *dir, const struct client_topic *ct)
{
    enum node_kind kind = node_kind_of_partition(&dir->view);
    if ((dir->view.parts & VIEW_AS_OPEN) != 0)
        return; /* any group can be entered, none is there */
    if (dir->view.parts == 0) {
        dir_add(d, xstrdup(".config"), NODE_TOPIC_CONFIG, -1, NULL);
        dir_add(d, xstrdup(".groups"), NODE_GROUPS, -1, NULL);
        dir_add(d, xstrdup(".status"), NODE_TOPIC_STATUS, -1, NULL);
    }
    for (int32_t i = 0; ct != NULL && i < ct->n_partitions; i++)
        dir_add(d, xasprintf("p%" PRId32, i), kind, i, NULL);
}

static struct dir_list *dir_list_new(const struct node *dir)
{
    struct dir_list *d = xcalloc(1, sizeof *d);
    dir_add(d, xstrdup("."), dir->kind, -1, NULL);
    dir_add(d, xstrdup(".."), NODE_ROOT, -1, NULL);
    return d;
}

static struct dir_list *dir_list_make(struct mount *m, const struct node *dir)
{
    struct dir_list *d = dir_list_new(dir);
    if (dir->kind == NODE_ROOT) {
        struct root_listing r = { m, d };
        dir_add(d, xstrdup(".status"), NODE_CLUSTER_STATUS, -1, NULL);
        client_each_topic(m->client, list_topic, &r);
    } else {
        list_partitions(d, dir, client_topic(m->client, dir->topic->name));
    }
    return d;
}

/* ---- the answer ---- */

static bool is_dot(const struct dir_entry *e)
{
    return strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0;
}

static size_t add_plain(struct mount *m, const struct node *dir, const struct dir_entry *e, fuse_req_t req,
                        char *buf, size_t room, off_t next)
{
    struct stat st = { .st_mode = node_kind_is_dir(e->kind) ? S_IFDIR : S_IFREG };
    if (is_dot(e))
        node_fill_stat(m, dir, &st);
    else
        st.st_ino = node_ino_of(m, dir, e->name, e->topic, e->partition);
    return fuse_add_direntry(req, buf, room, e->name, &st, next);
}

/* With attributes: counts as a look-up, but only when it fits. */
static size_t add_plus(struct mount *m, struct node *dir, const struct dir_entry *e, fuse_req_t req,
                       char *buf, size_t room, off_t next)
{
    struct fuse_entry_param p = { 0 };
    if (is_dot(e)) {
        node_fill_stat(m, dir, &p.attr);
        return fuse_add_direntry_plus(req, buf, room, e->name, &p, next);
    }
    struct view view = dir->view;
    if (e->kind == NODE_GROUP)
        memcpy(view.group, e->name, strlen(e->name) + 1);
    struct node *n = node_get(m, dir, e->name, e->kind, e->topic, &view, e->partition);
    entry_fill(m, n, &p);
    size_t need = fuse_add_direntry_plus(req, buf, room, e->name, &p, next);
    if (need <= room)
        node_looked_up(n);
    node_unref(m, n);
    return need;
}

static void dir_reply(struct handle *h, fuse_req_t req, size_t size, off_t off, bool plus)
{
    struct dir_list *d = h->dir;
    size_t max = MIN(size, (size_t)DIR_BUFFER_MAX), n = 0;
    CLEANUP(freep) char *buf = xmalloc(max);
    for (uint64_t i = (uint64_t)off; i < d->n; i++) {
        size_t need = plus
                          ? add_plus(h->mount, h->node, &d->entries[i], req, buf + n, max - n, (off_t)i + 1)
                          : add_plain(h->mount, h->node, &d->entries[i], req, buf + n, max - n, (off_t)i + 1);
        if (need > max - n)
            break;
        n += need;
    }
    fuse_reply_buf(req, buf, n);
}

/* Takes the list; NULL with an errno. */
static void dir_op_end(struct dir_op *op, int err, struct dir_list *d)
{
    struct handle *h = op->h;
    fuse_req_t req = request_take(&op->r);
    if (req == NULL) {
        dir_list_free(d);
    } else if (err != 0) {
        fuse_reply_err(req, err);
    } else {
        dir_list_free(h->dir);
        h->dir = d;
        dir_reply(h, req, op->size, 0, op->plus);
    }
    handle_unref(h);
    free(op);
}

static void on_dir_groups(struct groups_list *l, int rc)
{
    struct dir_op *op = container_of(l, struct dir_op, groups);
    struct dir_list *d = rc == 0 ? dir_list_new(op->h->node) : NULL;
    if (rc == 0)
        dir_saw_groups(op->r.mount, op->h->node, l);
    for (size_t i = 0; i < l->n; i++) {
        if (rc == 0)
            dir_add(d, l->names[i], NODE_GROUP, -1, NULL);
        else
            free(l->names[i]);
    }
    free(l->names);
    dir_op_end(op, -rc, d);
}

static void on_dir_positions(struct group_ask *a, int rc, const struct position *p, size_t n)
{
    struct dir_op *op = container_of(a, struct dir_op, ask);
    struct dir_list *d = rc == 0 ? dir_list_new(op->h->node) : NULL;
    if (rc == 0) {
        dir_add(d, xstrdup(".status"), NODE_GROUP_STATUS, -1, NULL);
        dir_saw(op->h->node, dir_positions_hash(p, n));
    }
    for (size_t i = 0; i < n; i++) {
        if (p[i].offset >= 0)
            dir_add(d, xasprintf("p%" PRId32, p[i].partition), NODE_POSITION, p[i].partition, NULL);
    }
    dir_op_end(op, -rc, d);
}

static void on_dir_metadata(struct topics_wait *w, int rc)
{
    struct dir_op *op = container_of(w, struct dir_op, metadata);
    struct mount *m = op->r.mount;
    struct node *dir = op->h->node;
    const struct client_topic *ct = dir->topic == NULL ? NULL : client_topic(m->client, dir->topic->name);
    int32_t partitions = ct == NULL ? 0 : ct->n_partitions;
    if (rc != 0) {
        dir_op_end(op, rc == -ENOENT ? ESTALE : -rc, NULL);
    } else if (dir->kind == NODE_GROUPS) {
        op->groups = (struct groups_list){ .topic = dir->topic->name, .n_partitions = partitions };
        op->groups.cb = on_dir_groups;
        dir_list_groups(m, dir, &op->groups);
    } else if (dir->kind == NODE_GROUP) {
        op->ask = (struct group_ask){ .group = dir->view.group, .topic = dir->topic->name, .n = partitions };
        op->ask.cb = on_dir_positions;
        group_ask(m, &op->ask);
    } else {
        dir_op_end(op, 0, dir_list_make(m, dir));
    }
}

void dir_read(struct handle *h, fuse_req_t req, size_t size, off_t off, bool plus)
{
    if (off > 0 && h->dir != NULL) {
        dir_reply(h, req, size, off, plus);
        return;
    }
    struct dir_op *op = xcalloc(1, sizeof *op);
    op->h = handle_ref(h);
    op->size = size;
    op->plus = plus;
    op->metadata.cb = on_dir_metadata;
    request_begin(&op->r, h->mount, req);
    topics_ask(h->mount, &op->metadata, h->node->kind == NODE_ROOT ? NULL : h->node->topic->name,
               METADATA_VALID_MS);
}
