/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that come later; rules Q1 to Q3 of request.h. Loop's thread. */
#include "fuse/base/request.h"

#include <errno.h>
#include <stdlib.h>

#include "fuse/base/mount.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

#define PATIENCE_MS 500

static void on_patience(struct timer *t)
{
    struct request *r = container_of(t, struct request, patience);
    r->interrupted(r);
}

static void request_interrupt(struct request *r)
{
    if (r->patience_ms == 0)
        r->interrupted(r);
    else
        timer_set(r->mount->loop, &r->patience, loop_now_ms(r->mount->loop) + r->patience_ms);
}

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
        request_interrupt(r);
}

static void answer_eintr(struct request *r)
{
    request_err(r, EINTR);
}

void request_begin(struct request *r, struct mount *m, fuse_req_t req)
{
    request_begin_with(r, m, req, PATIENCE_MS, answer_eintr);
}

void request_begin_with(struct request *r, struct mount *m, fuse_req_t req, int64_t patience_ms,
                        void (*interrupted)(struct request *r))
{
    *r = (struct request){ .mount = m,
                           .req = req,
                           .interrupted = interrupted,
                           .patience_ms = patience_ms,
                           .patience.cb = on_patience,
                           .starting = true };
    TAILQ_INSERT_TAIL(&m->requests, r, link);
    fuse_req_interrupt_func(req, on_interrupt, r);
    r->starting = false;
    if (r->early)
        request_interrupt(r);
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
        timer_clear(r->mount->loop, &r->patience);
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

/* ---- long text ---- */

/* Copying less than this takes no longer than waking the replier. */
#define REPLY_ASIDE_BYTES (256 * 1024)

struct text_reply { /* the replier's, once submitted */
    struct job job;
    fuse_req_t req;
    struct text_span span; /* with references */
};

static void text_reply_run(struct job *j)
{
    struct text_reply *t = container_of(j, struct text_reply, job);
    fuse_reply_iov(t->req, t->span.iov, t->span.n);
}

static void text_reply_done(struct job *j)
{
    struct text_reply *t = container_of(j, struct text_reply, job);
    for (int i = 0; i < t->span.n; i++)
        chunk_unref(t->span.chunks[i]);
    free(t);
}

static void reply_aside(struct workers *replier, fuse_req_t req, const struct text_span *span)
{
    struct text_reply *t = xmalloc(sizeof *t);
    t->job = (struct job){ .run = text_reply_run, .done = text_reply_done };
    t->req = req;
    t->span = *span;
    text_span_ref(&t->span);
    fuse_req_interrupt_func(req, NULL, NULL); /* what it would be called with goes before the reply */
    workers_submit(replier, &t->job);
}

void request_text(struct request *r, const struct text_span *span)
{
    struct workers *replier = r->mount->replier;
    fuse_req_t req = request_take(r);
    if (req == NULL)
        return;
    if (replier != NULL && span->bytes >= REPLY_ASIDE_BYTES)
        reply_aside(replier, req, span);
    else
        fuse_reply_iov(req, span->iov, span->n);
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

int request_errno(int rc)
{
    switch (rc) {
    case 0:
    case -ETIMEDOUT:
    case -EACCES:
    case -ENOSPC:
    case -EMSGSIZE:
    case -EINVAL:
    case -EINTR:
    case -EDQUOT:
    case -ESTALE:
        return -rc;
    case -ENOENT:
        return ESTALE;
    case -EAGAIN:
        return ETIMEDOUT;
    default:
        return EIO;
    }
}
