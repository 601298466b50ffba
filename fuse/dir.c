/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing directories. The names are taken once, at the first read (and again after rewinddir), so a listing
 * has every name that stays exactly once, whatever comes and goes meanwhile; an entry's offset is its place
 * in that list. Loop's thread.
 */
#include "fuse/dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/file.h"
#include "fuse/mount.h"
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

/* Kafka's own topics (__consumer_offsets) can be entered, but crawlers are not led into them. */
static void list_topic(void *arg, const struct client_topic *ct)
{
    struct root_listing *r = arg;
    if (ct->err == KERR_UNKNOWN_TOPIC_OR_PARTITION || ct->internal || !topic_name_ok(ct->name) ||
        strcmp(ct->name, ".status") == 0)
        return;
    dir_add(r->list, xstrdup(ct->name), NODE_TOPIC, -1, topic_of(r->mount, ct));
}

static void list_partitions(struct dir_list *d, const struct node *dir, const struct client_topic *ct)
{
    enum node_kind kind = (dir->view.parts & VIEW_FOLLOW) != 0 ? NODE_STREAM : NODE_PARTITION;
    if (dir->view.parts == 0) {
        dir_add(d, xstrdup(".config"), NODE_TOPIC_CONFIG, -1, NULL);
        dir_add(d, xstrdup(".status"), NODE_TOPIC_STATUS, -1, NULL);
    }
    for (int32_t i = 0; ct != NULL && i < ct->n_partitions; i++)
        dir_add(d, xasprintf("p%" PRId32, i), kind, i, NULL);
}

static struct dir_list *dir_list_make(struct mount *m, const struct node *dir)
{
    struct dir_list *d = xcalloc(1, sizeof *d);
    dir_add(d, xstrdup("."), dir->kind, -1, NULL);
    dir_add(d, xstrdup(".."), NODE_ROOT, -1, NULL);
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
    bool dirent = e->kind == NODE_ROOT || e->kind == NODE_TOPIC;
    struct stat st = { .st_mode = dirent ? S_IFDIR : S_IFREG };
    st.st_ino = is_dot(e) ? dir->ino : node_ino_of(m, dir, e->name, e->topic);
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
    struct node *n = node_get(m, dir, e->name, e->kind, e->topic, &dir->view, e->partition);
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

static void on_dir_metadata(struct topics_wait *w, int rc)
{
    struct dir_op *op = container_of(w, struct dir_op, metadata);
    struct handle *h = op->h;
    fuse_req_t req = request_take(&op->r);
    if (req != NULL && rc != 0) {
        fuse_reply_err(req, rc == -ENOENT ? ESTALE : -rc);
    } else if (req != NULL) {
        dir_list_free(h->dir);
        h->dir = dir_list_make(h->mount, h->node);
        dir_reply(h, req, op->size, 0, op->plus);
    }
    handle_unref(h);
    free(op);
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
    request_begin(&op->r, h->mount, req, NULL);
    topics_ask(h->mount, &op->metadata, h->node->kind == NODE_ROOT ? NULL : h->node->topic->name,
               METADATA_VALID_MS);
}
