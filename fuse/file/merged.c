/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOPIC/all, and in every view: the records of all partitions as one stream, merged by time up to the ends seen at the open, and
 * below follow/ as they arrive from then on (lib/client/reading.h has the rules). It has no positions and no size: each open
 * file goes straight through. A read that waits is a struct in a list, no thread. Loop's thread.
 */
#include "fuse/file/merged.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>

#include "fuse/base/mount.h"
#include "fuse/tree/poll_op.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/client/reading.h"

/* Lines that are made at once. */
#define MERGED_BYTES (256 * 1024)

struct merged_read {
    struct request r;
    struct handle *h; /* owned reference */
    size_t size;
    bool nonblock;
    TAILQ_ENTRY(merged_read) link;
};

/* Of an open file. */
struct merged {
    struct reading *reading;
    struct bytebuf text;
    size_t head; /* of the text that was not handed out */
    bool working; /* in a call that may come back here */
    TAILQ_HEAD(, merged_read) reads; /* that wait, in their order */
};

static void read_end(struct merged_read *op)
{
    TAILQ_REMOVE(&op->h->merged->reads, op, link);
    handle_unref(op->h);
    free(op);
}

/* Answers the first read with what is here. */
static void read_give(struct merged *g, struct merged_read *op)
{
    size_t n = MIN(op->size, g->text.n - g->head);
    if (request_is_open(&op->r)) {
        request_buf(&op->r, g->text.p + g->head, n);
        g->head += n;
    }
    read_end(op);
}

/* What reading comes to, for a program: READING_MORE and the like, or a positive errno as its negative. */
static int merged_more(struct handle *h)
{
    struct merged *g = h->merged;
    int32_t partition;
    bool follow = (h->node->view.parts & VIEW_FOLLOW) != 0;
    if (g->head < g->text.n)
        return READING_MORE;
    if (h->mount->stopping)
        return READING_END;
    g->text.n = g->head = 0;
    int rc = reading_next(g->reading, MERGED_BYTES, &g->text, &partition);
    bool gone = rc == -ENOENT || (rc < 0 && h->node->topic->gone);
    if (gone)
        topic_doubt(h->node->topic);
    return gone ? follow ? READING_END : -ESTALE : rc;
}

static void merged_go(struct handle *h)
{
    struct merged *g = h->merged;
    struct merged_read *op;
    if (g->working) /* the loop below goes on */
        return;
    g->working = true;
    handle_ref(h);
    while ((op = TAILQ_FIRST(&g->reads)) != NULL) {
        int rc = request_is_open(&op->r) ? merged_more(h) : READING_END;
        if (rc == READING_WAIT && !op->nonblock)
            break;
        if (rc == READING_WAIT)
            request_err(&op->r, EAGAIN);
        else if (rc < 0)
            request_err(&op->r, request_errno(rc));
        read_give(g, op); /* does nothing more to one that is answered */
    }
    g->working = false;
    handle_unref(h);
}

static void on_reading_ready(void *arg)
{
    struct handle *h = arg;
    handle_poll_tell(h);
    merged_go(h);
}

static void on_read_interrupted(struct request *r)
{
    struct merged_read *op = container_of(r, struct merged_read, r);
    request_err(r, EINTR);
    if (!op->h->merged->working)
        read_end(op);
}

static void merged_read(struct handle *h, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi)
{
    struct merged_read *op = xcalloc(1, sizeof *op);
    (void)off;
    op->h = handle_ref(h);
    op->size = size;
    op->nonblock = (fi->flags & O_NONBLOCK) != 0;
    TAILQ_INSERT_TAIL(&h->merged->reads, op, link);
    h->merged->working = true; /* an interrupt that was earlier must not end it before it has begun */
    request_begin_with(&op->r, h->mount, req, 0, on_read_interrupted);
    h->merged->working = false;
    merged_go(h);
}

/* ---- opening ---- */

static void merged_open(struct handle *h, fuse_req_t req)
{
    struct mount *m = h->mount;
    const struct client_topic *ct = client_topic(m->client, h->node->topic->name);
    size_t n = ct == NULL ? 0 : (size_t)ct->n_partitions;
    CLEANUP(freep) int32_t *partitions = xreallocarray(NULL, MAX(n, (size_t)1), sizeof *partitions);
    for (size_t i = 0; i < n; i++)
        partitions[i] = ct->partitions[i].id;
    const struct reading_config cfg = { .topic = h->node->topic->name,
                                        .topic_id = h->node->topic->id,
                                        .partitions = partitions,
                                        .n_partitions = n,
                                        .view = h->node->view,
                                        .now_ms = clock_wall_ms(),
                                        .timeout_ms = m->opt->timeout_ms,
                                        .ready = on_reading_ready,
                                        .arg = h };
    struct merged *g = h->merged = xcalloc(1, sizeof *g);
    TAILQ_INIT(&g->reads);
    g->reading = reading_new(m->client, &cfg);
    handle_reply_open(h, req);
}

static int merged_may_open(struct mount *m, struct node *n, int flags)
{
    (void)m;
    if (n->topic->gone)
        return ESTALE;
    return (flags & O_ACCMODE) != O_RDONLY ? EACCES : (flags & O_TRUNC) != 0 ? EPERM : 0;
}

static unsigned merged_open_flags(const struct handle *h)
{
    (void)h;
    return FOPEN_DIRECT_IO | FOPEN_NOFLUSH | FOPEN_NONSEEKABLE | FOPEN_STREAM;
}

static void merged_release(struct handle *h)
{
    struct merged *g = h->merged;
    handle_poll_forget(h);
    if (g == NULL)
        return;
    reading_free(g->reading);
    g->reading = NULL;
    struct merged_read *op;
    while ((op = TAILQ_FIRST(&g->reads)) != NULL) {
        request_err(&op->r, EINTR);
        read_end(op);
    }
    bytebuf_done(&g->text);
    free(g);
    h->merged = NULL;
}

void merged_end_all(struct mount *m)
{
    struct handle *h;
    LIST_FOREACH (h, &m->handles, open_link) {
        if (h->merged != NULL)
            on_reading_ready(h);
    }
}

/* ---- poll ---- */

static void merged_poll(struct handle *h, fuse_req_t req, struct fuse_pollhandle *ph)
{
    struct poll_op op;
    poll_op_begin(&op, h, req, ph);
    poll_op_end(&op, merged_more(h) != READING_WAIT);
}

static void merged_getattr(struct mount *m, struct node *n, fuse_req_t req)
{
    struct stat st;
    node_fill_stat(m, n, &st);
    fuse_reply_attr(req, &st, ENTRY_VALID_S);
}

const struct file_ops merged_ops = {
    .getattr = merged_getattr,
    .may_open = merged_may_open,
    .open = merged_open,
    .open_flags = merged_open_flags,
    .read = merged_read,
    .release = merged_release,
    .poll = merged_poll,
};
