/* SPDX-License-Identifier: Apache-2.0 */
/* Texts made on demand; see page.h. Loop's thread. */
#include "fuse/page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/cluster/topics.h"
#include "fuse/tree/file.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

LIST_HEAD(page_wait_list, page_wait);

struct page {
    struct mount *mount;
    struct node *node;
    void (*make)(struct page *p);
    int64_t valid_ms;
    struct rcbuf *text;    /* NULL: never made */
    int64_t made_ms;       /* 0: to be made anew */
    bool making, outdated; /* outdated: it changed while it was being made */
    struct page_wait_list waiting; /* for what is being made */
    struct page_wait_list next;    /* for what is made after it: they came when it had begun */
};

void page_attach(struct mount *m, struct node *n, void (*make)(struct page *p), int64_t valid_ms)
{
    struct page *p = xcalloc(1, sizeof *p);
    p->mount = m;
    p->node = n;
    p->make = make;
    p->valid_ms = valid_ms;
    LIST_INIT(&p->waiting);
    LIST_INIT(&p->next);
    n->page = p;
}

void page_detach(struct node *n)
{
    struct page *p = n->page;
    KCHECK(!p->making && LIST_EMPTY(&p->waiting) && LIST_EMPTY(&p->next));
    rcbuf_unref(p->text);
    free(p);
}

struct mount *page_mount(const struct page *p)
{
    return p->mount;
}

struct node *page_node(const struct page *p)
{
    return p->node;
}

size_t page_size(const struct page *p)
{
    return p->text == NULL ? 0 : p->text->n;
}

struct slice page_text(const struct page *p)
{
    return p->text == NULL ? slice_of(NULL, 0) : slice_of(p->text->p, p->text->n);
}

void page_expire(struct page *p)
{
    p->made_ms = 0;
    p->outdated = p->making;
}

void page_touch(struct page *p)
{
    page_expire(p);
    p->node->changed_wall_ms = clock_wall_ms();
}

/* A text is as old as the last change that was seen, however often it is made. */
static bool page_is_news(const struct page *p, const struct bytebuf *text)
{
    return p->text == NULL || p->text->n != text->n || (text->n > 0 && memcmp(p->text->p, text->p, text->n) != 0);
}

static void page_keep(struct page *p, struct bytebuf *text)
{
    if (page_is_news(p, text))
        p->node->changed_wall_ms = clock_wall_ms();
    rcbuf_unref(p->text);
    p->text = rcbuf_take(text);
    p->made_ms = loop_now_ms(p->mount->loop);
}

static void page_start(struct page *p)
{
    p->making = true;
    node_ref(p->node);
    p->make(p);
}

static void waits_move(struct page_wait_list *from, struct page_wait_list *to)
{
    struct page_wait *w;
    while ((w = LIST_FIRST(from)) != NULL) {
        LIST_REMOVE(w, link);
        LIST_INSERT_HEAD(to, w, link);
    }
}

static void page_answer(struct page *p, int rc)
{
    struct page_wait_list answered = LIST_HEAD_INITIALIZER(answered);
    struct page_wait *w;
    waits_move(&p->waiting, &answered);
    while ((w = LIST_FIRST(&answered)) != NULL) {
        LIST_REMOVE(w, link);
        w->cb(w, rc);
    }
}

void page_made(struct page *p, int rc, struct bytebuf *text)
{
    KCHECK(p->making);
    if (p->outdated && rc == 0) {
        p->outdated = false;
        bytebuf_done(text);
        p->make(p);
        return;
    }
    p->making = p->outdated = false;
    if (rc == 0)
        page_keep(p, text);
    page_answer(p, rc);
    if (!p->making && !LIST_EMPTY(&p->next)) {
        waits_move(&p->next, &p->waiting);
        page_start(p);
    }
    node_unref(p->mount, p->node); /* of page_start; may free p */
}

static bool page_is_fresh(const struct page *p)
{
    return p->text != NULL && p->made_ms > 0 && p->made_ms + p->valid_ms > loop_now_ms(p->mount->loop);
}

void page_ask(struct page *p, struct page_wait *w)
{
    if (page_is_fresh(p)) {
        w->cb(w, 0);
        return;
    }
    LIST_INSERT_HEAD(&p->waiting, w, link);
    if (!p->making)
        page_start(p);
}

void page_ask_anew(struct page *p, struct page_wait *w)
{
    if (p->making) {
        LIST_INSERT_HEAD(&p->next, w, link);
        return;
    }
    LIST_INSERT_HEAD(&p->waiting, w, link);
    page_start(p);
}

/* ---- as a file ---- */

struct page_op {
    struct request r;
    struct node *n;   /* owned reference */
    struct handle *h; /* NULL: getattr. Owned reference */
    struct page_wait wait;
};

void page_fill_stat(struct mount *m, struct node *n, struct stat *ret)
{
    node_fill_stat(m, n, ret);
    ret->st_size = (off_t)page_size(n->page);
    ret->st_blocks = (ret->st_size + 511) / 512;
}

static void page_reply_attr(struct page_op *op)
{
    struct stat st;
    page_fill_stat(op->r.mount, op->n, &st);
    request_attr(&op->r, &st, 0);
}

static void page_reply_open(struct page_op *op, int rc)
{
    fuse_req_t req = request_take(&op->r);
    if (req == NULL || rc != 0) {
        if (req != NULL)
            fuse_reply_err(req, request_errno(rc));
        handle_drop(op->h);
    } else {
        op->h->text = rcbuf_ref(op->n->page->text);
        handle_reply_open(op->h, req);
    }
    handle_unref(op->h);
}

static void on_page(struct page_wait *w, int rc)
{
    struct page_op *op = container_of(w, struct page_op, wait);
    struct mount *m = op->r.mount;
    if (op->h != NULL)
        page_reply_open(op, rc);
    else if (rc != 0)
        request_err(&op->r, request_errno(rc));
    else
        page_reply_attr(op);
    node_unref(m, op->n);
    free(op);
}

static void page_begin(struct mount *m, struct node *n, struct handle *h, fuse_req_t req)
{
    if (n->topic != NULL && n->topic->gone) {
        fuse_reply_err(req, ESTALE);
        if (h != NULL)
            handle_drop(h);
        return;
    }
    struct page_op *op = xcalloc(1, sizeof *op);
    op->n = node_ref(n);
    op->h = h == NULL ? NULL : handle_ref(h);
    op->wait.cb = on_page;
    request_begin(&op->r, m, req);
    if (h != NULL)
        page_ask_anew(n->page, &op->wait);
    else
        page_ask(n->page, &op->wait);
}

void page_getattr(struct mount *m, struct node *n, fuse_req_t req)
{
    page_begin(m, n, NULL, req);
}

void page_open(struct handle *h, fuse_req_t req)
{
    if ((h->flags & O_ACCMODE) == O_WRONLY)
        handle_reply_open(h, req);
    else
        page_begin(h->mount, h->node, h, req);
}

void page_read(struct handle *h, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi)
{
    (void)fi;
    size_t n = h->text == NULL ? 0 : h->text->n;
    if ((uint64_t)off >= n)
        fuse_reply_buf(req, NULL, 0);
    else
        fuse_reply_buf(req, (const char *)h->text->p + off, MIN(size, n - (size_t)off));
}

int page_may_only_read(struct mount *m, struct node *n, int flags)
{
    (void)m;
    (void)n;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0 ? EPERM : 0;
}
