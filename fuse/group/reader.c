/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open files of as/; rules A1-A5 of reader.h. As a plain file it has positions, so that a shell can take
 * a line and seek back to its end, but only those from the last acknowledged record on. Under follow/ it is a
 * stream: reads at the end wait. Loop's thread.
 */
#include "fuse/group/reader.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/partition/watch.h"
#include "fuse/tree/poll_op.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* Text and lines that were dealt with are thrown away in pieces of at least this size. */
#define DROP_BYTES (64 * 1024)
#define DROP_LINES 4096

struct reader_op {
    struct request r;
    struct reader *reader;
    struct handle *h; /* owned reference */
    int64_t off;
    size_t size;
    bool nonblock;
    TAILQ_ENTRY(reader_op) link;
};

/* ---- the buffer ---- */

static void buffer_shrink(struct reader *g)
{
    if (g->head >= DROP_BYTES && g->head >= g->text.n / 2) {
        bytebuf_consume(&g->text, g->head);
        g->head = 0;
    }
    if (g->first >= DROP_LINES && g->first >= g->n_lines / 2) {
        g->n_lines -= g->first;
        memmove(g->lines, g->lines + g->first, g->n_lines * sizeof *g->lines);
        g->first = 0;
    }
}

void reader_ack(struct reader *g, int64_t at)
{
    struct reader_part *p;
    while (g->first < g->n_lines && g->lines[g->first].end <= at) {
        const struct reader_line *l = &g->lines[g->first++];
        if (l->part != NULL) {
            l->part->acked = l->next;
            l->part->acked_epoch = l->epoch;
        }
        g->head += (size_t)(l->end - g->start);
        g->start = l->end;
    }
    buffer_shrink(g);
    LIST_FOREACH (p, &g->parts, link)
        part_commit(p, false);
}

void reader_cut(struct reader *g, int64_t at)
{
    g->orphaned = false;
    if (g->first == g->n_lines)
        return;
    bool inside = at > g->start;
    g->n_lines = g->first + inside;
    g->text.n = g->head + (inside ? (size_t)(g->lines[g->first].end - g->start) : 0);
}

/* ---- reading ---- */

static void op_free(struct reader_op *op)
{
    TAILQ_REMOVE(&op->reader->ops, op, link);
    handle_unref(op->h);
    free(op);
}

static void on_op_interrupted(struct request *r)
{
    request_err(r, EINTR);
    op_free(container_of(r, struct reader_op, r));
}

static void op_answer(struct reader_op *op, int64_t at)
{
    struct reader *g = op->reader;
    size_t from = g->head + (size_t)(at - g->start);
    size_t n = MIN(op->size, g->text.n - from);
    if (g->releasing && g->first < g->n_lines) /* the rest of the line in hand, no more */
        n = MIN(n, (size_t)(g->lines[g->first].end - at));
    g->at = at + (int64_t)n;
    g->delivered = MAX(g->delivered, g->at);
    request_buf(&op->r, g->text.p + from, n);
    op_free(op);
}

static void op_fail(struct reader_op *op, int err)
{
    request_err(&op->r, err);
    op_free(op);
}

bool reader_is_dry(struct reader *g)
{
    struct reader_part *p;
    bool dry = true;
    LIST_FOREACH (p, &g->parts, link) {
        p->empty |= part_is_past(p);
        if (!p->empty && !p->asking && !p->fetching)
            part_fetch(p);
        dry &= p->empty && !p->asking && !p->fetching;
    }
    return dry;
}

bool reader_is_past(const struct reader *g)
{
    const struct reader_part *p;
    bool past = !LIST_EMPTY(&g->parts);
    LIST_FOREACH (p, &g->parts, link)
        past &= !p->gone && part_is_past(p);
    return past;
}

bool reader_is_committed(struct reader *g)
{
    struct reader_part *p;
    bool all = true;
    LIST_FOREACH (p, &g->parts, link)
        all &= part_commit(p, true);
    return all;
}

void reader_park(struct reader *g)
{
    struct reader_part *p;
    LIST_FOREACH (p, &g->parts, link)
        pfile_wake_me(p->file, &p->waker);
}

static void op_at_end(struct reader_op *op)
{
    struct reader *g = op->reader;
    bool ends = !g->follow || reader_is_past(g);
    if (!ends && op->nonblock)
        op_fail(op, EAGAIN);
    else if (!ends)
        reader_park(g);
    else if (reader_is_committed(g)) /* A3 */
        op_answer(op, g->follow ? reader_end(g) : MIN(MAX(op->off, g->start), reader_end(g)));
}

static void op_step(struct reader_op *op)
{
    struct reader *g = op->reader;
    int64_t at = g->follow ? g->at : op->off;
    int err = g->user.lost ? EBUSY : g->error;
    if (!request_is_open(&op->r)) { /* interrupted: nothing may be taken for it */
        op_free(op);
        return;
    }
    if (err != 0) {
        g->error = 0;
        op_fail(op, err);
        return;
    }
    reader_ack(g, at);
    if (g->orphaned)
        reader_cut(g, at);
    if (at < g->start)
        op_fail(op, EINVAL); /* it was acknowledged and is gone */
    else if (g->releasing && at == g->start)
        g->dealt = true;
    else if (at < reader_end(g)) {
        if (reader_is_alone(g))
            op_answer(op, at);
    } else if (g->topic_gone && !g->follow)
        op_fail(op, ESTALE);
    else if (g->user.closing || g->topic_gone)
        op_answer(op, reader_end(g));
    else if ((g->member == NULL || g->assigned) && reader_is_dry(g))
        op_at_end(op);
}

void reader_look_again(struct reader *g)
{
    struct reader_part *p;
    LIST_FOREACH (p, &g->parts, link) {
        p->empty = p->gone;
        p->stale = p->fetching;
    }
}

static void reader_read(struct handle *h, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi)
{
    struct reader *g = h->reader;
    struct reader_op *op = xcalloc(1, sizeof *op);
    op->reader = g;
    op->h = handle_ref(h);
    op->off = MIN(off, INT64_MAX / 4);
    op->size = size;
    op->nonblock = (fi->flags & O_NONBLOCK) != 0;
    TAILQ_INSERT_TAIL(&g->ops, op, link);
    reader_look_again(g);
    request_begin_with(&op->r, h->mount, req, 0, on_op_interrupted);
    reader_go(g);
}

/* ---- the end ---- */

static void reader_free(struct reader *g)
{
    struct mount *m = g->mount;
    struct reader_part *p;
    while ((p = LIST_FIRST(&g->parts)) != NULL)
        part_free(p);
    group_user_end(&g->user);
    reader_heirs_go(g);
    group_waits_go(m, g->node->view.group);
    timer_clear(m->loop, &g->timer);
    timer_clear(m->loop, &g->release_timer);
    bytebuf_done(&g->text);
    free(g->lines);
    node_unref(m, g->node);
    free(g);
}

static bool reader_is_over(struct reader *g)
{
    struct reader_part *p;
    bool idle = reader_is_committed(g) && g->opening == NULL && !g->asking && !g->looking;
    LIST_FOREACH (p, &g->parts, link)
        idle &= part_is_idle(p);
    return idle;
}

void reader_go(struct reader *g)
{
    struct reader_op *op, *next;
    if (g->busy)
        return;
    if (g->opening != NULL) {
        reader_open_go(g);
        return;
    }
    for (op = TAILQ_FIRST(&g->ops); op != NULL; op = next) {
        next = TAILQ_NEXT(op, link);
        op_step(op);
    }
    reader_polls_go(g);
    reader_try_release(g);
    parts_reap(g);
    if (!g->user.closing || !reader_is_over(g))
        return;
    if (g->member != NULL)
        reader_leave(g);
    else if (g->h == NULL)
        reader_free(g);
}

void reader_close(struct reader *g)
{
    g->user.closing = true;
    reader_go(g);
}

void readers_end(struct mount *m)
{
    struct group_user *u, *next;
    for (u = LIST_FIRST(&m->group_users); u != NULL; u = next) {
        next = LIST_NEXT(u, link);
        reader_close(container_of(u, struct reader, user));
    }
}

bool readers_pending(const struct mount *m)
{
    struct group_user *u;
    LIST_FOREACH (u, &m->group_users, link) {
        struct reader *g = container_of(u, struct reader, user);
        if (!reader_is_over(g) || g->member != NULL)
            return true;
    }
    return false;
}

static void reader_release(struct handle *h)
{
    struct reader *g = h->reader;
    if (g == NULL)
        return;
    handle_poll_forget(h);
    h->reader = NULL;
    g->h = NULL;
    reader_close(g);
}

static void on_reader_timer(struct timer *t)
{
    struct reader *g = container_of(t, struct reader, timer);
    struct reader_part *p;
    LIST_FOREACH (p, &g->parts, link)
        part_commit(p, false);
}

struct reader *reader_new(struct handle *h)
{
    struct reader *g = xcalloc(1, sizeof *g);
    g->mount = h->mount;
    g->node = node_ref(h->node);
    g->h = h;
    g->follow = (h->node->view.parts & VIEW_FOLLOW) != 0;
    LIST_INIT(&g->parts);
    TAILQ_INIT(&g->ops);
    TAILQ_INIT(&g->polls);
    TAILQ_INIT(&g->heirs);
    g->timer.cb = on_reader_timer;
    g->user = (struct group_user){ .group = g->node->view.group, .topic = g->node->topic, .partition = g->node->partition };
    group_user_begin(g->mount, &g->user);
    h->reader = g;
    return g;
}

/* ---- the file ---- */

static int reader_may_open(struct mount *m, struct node *n, int flags)
{
    (void)m;
    if (n->topic->gone)
        return ESTALE;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0 ? EPERM : 0;
}

static unsigned reader_open_flags(const struct handle *h)
{
    bool follow = (h->node->view.parts & VIEW_FOLLOW) != 0;
    return FOPEN_DIRECT_IO | (follow ? FOPEN_NONSEEKABLE | FOPEN_STREAM : 0);
}

static void reader_getattr(struct mount *m, struct node *n, fuse_req_t req)
{
    struct stat st;
    node_fill_stat(m, n, &st);
    fuse_reply_attr(req, &st, ENTRY_VALID_S);
}

const struct file_ops reader_ops = {
    .getattr = reader_getattr,
    .may_open = reader_may_open,
    .open = reader_open,
    .open_flags = reader_open_flags,
    .read = reader_read,
    .release = reader_release,
    .poll = reader_poll,
};
