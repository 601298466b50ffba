/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables .status: of a topic, its partitions with leader, replicas and ends; of the cluster, its brokers and what is
 * wrong, which is partitions without a leader or with replicas behind. They are made of the metadata and, for a topic, of
 * one question for each partition's ends. For people: columns may come. Loop's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/page/page.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/file.h"
#include "lib/base/mem.h"

/* ---- of a topic ---- */

struct row {
    struct topic_table *table;
    struct pfile *file; /* owned reference */
    struct ends_wait wait;
    int rc;
    int32_t leader;
    struct bytebuf replicas, isr;
};

struct topic_table {
    struct page *page;
    struct topics_wait metadata;
    struct row *rows;
    int32_t n, waiting;
};

static void add_ids(struct bytebuf *b, const int32_t *ids, int32_t n)
{
    if (n == 0)
        bytebuf_adds(b, "-");
    for (int32_t i = 0; i < n; i++)
        bytebuf_printf(b, "%s%" PRId32, i > 0 ? "," : "", ids[i]);
}

static void row_print(struct bytebuf *b, const struct row *r)
{
    const struct ends *e = &r->file->ends;
    char leader[16];
    snprintf(leader, sizeof leader, "%" PRId32, r->leader);
    bytebuf_printf(b, "%-9" PRId32 " %6s %-11.*s %-11.*s ", pfile_partition(r->file),
                   r->leader < 0 ? "-" : leader, (int)r->replicas.n, (const char *)r->replicas.p,
                   (int)r->isr.n, (const char *)r->isr.p);
    if (r->rc == 0)
        bytebuf_printf(b, "%14" PRId64 " %14" PRId64 " %16" PRId64 "\n", e->start_offset, e->end_offset,
                       e->size_bytes);
    else
        bytebuf_printf(b, "%14s %14s %16s\n", "-", "-", "-");
}

static void topic_table_free(struct topic_table *t)
{
    for (int32_t i = 0; i < t->n; i++) {
        pfile_unref(t->rows[i].file);
        bytebuf_done(&t->rows[i].replicas);
        bytebuf_done(&t->rows[i].isr);
    }
    free(t->rows);
    free(t);
}

static void topic_table_done(struct topic_table *t)
{
    struct page *page = t->page;
    struct bytebuf text = { 0 };
    bytebuf_printf(&text, "%-9s %6s %-11s %-11s %14s %14s %16s\n", "PARTITION", "LEADER", "REPLICAS", "ISR",
                   "FIRST", "END", "BYTES");
    for (int32_t i = 0; i < t->n; i++)
        row_print(&text, &t->rows[i]);
    topic_table_free(t);
    page_made(page, 0, &text);
}

static void on_row(struct ends_wait *w, int rc)
{
    struct row *r = container_of(w, struct row, wait);
    r->rc = rc;
    if (--r->table->waiting == 0)
        topic_table_done(r->table);
}

static void row_fill(struct topic_table *t, struct row *r, const struct client_partition *p)
{
    r->table = t;
    r->file = pfile_get(page_mount(t->page), page_node(t->page)->topic, p->id);
    r->leader = p->leader;
    r->wait.cb = on_row;
    add_ids(&r->replicas, p->replicas, p->n_replicas);
    add_ids(&r->isr, p->isr, p->n_isr);
}

static void on_topic_metadata(struct topics_wait *w, int rc)
{
    struct topic_table *t = container_of(w, struct topic_table, metadata);
    struct page *page = t->page;
    const struct client_topic *ct = client_topic(page_mount(page)->client, page_node(page)->topic->name);
    if (rc != 0 || ct == NULL) {
        topic_table_free(t);
        page_made(page, rc != 0 ? rc : -ENOENT, NULL);
        return;
    }
    int32_t n = ct->n_partitions;
    t->rows = xcalloc((size_t)n + 1, sizeof *t->rows);
    for (int32_t i = 0; i < n; i++)
        row_fill(t, &t->rows[i], &ct->partitions[i]);
    t->n = n;
    t->waiting = n + 1; /* 1: until all have been asked */
    for (int32_t i = 0; i < n; i++)
        ends_ask(t->rows[i].file, &t->rows[i].wait);
    if (--t->waiting == 0)
        topic_table_done(t);
}

static void topic_status_make(struct page *p)
{
    struct topic_table *t = xcalloc(1, sizeof *t);
    t->page = p;
    t->metadata.cb = on_topic_metadata;
    topics_ask(page_mount(p), &t->metadata, page_node(p)->topic->name, 0);
}

/* ---- of the cluster ---- */

struct cluster_table {
    struct page *page;
    struct topics_wait metadata;
    struct client_call call;
    struct describe_cluster_request body;
    struct bytebuf text;
};

static void add_sick_partition(struct bytebuf *b, const char *topic, const struct client_partition *p)
{
    if (p->leader < 0)
        bytebuf_printf(b, "no leader         %s/p%" PRId32 "\n", topic, p->id);
    else if (p->n_isr < p->n_replicas)
        bytebuf_printf(b, "under-replicated  %s/p%" PRId32 "  in sync %" PRId32 " of %" PRId32 "\n", topic,
                       p->id, p->n_isr, p->n_replicas);
}

static void add_sick(void *arg, const struct client_topic *ct)
{
    struct bytebuf *b = arg;
    for (int32_t i = 0; i < ct->n_partitions; i++)
        add_sick_partition(b, ct->name, &ct->partitions[i]);
}

static void cluster_table_done(struct cluster_table *t, int rc)
{
    struct page *page = t->page;
    struct bytebuf text = t->text;
    free(t);
    page_made(page, rc, &text);
    bytebuf_done(&text);
}

static void on_cluster_metadata(struct topics_wait *w, int rc)
{
    struct cluster_table *t = container_of(w, struct cluster_table, metadata);
    struct bytebuf sick = { 0 };
    if (rc == 0) {
        client_each_topic(page_mount(t->page)->client, add_sick, &sick);
        if (sick.n == 0)
            bytebuf_adds(&sick, "every partition has its leader and all its replicas in sync\n");
        bytebuf_add(&t->text, sick.p, sick.n);
    }
    bytebuf_done(&sick);
    cluster_table_done(t, rc);
}

static void cluster_print(struct bytebuf *b, const struct describe_cluster_response *r)
{
    bytebuf_printf(b, "cluster     %.*s\ncontroller  %" PRId32 "\n\n%-8s ADDRESS\n", KSTR_FMT(r->cluster_id),
                   r->controller_id, "BROKER");
    for (int32_t i = 0; i < r->n_brokers; i++)
        bytebuf_printf(b, "%-8" PRId32 " %.*s:%" PRId32 "\n", r->brokers[i].broker_id,
                       KSTR_FMT(r->brokers[i].host), r->brokers[i].port);
    bytebuf_adds(b, "\n");
}

static void on_cluster(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct cluster_table *t = call->user;
    const struct describe_cluster_response *r = response;
    (void)err;
    (void)version;
    if (rc == 0 && r->error_code != KERR_NONE)
        rc = -kerr_errno(r->error_code);
    if (rc != 0) {
        cluster_table_done(t, rc);
        return;
    }
    cluster_print(&t->text, r);
    topics_ask(page_mount(t->page), &t->metadata, NULL, 0);
}

static void cluster_status_make(struct page *p)
{
    struct cluster_table *t = xcalloc(1, sizeof *t);
    struct mount *m = page_mount(p);
    t->page = p;
    t->metadata.cb = on_cluster_metadata;
    wire_defaults(&wire_describe_cluster_request, &t->body);
    t->call = (struct client_call){ .target = TARGET_ANY,
                                    .request = &wire_describe_cluster_request,
                                    .body = &t->body,
                                    .max_version = -1,
                                    .deadline_ms = mount_deadline_ms(m),
                                    .cb = on_cluster,
                                    .user = t };
    client_call(m->client, &t->call);
}

static void topic_status_made(struct mount *m, struct node *n)
{
    page_attach(m, n, topic_status_make, PAGE_VALID_MS);
}

static void cluster_status_made(struct mount *m, struct node *n)
{
    page_attach(m, n, cluster_status_make, PAGE_VALID_MS);
}

const struct file_ops topic_status_ops = {
    .made = topic_status_made,
    .freed = page_detach,
    .fill_stat = page_fill_stat,
    .getattr = page_getattr,
    .may_open = page_may_only_read,
    .open = page_open,
    .read = page_read,
};

const struct file_ops cluster_status_ops = {
    .made = cluster_status_made,
    .freed = page_detach,
    .fill_stat = page_fill_stat,
    .getattr = page_getattr,
    .may_open = page_may_only_read,
    .open = page_open,
    .read = page_read,
};
