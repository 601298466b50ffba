/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of open files: made at open, found by the kernel's handle, freed when the kernel is done with them and no request
 * needs them any more. What a kind of file does is behind the table of operations of its node's kind. Loop's thread.
 */
#include "fuse/tree/file.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>

#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/dir.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

const struct file_ops *file_ops_of(const struct mount *m, const struct node *n)
{
    return m->kinds[n->kind];
}

void file_fill_stat(struct mount *m, struct node *n, struct stat *ret)
{
    const struct file_ops *ops = file_ops_of(m, n);
    if (ops != NULL && ops->fill_stat != NULL)
        ops->fill_stat(m, n, ret);
    else
        node_fill_stat(m, n, ret);
}

/* A stream goes on for long, so in the plain view it holds no text, and shares the newest. In others positions count from
 * where a text begins; a RANGE is what it was when the file was opened. */
static void stream_lead(struct handle *h)
{
    struct lens *l = h->node->lens;
    if (!lens_has_range(l)) {
        place_lead(&h->place, ptext_now(l));
        return;
    }
    struct ptext *own = ptext_alone(l);
    place_lead(&h->place, own);
    ptext_unref(own);
}

struct handle *handle_new(struct mount *m, struct node *n, int flags)
{
    struct handle *h = xcalloc(1, sizeof *h);
    h->mount = m;
    h->node = node_ref(n);
    h->refs = 1;
    h->flags = flags;
    h->place.at = -1;
    h->place.edge = TEXT_EDGE_NONE;
    LIST_INIT(&h->app.on_way);
    LIST_INIT(&h->app.waiting);
    LIST_INSERT_HEAD(&m->handles, h, open_link);
    if (n->kind == NODE_PARTITION)
        place_lead(&h->place, node_text(n));
    else if (n->kind == NODE_STREAM)
        stream_lead(h);
    h->holds = (n->kind == NODE_PARTITION || (n->kind == NODE_STREAM && !lens_is_plain(n->lens))) &&
               (flags & O_ACCMODE) != O_WRONLY;
    if (h->holds)
        ptext_opened(h->place.text);
    return h;
}

void handle_renew_text(struct handle *h)
{
    struct ptext *old = h->place.text, *now;
    if (old->based || h->node->ptext == NULL || (now = node_text(h->node)) == old)
        return;
    ptext_opened(now);
    ptext_closed(old);
    place_lead(&h->place, now);
}

struct handle *handle_ref(struct handle *h)
{
    h->refs++;
    return h;
}

void handle_unref(struct handle *h)
{
    KCHECK(h->refs > 0);
    if (--h->refs > 0)
        return;
    struct mount *m = h->mount;
    struct node *n = h->node;
    KCHECK(LIST_EMPTY(&h->app.waiting) && h->poll == NULL);
    bytebuf_done(&h->app.tail);
    rcbuf_unref(h->text);
    dir_list_free(h->dir);
    place_done(&h->place);
    free(h);
    node_unref(m, n);
}

void handle_drop(struct handle *h)
{
    if (h->dropped) /* by the end of the mount, before its open was answered */
        return;
    h->dropped = true;
    const struct file_ops *ops = file_ops_of(h->mount, h->node);
    if (ops != NULL && ops->release != NULL)
        ops->release(h);
    LIST_REMOVE(h, open_link);
    if (h->holds)
        ptext_closed(h->place.text);
    handle_unref(h);
}

/* By hand, since libfuse's struct has no room for every flag of the kernel's. */
void handle_reply_open(struct handle *h, fuse_req_t req)
{
    const struct file_ops *ops = file_ops_of(h->mount, h->node);
    struct fuse_open_out out = { .fh = (uintptr_t)h,
                                 .open_flags =
                                     ops->open_flags == NULL ? FOPEN_DIRECT_IO : ops->open_flags(h) };
    if (fuse_reply_buf(req, (const char *)&out, sizeof out) == -ENOENT)
        handle_drop(h);
}
