/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user.klog.*: what a partition or topic is besides its bytes. Names of other spaces (security.*) are refused
 * without asking anybody, since ls and the kernel look for them all the time. Loop's thread.
 */
#include "fuse/page/xattr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/page/page.h"
#include "fuse/partition/pfile.h"
#include "lib/base/mem.h"

#define PREFIX "user.klog."

struct attribute {
    const char *name; /* after the prefix */
    bool needs_ends, needs_page;
    void (*print)(struct bytebuf *b, const struct node *n, const struct client_partition *p);
};

static void print_leader(struct bytebuf *b, const struct node *n, const struct client_partition *p)
{
    (void)n;
    bytebuf_printf(b, "%" PRId32, p->leader);
}

static void print_leader_epoch(struct bytebuf *b, const struct node *n, const struct client_partition *p)
{
    (void)n;
    bytebuf_printf(b, "%" PRId32, p->leader_epoch);
}

static void print_isr(struct bytebuf *b, const struct node *n, const struct client_partition *p)
{
    (void)n;
    for (int32_t i = 0; i < p->n_isr; i++)
        bytebuf_printf(b, "%s%" PRId32, i > 0 ? "," : "", p->isr[i]);
}

static void print_first_offset(struct bytebuf *b, const struct node *n, const struct client_partition *p)
{
    (void)p;
    bytebuf_printf(b, "%" PRId64, n->pfile->ends.start_offset);
}

static void print_end_offset(struct bytebuf *b, const struct node *n, const struct client_partition *p)
{
    (void)p;
    bytebuf_printf(b, "%" PRId64, n->pfile->ends.end_offset);
}

static void print_topic_id(struct bytebuf *b, const struct node *n, const struct client_partition *p)
{
    char text[UUID_TEXT_LEN + 1];
    (void)p;
    uuid_text(&n->topic->id, text);
    bytebuf_adds(b, text);
}

/* What is still to read. A position that was written by hand may be behind the end, and so may any when the log lost
 * its end: then nothing is. */
static void print_lag(struct bytebuf *b, const struct node *n, const struct client_partition *p)
{
    struct slice text = page_text(n->page);
    char digits[24] = "";
    (void)p;
    memcpy(digits, text.p, MIN(text.n, sizeof digits - 1));
    int64_t lag = n->pfile->ends.end_offset - (int64_t)strtoll(digits, NULL, 10);
    bytebuf_printf(b, "%" PRId64, MAX(lag, 0));
}

static const struct attribute partition_attributes[] = {
    { "leader", false, false, print_leader },
    { "isr", false, false, print_isr },
    { "leader_epoch", false, false, print_leader_epoch },
    { "topic_id", false, false, print_topic_id },
    { "first_offset", true, false, print_first_offset },
    { "end_offset", true, false, print_end_offset },
};
static const struct attribute position_attributes[] = { { "lag", true, true, print_lag } };
static const struct attribute topic_attributes[] = { { "topic_id", false, false, print_topic_id } };

static const struct attribute *attributes_of(const struct node *n, size_t *ret_n)
{
    if (n->kind == NODE_POSITION) {
        *ret_n = ARRAY_LEN(position_attributes);
        return position_attributes;
    }
    bool partition = n->pfile != NULL, topic = n->kind == NODE_TOPIC;
    *ret_n = partition ? ARRAY_LEN(partition_attributes) : topic ? ARRAY_LEN(topic_attributes) : 0;
    return partition ? partition_attributes : topic_attributes;
}

static const struct attribute *attribute_find(const struct node *n, const char *name)
{
    size_t count;
    const struct attribute *a = attributes_of(n, &count);
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(a[i].name, name + strlen(PREFIX)) == 0)
            return &a[i];
    }
    return NULL;
}

static void reply_sized(fuse_req_t req, const void *p, size_t n, size_t size)
{
    if (size == 0)
        fuse_reply_xattr(req, n);
    else if (n > size)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, p, n);
}

struct xattr_op {
    struct request r;
    struct node *n; /* owned reference */
    const struct attribute *a;
    size_t size;
    struct topics_wait metadata;
    struct ends_wait ends;
    struct page_wait page;
};

static void xattr_end(struct xattr_op *op, int err)
{
    request_err(&op->r, err);
    node_unref(op->r.mount, op->n);
    free(op);
}

static void xattr_reply(struct xattr_op *op)
{
    struct bytebuf b = { 0 };
    const struct client_partition *p = op->n->pfile == NULL ? NULL : pfile_metadata(op->n->pfile);
    if (op->n->pfile != NULL && p == NULL) {
        xattr_end(op, ESTALE);
        return;
    }
    op->a->print(&b, op->n, p);
    fuse_req_t req = request_take(&op->r);
    if (req != NULL)
        reply_sized(req, b.p, b.n, op->size);
    bytebuf_done(&b);
    xattr_end(op, 0);
}

static void on_xattr_page(struct page_wait *w, int rc)
{
    struct xattr_op *op = container_of(w, struct xattr_op, page);
    if (rc != 0)
        xattr_end(op, request_errno(rc));
    else if (page_size(op->n->page) == 0) /* deleted meanwhile */
        xattr_end(op, ENODATA);
    else
        xattr_reply(op);
}

static void on_xattr_ends(struct ends_wait *w, int rc)
{
    struct xattr_op *op = container_of(w, struct xattr_op, ends);
    if (rc != 0)
        xattr_end(op, request_errno(rc));
    else if (op->a->needs_page)
        page_ask(op->n->page, &op->page);
    else
        xattr_reply(op);
}

static void on_xattr_metadata(struct topics_wait *w, int rc)
{
    struct xattr_op *op = container_of(w, struct xattr_op, metadata);
    if (rc != 0)
        xattr_end(op, request_errno(rc));
    else if (op->a->needs_ends)
        ends_ask(op->n->pfile, &op->ends);
    else
        xattr_reply(op);
}

void xattr_get(struct mount *m, struct node *n, const char *name, fuse_req_t req, size_t size)
{
    const struct attribute *a = attribute_find(n, name);
    if (a == NULL) {
        fuse_reply_err(req, ENODATA);
        return;
    }
    struct xattr_op *op = xcalloc(1, sizeof *op);
    op->n = node_ref(n);
    op->a = a;
    op->size = size;
    op->metadata.cb = on_xattr_metadata;
    op->ends.cb = on_xattr_ends;
    op->page.cb = on_xattr_page;
    request_begin(&op->r, m, req);
    topics_ask(m, &op->metadata, n->topic->name, METADATA_VALID_MS);
}

void xattr_list(struct node *n, fuse_req_t req, size_t size)
{
    struct bytebuf b = { 0 };
    size_t count;
    const struct attribute *a = attributes_of(n, &count);
    for (size_t i = 0; i < count; i++) {
        bytebuf_adds(&b, PREFIX);
        bytebuf_add(&b, a[i].name, strlen(a[i].name) + 1);
    }
    reply_sized(req, b.p, b.n, size);
    bytebuf_done(&b);
}
