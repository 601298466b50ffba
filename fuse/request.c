/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that come later; rules Q1 and Q2 of request.h. Loop's thread. */
#include "fuse/request.h"

#include <errno.h>
#include <stdlib.h>

#include "fuse/mount.h"
#include "lib/base/check.h"

/* libfuse calls this with the request's lock held: answering is fine, touching its interrupt function is not.
 */
static void on_interrupt(fuse_req_t req, void *data)
{
    struct request *r = data;
    if (r->req != req)
        return;
    if (r->starting)
        r->early = true;
    else
        r->interrupted(r);
}

static void answer_eintr(struct request *r)
{
    request_err(r, EINTR);
}

void request_begin(struct request *r, struct mount *m, fuse_req_t req, void (*interrupted)(struct request *r))
{
    *r = (struct request){ .mount = m, .req = req, .interrupted = interrupted, .starting = true };
    if (interrupted == NULL)
        r->interrupted = answer_eintr;
    TAILQ_INSERT_TAIL(&m->requests, r, link);
    fuse_req_interrupt_func(req, on_interrupt, r);
    r->starting = false;
    if (r->early)
        r->interrupted(r);
}

bool request_is_open(const struct request *r)
{
    return r->req != NULL;
}

fuse_req_t request_take(struct request *r)
{
    fuse_req_t req = r->req;
    if (req != NULL) {
        r->req = NULL;
        TAILQ_REMOVE(&r->mount->requests, r, link);
    }
    return req;
}

void request_err(struct request *r, int err)
{
    fuse_req_t req = request_take(r);
    if (req != NULL)
        fuse_reply_err(req, abs(err));
}

void request_buf(struct request *r, const void *p, size_t n)
{
    fuse_req_t req = request_take(r);
    if (req != NULL)
        fuse_reply_buf(req, p, n);
}

void request_written(struct request *r, size_t n)
{
    fuse_req_t req = request_take(r);
    if (req != NULL)
        fuse_reply_write(req, n);
}

void request_attr(struct request *r, const struct stat *st, double valid_s)
{
    fuse_req_t req = request_take(r);
    if (req != NULL)
        fuse_reply_attr(req, st, valid_s);
}

void requests_end(struct mount *m)
{
    while (!TAILQ_EMPTY(&m->requests))
        request_err(TAILQ_FIRST(&m->requests), EINTR);
}
