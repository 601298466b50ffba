/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOPIC/.groups/G/.status: a row for each partition with the group's position, the partition's end, how far
 * the one is behind the other, and the member that reads it now. Loop's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/cluster/groups.h"
#include "fuse/group/group_files.h"
#include "fuse/page/page.h"
#include "fuse/partition/pfile.h"
#include "lib/base/mem.h"
#include "lib/client/assign.h"

struct lag_row {
    struct lag_table *table;
    struct pfile *file; /* owned reference */
    struct ends_wait ends;
    int rc;
    int64_t position; /* -1: none */
    char *member;     /* NULL: nobody */
};

struct lag_table {
    struct page *page;
    struct topics_wait metadata;
    struct group_ask ask;
    struct group_look look;
    struct lag_row *rows;
    int32_t n, waiting;
};

static void lag_table_free(struct lag_table *t)
{
    for (int32_t i = 0; i < t->n; i++) {
        pfile_unref(t->rows[i].file);
        free(t->rows[i].member);
    }
    free(t->rows);
    free(t);
}

static void lag_table_fail(struct lag_table *t, int rc)
{
    struct page *page = t->page;
    lag_table_free(t);
    page_made(page, rc, NULL);
}

static void lag_row_print(struct bytebuf *b, const struct lag_row *r)
{
    bytebuf_printf(b, "%-9" PRId32 " ", pfile_partition(r->file));
    if (r->position >= 0)
        bytebuf_printf(b, "%14" PRId64 " ", r->position);
    else
        bytebuf_printf(b, "%14s ", "-");
    if (r->rc == 0)
        bytebuf_printf(b, "%14" PRId64 " ", r->file->ends.end_offset);
    else
        bytebuf_printf(b, "%14s ", "-");
    if (r->rc == 0 && r->position >= 0)
        bytebuf_printf(b, "%14" PRId64 " ", MAX(r->file->ends.end_offset - r->position, 0));
    else
        bytebuf_printf(b, "%14s ", "-");
    bytebuf_printf(b, "%s\n", r->member == NULL ? "-" : r->member);
}

static void lag_table_done(struct lag_table *t)
{
    struct page *page = t->page;
    struct bytebuf text = { 0 };
    bytebuf_printf(&text, "%-9s %14s %14s %14s %s\n", "PARTITION", "POSITION", "END", "LAG", "MEMBER");
    for (int32_t i = 0; i < t->n; i++)
        lag_row_print(&text, &t->rows[i]);
    lag_table_free(t);
    page_made(page, 0, &text);
}

static void lag_row_ready(struct lag_table *t)
{
    if (--t->waiting == 0)
        lag_table_done(t);
}

static void on_lag_ends(struct ends_wait *w, int rc)
{
    struct lag_row *r = container_of(w, struct lag_row, ends);
    r->rc = rc;
    lag_row_ready(r->table);
}

static void lag_ask_ends(struct lag_table *t)
{
    t->waiting = t->n + 1; /* 1: until all have been asked */
    for (int32_t i = 0; i < t->n; i++)
        ends_ask(t->rows[i].file, &t->rows[i].ends);
    lag_row_ready(t);
}

/* ---- who reads what ---- */

static void lag_add_member(struct lag_table *t, const struct describe_groups_response_members *who)
{
    struct arena a;
    struct assign_part *parts;
    size_t n = 0;
    const char *topic = page_node(t->page)->topic->name;
    arena_init(&a);
    if (who->member_assignment.n > 0 && assign_read_parts(who->member_assignment, &a, &parts, &n) != 0)
        n = 0; /* a protocol of its own: nobody can tell */
    for (size_t i = 0; i < n; i++) {
        int32_t p = parts[i].partition;
        if (!kstr_eqz(parts[i].topic, topic) || p < 0 || p >= t->n)
            continue;
        free(t->rows[p].member);
        t->rows[p].member = xstrndup(who->member_id.p, (size_t)MAX(who->member_id.n, 0));
    }
    arena_done(&a);
}

static void on_members(struct group_look *l, int rc, const struct describe_groups_response_groups *it)
{
    struct lag_table *t = container_of(l, struct lag_table, look);
    if (rc != 0) {
        lag_table_fail(t, rc);
        return;
    }
    for (int32_t k = 0; k < it->n_members; k++)
        lag_add_member(t, &it->members[k]);
    lag_ask_ends(t);
}

static void lag_ask_members(struct lag_table *t)
{
    t->look = (struct group_look){ .group = page_node(t->page)->view.group, .cb = on_members };
    group_look(page_mount(t->page), &t->look);
}

/* ---- the positions ---- */

static void on_lag_positions(struct group_ask *a, int rc, const struct position *p, size_t n)
{
    struct lag_table *t = container_of(a, struct lag_table, ask);
    if (rc != 0) {
        lag_table_fail(t, rc);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (p[i].partition >= 0 && p[i].partition < t->n)
            t->rows[p[i].partition].position = p[i].offset;
    }
    lag_ask_members(t);
}

static void on_lag_metadata(struct topics_wait *w, int rc)
{
    struct lag_table *t = container_of(w, struct lag_table, metadata);
    const struct node *n = page_node(t->page);
    struct mount *m = page_mount(t->page);
    const struct client_topic *ct = rc == 0 ? client_topic(m->client, n->topic->name) : NULL;
    if (ct == NULL) {
        lag_table_fail(t, rc != 0 ? rc : -ENOENT);
        return;
    }
    t->n = ct->n_partitions;
    t->rows = xcalloc((size_t)t->n + 1, sizeof *t->rows);
    for (int32_t i = 0; i < t->n; i++) {
        t->rows[i] = (struct lag_row){ .table = t, .file = pfile_get(m, n->topic, i), .position = -1 };
        t->rows[i].ends.cb = on_lag_ends;
    }
    t->ask = (struct group_ask){
        .group = n->view.group, .topic = n->topic->name, .n = t->n, .cb = on_lag_positions
    };
    group_ask(m, &t->ask);
}

static void group_status_make(struct page *p)
{
    struct lag_table *t = xcalloc(1, sizeof *t);
    t->page = p;
    t->metadata.cb = on_lag_metadata;
    topics_ask(page_mount(p), &t->metadata, page_node(p)->topic->name, METADATA_VALID_MS);
}

static void group_status_made(struct mount *m, struct node *n)
{
    page_attach(m, n, group_status_make, PAGE_VALID_MS);
}

const struct file_ops group_status_ops = {
    .made = group_status_made,
    .freed = page_detach,
    .fill_stat = page_fill_stat,
    .getattr = page_getattr,
    .may_open = page_may_only_read,
    .open = page_open,
    .read = page_read,
};
