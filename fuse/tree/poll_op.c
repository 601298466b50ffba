/* SPDX-License-Identifier: Apache-2.0 */
/* See poll_op.h. Loop's thread. */
#include "fuse/tree/poll_op.h"

#include <poll.h>

/* E2: an error would be taken for an event of the file. */
static void on_poll_interrupted(struct request *r)
{
    fuse_req_t req = request_take(r);
    if (req != NULL)
        fuse_reply_poll(req, 0);
}

void poll_op_begin(struct poll_op *op, struct handle *h, fuse_req_t req, struct fuse_pollhandle *ph)
{
    op->h = handle_ref(h);
    op->ph = ph;
    request_begin_with(&op->r, h->mount, req, 0, on_poll_interrupted);
}

bool poll_op_end(struct poll_op *op, bool readable)
{
    struct handle *h = op->h;
    fuse_req_t req = request_take(&op->r);
    unsigned events = handle_writes(h) ? POLLOUT | POLLWRNORM : 0;
    bool keep = op->ph != NULL && req != NULL && !h->dropped;
    if (keep) {
        handle_poll_forget(h);
        h->poll = op->ph;
    } else if (op->ph != NULL) {
        fuse_pollhandle_destroy(op->ph);
    }
    if (req != NULL)
        fuse_reply_poll(req, readable ? events | POLLIN | POLLRDNORM : events);
    handle_unref(h);
    return keep;
}

void handle_poll_forget(struct handle *h)
{
    if (h->poll == NULL)
        return;
    fuse_pollhandle_destroy(h->poll);
    h->poll = NULL;
}

void handle_poll_tell(struct handle *h)
{
    if (h->poll != NULL)
        fuse_lowlevel_notify_poll(h->poll);
    handle_poll_forget(h);
}
