/* SPDX-License-Identifier: Apache-2.0 */
/* Size and time of a partition, and its table of operations. Loop's thread. */
#include <errno.h>
#include <stdlib.h>

#include "fuse/file.h"
#include "fuse/mount.h"
#include "fuse/pfile.h"
#include "fuse/pfile_attr.h"
#include "fuse/pfile_read.h"
#include "fuse/pfile_write.h"
#include "lib/base/mem.h"

struct attr_op {
    struct request r;
    struct node *n; /* owned reference */
    void (*reply)(struct request *r, struct node *n);
    struct tails_wait tails;
    struct ends_wait ends;
};

void pfile_fill_stat(struct mount *m, struct node *n, struct stat *st)
{
    struct pfile *f = n->pfile;
    node_fill_stat(m, n, st);
    if (!f->ends_known)
        return;
    st->st_size = pfile_size(f);
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

static void on_attr_ends(struct ends_wait *w, int rc)
{
    struct attr_op *op = container_of(w, struct attr_op, ends);
    if (rc != 0)
        request_err(&op->r, pfile_errno(rc));
    else
        op->reply(&op->r, op->n);
    attr_op_free(op);
}

static void on_attr_tails(struct tails_wait *w)
{
    struct attr_op *op = container_of(w, struct attr_op, tails);
    ends_ask(op->n->pfile, &op->ends);
}

void pfile_with_ends(struct mount *m, struct node *n, fuse_req_t req,
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
    request_begin(&op->r, m, req);
    tails_ask(n->pfile, &op->tails);
}

static void reply_attr(struct request *r, struct node *n)
{
    struct stat st;
    pfile_fill_stat(r->mount, n, &st);
    request_attr(r, &st, 0);
}

static void partition_getattr(struct mount *m, struct node *n, fuse_req_t req)
{
    pfile_with_ends(m, n, req, reply_attr);
}

/* ---- opening ---- */

struct open_op {
    struct request r;
    struct handle *h; /* owned reference */
    struct limits_wait limits;
};

static void on_open_limits(struct limits_wait *w)
{
    struct open_op *op = container_of(w, struct open_op, limits);
    fuse_req_t req = request_take(&op->r);
    if (req != NULL)
        handle_reply_open(op->h, req);
    else
        handle_drop(op->h);
    handle_unref(op->h);
    free(op);
}

/* Who appends must know how long a line may be. */
void append_open(struct handle *h, fuse_req_t req)
{
    if (!handle_writes(h)) {
        handle_reply_open(h, req);
        return;
    }
    struct open_op *op = xcalloc(1, sizeof *op);
    op->h = handle_ref(h);
    op->limits.cb = on_open_limits;
    request_begin(&op->r, h->mount, req);
    topic_limits_ask(h->node->topic, &op->limits);
}

static int partition_may_open(struct mount *m, struct node *n, int flags)
{
    (void)m;
    return n->topic->gone ? ESTALE : append_may_open(flags);
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

static int any_may_open(struct mount *m, struct node *n, int flags)
{
    (void)m;
    if (n->topic->gone)
        return ESTALE;
    return (flags & O_ACCMODE) != O_WRONLY ? EACCES : append_may_open(flags);
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
