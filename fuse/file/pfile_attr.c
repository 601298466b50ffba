/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions as the kernel sees them: size and time, opening, and the tables of operations of pN and `any`. A size is never
 * older than the question (P2 of pfile.h). An open looks up what the file then goes by, how long a line may be and where the
 * log begins, but waits only half a second for it: what is done with the file will tell. Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "fuse/base/mount.h"
#include "fuse/file/append.h"
#include "fuse/file/pfile_attr.h"
#include "fuse/file/pfile_read.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/file.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct attr_op {
    struct request r;
    struct node *n; /* owned reference */
    void (*reply)(struct request *r, struct node *n);
    struct tails_wait tails;
    struct ends_wait ends;
    struct text_wait text;
    bool sized; /* the size of its text is wanted, too */
};

static void partition_fill_stat(struct mount *m, struct node *n, struct stat *st)
{
    struct pfile *f = n->pfile;
    node_fill_stat(m, n, st);
    if (!f->ends_known || (lens_has_range(n->lens) && n->lens->window.asked_ns == 0))
        return;
    st->st_size = ptext_size(node_text(n));
    st->st_blocks = (st->st_size + 511) / 512; /* fewer would make cp and tar look for holes */
    if (f->ends.newest_ms >= 0) {
        st->st_mtim.tv_sec = f->ends.newest_ms / 1000;
        st->st_mtim.tv_nsec = f->ends.newest_ms % 1000 * 1000000;
        st->st_ctim = st->st_mtim;
    }
}

static void attr_op_free(struct attr_op *op)
{
    node_unref(op->r.mount, op->n);
    free(op);
}

static void attr_op_end(struct attr_op *op, int rc)
{
    if (rc != 0)
        request_err(&op->r, request_errno(rc));
    else
        op->reply(&op->r, op->n);
    attr_op_free(op);
}

static void on_attr_ends(struct ends_wait *w, int rc)
{
    attr_op_end(container_of(w, struct attr_op, ends), rc);
}

static void on_attr_text(struct text_wait *w, int rc)
{
    attr_op_end(container_of(w, struct attr_op, text), rc);
}

static void on_attr_tails(struct tails_wait *w)
{
    struct attr_op *op = container_of(w, struct attr_op, tails);
    if (op->sized)
        text_ask(node_text(op->n), &op->text);
    else
        ends_ask(op->n->pfile, &op->ends);
}

static void attr_op_begin(struct mount *m, struct node *n, fuse_req_t req, bool sized,
                          void (*reply)(struct request *, struct node *))
{
    if (n->topic->gone) {
        fuse_reply_err(req, ESTALE);
        return;
    }
    struct attr_op *op = xcalloc(1, sizeof *op);
    op->n = node_ref(n);
    op->reply = reply;
    op->tails.cb = on_attr_tails;
    op->ends.cb = on_attr_ends;
    op->text = (struct text_wait){ .cb = on_attr_text, .printed = true };
    op->sized = sized;
    request_begin(&op->r, m, req);
    tails_ask(n->pfile, &op->tails);
}

void pfile_with_ends(struct mount *m, struct node *n, fuse_req_t req,
                     void (*reply)(struct request *, struct node *))
{
    attr_op_begin(m, n, req, false, reply);
}

static void reply_attr(struct request *r, struct node *n)
{
    struct stat st;
    partition_fill_stat(r->mount, n, &st);
    request_attr(r, &st, 0);
}

static void partition_getattr(struct mount *m, struct node *n, fuse_req_t req)
{
    attr_op_begin(m, n, req, true, reply_attr);
}

/* ---- opening ---- */

/* An open does not wait for long until a broker answers: what is done with the file will. */
#define OPEN_WAIT_MS 500

struct open_op {
    struct request r;
    struct handle *h; /* owned reference */
    bool opened;      /* the kernel has it */
    struct limits_wait limits;
    struct ends_wait ends;
    struct text_wait text;
    struct topics_wait metadata;
    struct timer patience;
};

/* ESTALE has the kernel look the path up anew, and it finds what is there now. */
static void open_answer(struct open_op *op)
{
    bool gone = op->h->node->topic->gone;
    fuse_req_t req = request_take(&op->r);
    if (req != NULL && !gone) {
        op->opened = true;
        handle_reply_open(op->h, req);
    } else if (req != NULL) {
        fuse_reply_err(req, ESTALE);
    }
}

static void open_end(struct open_op *op)
{
    timer_clear(op->h->mount->loop, &op->patience);
    open_answer(op);
    if (!op->opened)
        handle_drop(op->h);
    handle_unref(op->h);
    free(op);
}

static void on_open_patience(struct timer *t)
{
    open_answer(container_of(t, struct open_op, patience));
}

/* Without an answer the file opens as what is known; what is done with it will tell. */
static void on_open_ends(struct ends_wait *w, int rc)
{
    (void)rc;
    open_end(container_of(w, struct open_op, ends));
}

static void on_open_text(struct text_wait *w, int rc)
{
    (void)rc;
    open_end(container_of(w, struct open_op, text));
}

static void on_open_metadata(struct topics_wait *w, int rc)
{
    (void)rc;
    open_end(container_of(w, struct open_op, metadata));
}

/* The path may still lead to a topic that was deleted within the last second; and who reads needs to know where the
 * log begins now. */
static void open_make_sure(struct open_op *op)
{
    struct handle *h = op->h;
    if (h->holds)
        handle_renew_text(h);
    bool sure = h->node->topic->sure_ns + SURE_NS > clock_mono_ns();
    if (sure && !(h->holds && ptext_needs_ends(h->place.text))) {
        open_end(op);
        return;
    }
    op->patience.cb = on_open_patience;
    timer_set(h->mount->loop, &op->patience, loop_now_ms(h->mount->loop) + OPEN_WAIT_MS);
    if (h->holds)
        text_ask(h->place.text, &op->text);
    else if (h->node->pfile != NULL)
        ends_ask(h->node->pfile, &op->ends);
    else
        topics_ask(h->mount, &op->metadata, h->node->topic->name, 0);
}

static void on_open_limits(struct limits_wait *w)
{
    open_make_sure(container_of(w, struct open_op, limits));
}

/* Who appends must know how long a line may be. */
void append_open(struct handle *h, fuse_req_t req)
{
    struct open_op *op = xcalloc(1, sizeof *op);
    op->h = handle_ref(h);
    op->limits.cb = on_open_limits;
    op->ends.cb = on_open_ends;
    op->text.cb = on_open_text;
    op->metadata.cb = on_open_metadata;
    request_begin(&op->r, h->mount, req);
    if (handle_writes(h))
        topic_limits_ask(h->node->topic, &op->limits);
    else
        open_make_sure(op);
}

/* X5 */
static bool name_is_kept(struct mount *m, struct node *n)
{
    if (n->asked_again || n->kept_until_ms <= loop_now_ms(m->loop))
        return false;
    n->asked_again = true;
    return true;
}

static int partition_may_open(struct mount *m, struct node *n, int flags)
{
    bool appends = (flags & O_ACCMODE) == O_WRONLY;
    int err = n->topic->gone ? ESTALE : append_may_open(flags);
    if (err != 0)
        return err;
    n->lens->appended_to = appends;
    return !appends && name_is_kept(m, n) ? ESTALE : 0;
}

static void partition_read(struct handle *h, fuse_req_t req, size_t size, off_t off,
                           struct fuse_file_info *fi)
{
    (void)fi;
    pfile_read(h, req, size, off);
}

static void partition_write(struct handle *h, fuse_req_t req, const char *buf, size_t size,
                            struct fuse_file_info *fi)
{
    append_write(h, req, buf, size, fi->flags);
}

const struct file_ops partition_ops = {
    .fill_stat = partition_fill_stat,
    .getattr = partition_getattr,
    .may_open = partition_may_open,
    .open = append_open,
    .open_flags = append_open_flags,
    .read = partition_read,
    .write = partition_write,
    .flush = append_settle,
    .fsync = append_settle,
    .release = append_release,
};

/* ---- any ---- */

static void any_getattr(struct mount *m, struct node *n, fuse_req_t req)
{
    struct stat st;
    node_fill_stat(m, n, &st);
    fuse_reply_attr(req, &st, ENTRY_VALID_S);
}

/* It has no content that could be cut off or written over, so it may be opened in any way to write: `cp x /dev/stdout >>any`
 * opens it once more, without O_APPEND. */
static int any_may_open(struct mount *m, struct node *n, int flags)
{
    (void)m;
    if (n->topic->gone)
        return ESTALE;
    return (flags & O_ACCMODE) != O_WRONLY ? EACCES : 0;
}

const struct file_ops any_ops = {
    .getattr = any_getattr,
    .may_open = any_may_open,
    .open = append_open,
    .open_flags = append_open_flags,
    .write = partition_write,
    .flush = append_settle,
    .fsync = append_settle,
    .release = append_release,
};
