/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stat() says of directories. The time of one is when the names in it last changed as far as this mount saw: of the root its
 * topics, of a topic its number of partitions, of .groups its groups, of a group its positions.
 *
 * T1: a time that was shown tells of all names that were there when it was: who finds it again need not list anew. So what is not
 * known, or is older than a second, is asked for first, and what was never seen counts as changed now. Loop's thread.
 */
#include "fuse/tree/dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/base/request.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/uuid.h"

/* Looking around does not wait for long until a broker answers: what is done next will. */
#define ASK_MS 500

/* ---- when the names changed ---- */

uint64_t dir_entry_hash(const char *name, const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1] = "";
    if (id != NULL)
        uuid_text(id, text);
    return hash_stir(hash_text(hash_text(HASH_START, name), text));
}

uint64_t dir_positions_hash(const struct position *p, size_t n)
{
    uint64_t sum = 1; /* there is .status always */
    for (size_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%" PRId32, p[i].partition);
        sum += p[i].offset >= 0 ? dir_entry_hash(name, NULL) : 0;
    }
    return sum;
}

void dir_saw(struct node *n, uint64_t entries)
{
    if (n->entries != entries)
        n->changed_wall_ms = clock_wall_ms();
    n->entries = entries;
}

/* As long as the names were never seen, seeing them counts as a change. */
void dir_added(struct node *n, uint64_t entry)
{
    dir_saw(n, n->entries == 0 ? 0 : n->entries + entry);
}

void dir_removed(struct node *n, uint64_t entry)
{
    dir_saw(n, n->entries == 0 ? 0 : n->entries - entry);
}

void dir_list_groups(struct mount *m, struct node *n, struct groups_list *l)
{
    n->listed_ms = loop_now_ms(m->loop);
    groups_list(m, l);
}

void dir_saw_groups(struct mount *m, struct node *n, const struct groups_list *l)
{
    uint64_t sum = 1;
    for (size_t i = 0; i < l->n; i++)
        sum += dir_entry_hash(l->names[i], NULL);
    dir_saw(n, sum);
    n->listing_ms = loop_now_ms(m->loop) - n->listed_ms;
}

static void add_topic(void *arg, const struct client_topic *ct)
{
    uint64_t *sum = arg;
    if (dir_lists_topic(ct))
        *sum += dir_entry_hash(ct->name, &ct->id);
}

void dir_saw_metadata(struct mount *m, struct node *n)
{
    uint64_t sum = 1;
    if (n->kind == NODE_ROOT) {
        if (client_each_topic(m->client, add_topic, &sum) >= 0)
            dir_saw(n, sum);
    } else if (n->kind == NODE_TOPIC && (n->view.parts & VIEW_AS_OPEN) == 0 && !n->topic->gone) {
        const struct client_topic *ct = client_topic(m->client, n->topic->name);
        if (ct != NULL)
            dir_saw(n, sum + (uint64_t)ct->n_partitions);
    }
}

/* ---- getattr ---- */

/* To know which groups are here each has to be asked for its positions, so at most one part in so many of the time is spent on
 * it. */
#define LISTING_SHARE 20

struct dir_attr {
    struct request r;
    struct node *n; /* owned reference */
    struct topics_wait metadata;
    struct groups_list groups; /* .groups */
    struct timer patience;
};

/* From what is known, however old. */
static void dir_attr_answer(struct dir_attr *op)
{
    struct stat st;
    if (op->n->topic != NULL && op->n->topic->gone) {
        request_err(&op->r, ESTALE);
        return;
    }
    dir_saw_metadata(op->r.mount, op->n);
    node_fill_stat(op->r.mount, op->n, &st);
    request_attr(&op->r, &st, ENTRY_VALID_S);
}

static void on_dir_attr_patience(struct timer *t)
{
    dir_attr_answer(container_of(t, struct dir_attr, patience));
}

static void dir_attr_end(struct dir_attr *op)
{
    struct mount *m = op->r.mount;
    timer_clear(m->loop, &op->patience);
    dir_attr_answer(op);
    node_unref(m, op->n);
    free(op);
}

static void on_dir_attr_groups(struct groups_list *l, int rc)
{
    struct dir_attr *op = container_of(l, struct dir_attr, groups);
    if (rc == 0)
        dir_saw_groups(op->r.mount, op->n, l);
    for (size_t i = 0; i < l->n; i++)
        free(l->names[i]);
    free(l->names);
    dir_attr_end(op);
}

static bool groups_are_due(struct mount *m, const struct node *n)
{
    int64_t age = loop_now_ms(m->loop) - n->listed_ms;
    return n->kind == NODE_GROUPS && !n->topic->gone && !mount_misses_brokers(m) &&
           (n->listed_ms == 0 || age > MAX(METADATA_VALID_MS, n->listing_ms * LISTING_SHARE));
}

static void on_dir_attr(struct topics_wait *w, int rc)
{
    struct dir_attr *op = container_of(w, struct dir_attr, metadata);
    struct mount *m = op->r.mount;
    const struct topic *t = op->n->topic;
    const struct client_topic *ct = rc == 0 && t != NULL ? client_topic(m->client, t->name) : NULL;
    if (ct == NULL || !groups_are_due(m, op->n)) {
        dir_attr_end(op);
        return;
    }
    op->groups = (struct groups_list){ .topic = t->name, .n_partitions = ct->n_partitions, .cb = on_dir_attr_groups };
    dir_list_groups(m, op->n, &op->groups);
}

void dir_getattr(struct mount *m, struct node *n, fuse_req_t req)
{
    struct dir_attr *op = xcalloc(1, sizeof *op);
    op->n = node_ref(n);
    request_begin(&op->r, m, req);
    op->metadata.cb = on_dir_attr;
    op->patience.cb = on_dir_attr_patience;
    timer_set(m->loop, &op->patience, loop_now_ms(m->loop) + ASK_MS);
    topics_ask(m, &op->metadata, n->kind == NODE_ROOT ? NULL : n->topic->name, METADATA_VALID_MS);
}
