/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name in a directory to a node: topics by the broker's metadata, partitions by their number, views by
 * the grammar of lib/view. Looking never creates anything. Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/tree/dir.h"
#include "fuse/tree/file.h"
#include "lib/base/mem.h"

static void lookup_end(struct lookup *l, int rc, struct node *n)
{
    struct node *parent = l->parent;
    struct mount *m = l->mount;
    free(l->name);
    l->name = NULL;
    l->cb(l, rc, n);
    node_unref(m, parent);
}

static void lookup_found(struct lookup *l, enum node_kind kind, struct topic *topic, int32_t partition)
{
    lookup_end(l, 0, node_get(l->mount, l->parent, l->name, kind, topic, &l->view, partition));
}

static void on_topic(struct topics_wait *w, int rc)
{
    struct lookup *l = container_of(w, struct lookup, metadata);
    if (rc != 0) {
        lookup_end(l, rc, NULL);
        return;
    }
    struct topic *t = topic_of(l->mount, client_topic(l->mount->client, l->name));
    lookup_found(l, NODE_TOPIC, t, -1);
    topic_unref(t);
}

static void on_lookup_ends(struct text_wait *w, int rc)
{
    struct lookup *l = container_of(w, struct lookup, ends);
    struct lens *lens = l->lens;
    if (rc == -ENOENT)
        lookup_end(l, -ESTALE, NULL);
    else /* else from what is known */
        lookup_found(l, NODE_PARTITION, NULL, l->partition);
    lens_unref(lens);
}

/* While somebody reads by a base, who looks the name up must be told whether the log begins there still (X2). And what
 * comes after the first look-up is news for those who watch the file, so its end of then must be known. What a RANGE comes to
 * is asked each time. */
static bool lookup_needs_ends(const struct mount *m, const struct lens *lens)
{
    const struct pfile *f = lens->file;
    if (lens_has_range(lens))
        return !mount_misses_brokers(m) || !f->ends_known;
    if (f->told_end < 0)
        return m->poke != NULL && !mount_misses_brokers(m);
    return lens->text != NULL && lens->text->based;
}

static void lookup_partition(struct lookup *l)
{
    enum node_kind kind = node_kind_of_partition(&l->view);
    if (kind != NODE_PARTITION) {
        lookup_found(l, kind, NULL, l->partition);
        return;
    }
    struct pfile *f = pfile_get(l->mount, l->parent->topic, l->partition);
    l->lens = lens_get(f, &l->view);
    pfile_unref(f);
    l->ends.cb = on_lookup_ends;
    if (lookup_needs_ends(l->mount, l->lens))
        lens_ask(l->lens, &l->ends);
    else
        on_lookup_ends(&l->ends, 0);
}

static void on_partitions(struct topics_wait *w, int rc)
{
    struct lookup *l = container_of(w, struct lookup, metadata);
    struct topic *t = l->parent->topic;
    const struct client_topic *ct = rc == 0 ? client_topic(l->mount->client, t->name) : NULL;
    if (t->gone)
        rc = -ESTALE;
    else if (rc == 0 && ct == NULL)
        rc = -ENOENT;
    if (rc != 0) {
        lookup_end(l, rc, NULL);
    } else if (l->partition < ct->n_partitions) {
        lookup_partition(l);
    } else if (l->max_age_ms > 0) { /* it may have been made a moment ago */
        l->max_age_ms = 0;
        topics_ask(l->mount, &l->metadata, t->name, 0);
    } else {
        lookup_end(l, -ENOENT, NULL);
    }
}

/* ---- groups ---- */

static bool lookup_lingers(struct lookup *l)
{
    const struct node *n = node_named(l->mount, l->parent, l->name, 0);
    return n != NULL && node_lingers(l->mount, n);
}

static void lookup_group(struct lookup *l, uint64_t entries)
{
    struct node *n = node_get(l->mount, l->parent, l->name, NODE_GROUP, NULL, &l->view, -1);
    dir_saw(n, entries);
    lookup_end(l, 0, n);
}

/* A group is there while it has a position in the topic (G1 of groups.h), a position's file while it has this one. */
static void on_lookup_positions(struct group_ask *a, int rc, const struct position *p, size_t n)
{
    struct lookup *l = container_of(a, struct lookup, ask);
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= p[i].offset >= 0;
    if (rc != 0)
        lookup_end(l, rc, NULL);
    else if (!any && !(l->partition < 0 && lookup_lingers(l)))
        lookup_end(l, -ENOENT, NULL);
    else if (l->partition < 0)
        lookup_group(l, dir_positions_hash(p, n));
    else
        lookup_found(l, NODE_POSITION, NULL, l->partition);
}

static void lookup_positions(struct lookup *l, int32_t first, int32_t n)
{
    l->ask = (struct group_ask){ .group = l->view.group,
                                 .topic = l->parent->topic->name,
                                 .first = first,
                                 .n = n,
                                 .cb = on_lookup_positions };
    group_ask(l->mount, &l->ask);
}

static void on_group_partitions(struct topics_wait *w, int rc)
{
    struct lookup *l = container_of(w, struct lookup, metadata);
    const struct client_topic *ct = rc == 0 ? client_topic(l->mount->client, l->parent->topic->name) : NULL;
    if (rc != 0 || ct == NULL)
        lookup_end(l, rc != 0 ? rc : -ENOENT, NULL);
    else
        lookup_positions(l, 0, ct->n_partitions);
}

static void lookup_in_groups(struct lookup *l)
{
    if (!group_name_ok(l->name)) {
        lookup_end(l, -ENOENT, NULL);
        return;
    }
    memcpy(l->view.group, l->name, strlen(l->name) + 1);
    l->metadata.cb = on_group_partitions;
    topics_ask(l->mount, &l->metadata, l->parent->topic->name, l->max_age_ms);
}

static void lookup_in_group(struct lookup *l)
{
    if (strcmp(l->name, ".status") == 0)
        lookup_found(l, NODE_GROUP_STATUS, NULL, -1);
    else if (view_partition_parse(l->name, &l->partition))
        lookup_positions(l, l->partition, 1);
    else
        lookup_end(l, -ENOENT, NULL);
}

/* ---- all names ---- */

static void lookup_in_root(struct lookup *l)
{
    if (strcmp(l->name, ".status") == 0) {
        lookup_found(l, NODE_CLUSTER_STATUS, NULL, -1);
    } else if (!topic_name_ok(l->name)) {
        lookup_end(l, -ENOENT, NULL);
    } else {
        l->metadata.cb = on_topic;
        topics_ask(l->mount, &l->metadata, l->name, l->max_age_ms);
    }
}

/* What stands beside the partitions; -1: none. */
static int fixed_kind(const struct node *dir, const char *name)
{
    if (dir->view.parts == 0 && strcmp(name, ".config") == 0)
        return NODE_TOPIC_CONFIG;
    if (dir->view.parts == 0 && strcmp(name, ".status") == 0)
        return NODE_TOPIC_STATUS;
    if (dir->view.parts == 0 && strcmp(name, ".groups") == 0)
        return NODE_GROUPS;
    if (strcmp(name, "all") == 0)
        return (dir->view.parts & VIEW_AS) != 0 ? NODE_READER : NODE_ALL;
    return strcmp(name, "any") == 0 ? NODE_ANY : -1;
}

static void lookup_in_topic(struct lookup *l)
{
    struct node *dir = l->parent;
    bool group = (dir->view.parts & VIEW_AS_OPEN) != 0; /* any name is a group's */
    int kind = group ? -1 : fixed_kind(dir, l->name);
    if (kind >= 0) {
        lookup_found(l, (enum node_kind)kind, NULL, -1);
    } else if (!group && view_partition_parse(l->name, &l->partition)) {
        l->metadata.cb = on_partitions;
        topics_ask(l->mount, &l->metadata, dir->topic->name, l->max_age_ms);
    } else if (view_enter(&dir->view, l->name, &l->view)) {
        lookup_found(l, NODE_TOPIC, NULL, -1);
    } else {
        lookup_end(l, -ENOENT, NULL);
    }
}

void lookup_begin(struct mount *m, struct lookup *l, struct node *parent, const char *name,
                  int64_t max_age_ms)
{
    l->mount = m;
    l->parent = node_ref(parent);
    l->name = xstrdup(name);
    l->view = parent->view;
    l->partition = -1;
    l->max_age_ms = max_age_ms;
    if (parent->kind == NODE_ROOT)
        lookup_in_root(l);
    else if (parent->topic != NULL && parent->topic->gone) /* the kernel then looks the topic's name up anew */
        lookup_end(l, -ESTALE, NULL);
    else if (parent->kind == NODE_TOPIC)
        lookup_in_topic(l);
    else if (parent->kind == NODE_GROUPS)
        lookup_in_groups(l);
    else if (parent->kind == NODE_GROUP)
        lookup_in_group(l);
    else
        lookup_end(l, -ENOTDIR, NULL);
}

/* X5 of ptext.h */
static void entry_fill_partition(struct mount *m, struct node *n, struct fuse_entry_param *ret)
{
    bool keep = n->lens->readers == 0 && n->lens->appended_to && !n->asked_again;
    n->asked_again = false;
    n->kept_until_ms = keep ? loop_now_ms(m->loop) + (int64_t)(ENTRY_VALID_S * 1000) : 0;
    if (!keep)
        ret->entry_timeout = 0;
}

void entry_fill(struct mount *m, struct node *n, struct fuse_entry_param *ret)
{
    dir_saw_metadata(m, n);
    *ret = (struct fuse_entry_param){ .ino = n->id, .entry_timeout = ENTRY_VALID_S };
    if (n->kind == NODE_GROUP || n->kind == NODE_POSITION) /* any Kafka client may make or delete them */
        ret->entry_timeout = 0;
    if (n->kind == NODE_PARTITION)
        entry_fill_partition(m, n, ret);
    file_fill_stat(m, n, &ret->attr);
    if (node_is_dir(n) && n->kind != NODE_GROUPS) /* whose names are asked for by getattr */
        ret->attr_timeout = ENTRY_VALID_S;
}

void entry_reply(struct mount *m, struct node *n, fuse_req_t req)
{
    struct fuse_entry_param e;
    entry_fill(m, n, &e);
    node_looked_up(n);
    if (fuse_reply_entry(req, &e) == -ENOENT)
        node_forget(m, n, 1);
}

/* As touch opens it, perhaps without O_APPEND: writes are judged when they come. */
void entry_reply_created(struct mount *m, struct node *n, int flags, fuse_req_t req)
{
    struct fuse_entry_param e;
    struct handle *h = handle_new(m, n, flags);
    struct fuse_file_info fi = { .fh = (uintptr_t)h, .direct_io = 1 };
    entry_fill(m, n, &e);
    node_looked_up(n);
    if (fuse_reply_create(req, &e, &fi) == -ENOENT) {
        handle_drop(h);
        node_forget(m, n, 1);
    }
}
