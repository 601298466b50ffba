/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow/pN: bytes as the plain file has them, but a read at the end waits. A waiting read is a struct in a
 * list, no thread, so ten thousand cost next to nothing. The kernel is told that it is a stream: then it
 * locks no file position (two processes that share the descriptor stay killable) and sends no offsets, so
 * each open file keeps its own place. Loop's thread.
 */
#include "fuse/file/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>

#include "fuse/base/mount.h"
#include "fuse/file/append.h"
#include "fuse/file/pfile_attr.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/watch.h"
#include "fuse/tree/file.h"
#include "fuse/tree/poll_op.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

#define STREAM_FETCH_BYTES (1024 * 1024)
/* Fetches and questions without getting further; more means that broker and log contradict each other. */
#define STREAM_STEPS_MAX 64

struct stream_reader {
    struct request r;
    struct handle *h; /* owned reference */
    size_t size;
    bool nonblock;
    bool asked; /* the ends are newer than the read */
    int steps;  /* since `reached` */
    int64_t reached;
    struct text_wait ends;
    struct fetch_wait fetch;
    struct pfile_waker waker; /* parked while it waits */
};

static void stream_step(struct stream_reader *s);

static void reader_free(struct stream_reader *s)
{
    KCHECK(!s->waker.waiting);
    handle_unref(s->h);
    free(s);
}

static void reader_end(struct stream_reader *s, int err)
{
    request_err(&s->r, err);
    reader_free(s);
}

static void on_stream_interrupted(struct request *r)
{
    struct stream_reader *s = container_of(r, struct stream_reader, r);
    request_err(r, EINTR);
    if (s->waker.waiting) { /* else what it waits for ends it */
        pfile_unwake(&s->waker);
        reader_free(s);
    }
}

static void on_stream_ends(struct text_wait *w, int rc)
{
    struct stream_reader *s = container_of(w, struct stream_reader, ends);
    s->asked = true;
    if (rc != 0)
        reader_end(s, request_errno(rc));
    else
        stream_step(s);
}

static void on_stream_fetched(struct fetch_wait *w, int rc)
{
    struct stream_reader *s = container_of(w, struct stream_reader, fetch);
    if (rc == -ERANGE) { /* retention was faster */
        text_ask(s->h->place.text, &s->ends);
    } else if (rc != 0) {
        reader_end(s, request_errno(rc));
    } else {
        if (w->hole_end > 0) {
            place_went(&s->h->place, w->hole_end, w->edge);
        }
        stream_step(s);
    }
}

/* At the log's end a place is the same in all texts of the plain view: a stream that stands there goes on in the newest one, and shares what
 * is fetched with the others. */
static void stream_renew(struct handle *h)
{
    if (!h->holds)
        place_lead(&h->place, ptext_now(h->node->lens));
}

static void stream_park(struct stream_reader *s)
{
    stream_renew(s->h);
    s->steps = 0;
    pfile_wake_me(s->h->node->pfile, &s->waker);
}

static void stream_answer(struct stream_reader *s, const struct text_span *span)
{
    struct handle *h = s->h;
    struct ptext *t = h->place.text;
    request_text(&s->r, span);
    place_went(&h->place, h->place.at + (int64_t)span->bytes, TEXT_EDGE_NONE);
    /* A stream that is catching up finds the next piece ready. */
    fetch_ahead(t, h->place.at, h->place.at + STREAM_FETCH_BYTES, STREAM_FETCH_BYTES);
    reader_free(s);
}

/* The text begins where the log does, since nobody holds it otherwise. */
static int64_t stream_begin(struct pfile *f, struct ptext *t)
{
    if (!lens_is_plain(t->lens))
        return ptext_base(t);
    if (f->ends_known && !t->based)
        ptext_base(t);
    return f->ends_known ? f->ends.start_text : 0;
}

static void reader_eof(struct stream_reader *s)
{
    request_buf(&s->r, NULL, 0);
    reader_free(s);
}

static void on_stream_news(struct pfile_waker *w)
{
    struct stream_reader *s = container_of(w, struct stream_reader, waker);
    if (s->h->mount->stopping && !s->h->node->topic->gone)
        reader_eof(s);
    else
        stream_step(s);
}

/* Answers with what is here at the place, or behind a hole at it. False: nothing is. */
static bool stream_give(struct stream_reader *s)
{
    struct text_place *p = &s->h->place;
    struct pfile *f = s->h->node->pfile;
    struct text_span span;
    span.bytes = 0;
    span.n = 0;
    if (p->at < 0)
        p->at = stream_begin(f, p->text);
    while (chunk_gather(&f->mount->texts, &p->text->chunks, p->at, s->size, &span) == 0 && place_rest(p, p->at, s->size, &span) == 0) {
        int64_t to = chunk_hole_end(&p->text->chunks, p->at);
        if (to <= p->at || f->key.topic->gone)
            return false;
        p->at = to;
    }
    stream_answer(s, &span);
    return true;
}

/* Retention may have passed the place: then the log's start is next. False: compaction moved it, and nobody knows where to. */
static bool stream_finds_place(struct stream_reader *s)
{
    struct text_place *p = &s->h->place;
    const struct ends *e = &p->text->file->ends;
    if (fetch_goes_on(p->text, p->at, p->edge))
        return true;
    if (ptext_is_before_start(p->text, p->at)) {
        p->at = e->start_text;
        p->edge = (struct text_edge){ p->at, e->start_offset };
        return true;
    }
    return ptext_at_end(p->text, p->at) || ptext_is_sure(p->text, p->at);
}

/* Has what comes next fetched, or waits for it. */
static void stream_go_on(struct stream_reader *s)
{
    struct text_place *p = &s->h->place;
    if (p->at > s->reached) {
        s->reached = p->at;
        s->steps = 0;
    }
    if (++s->steps > STREAM_STEPS_MAX)
        reader_end(s, EIO);
    else if (!ptext_at_end(p->text, p->at))
        fetch_text(p->text, p->at, p->edge, STREAM_FETCH_BYTES, &s->fetch);
    else if (ptext_is_over(p->text, p->at))
        reader_eof(s);
    else if (!s->nonblock)
        stream_park(s);
    else if (!s->asked)
        text_ask(p->text, &s->ends);
    else
        reader_end(s, EAGAIN);
}

static void stream_step(struct stream_reader *s)
{
    struct pfile *f = s->h->node->pfile;
    if (!request_is_open(&s->r))
        reader_free(s);
    else if (ptext_needs_ends(s->h->place.text) && !f->key.topic->gone)
        text_ask(s->h->place.text, &s->ends);
    else if (stream_give(s))
        ; /* and it is freed */
    else if (f->key.topic->gone)
        reader_eof(s);
    else if (!stream_finds_place(s))
        reader_end(s, EIO);
    else
        stream_go_on(s);
}

static void stream_read(struct handle *h, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi)
{
    struct mount *m = h->mount;
    (void)off;
    if (m->stopping) {
        fuse_reply_buf(req, NULL, 0);
        return;
    }
    struct stream_reader *s = xcalloc(1, sizeof *s);
    s->h = handle_ref(h);
    s->size = size;
    s->nonblock = (fi->flags & O_NONBLOCK) != 0;
    s->ends.cb = on_stream_ends;
    s->fetch.cb = on_stream_fetched;
    s->waker.cb = on_stream_news;
    request_begin_with(&s->r, m, req, 0, on_stream_interrupted);
    stream_step(s);
}

/* ---- poll ---- */

struct stream_poll {
    struct poll_op op;
    struct text_wait ends;
};

/* Is a read answered at once? */
static bool stream_has_more(const struct handle *h)
{
    const struct ptext *t = h->place.text;
    return !ptext_at_end(t, h->place.at) || ptext_is_over(t, h->place.at);
}

/* Told when there is something for it, not at every news. */
static void on_poll_news(struct pfile_waker *w)
{
    struct handle *h = container_of(w, struct handle, poll_waker);
    struct pfile *f = h->node->pfile;
    if (h->place.at < 0 || ptext_needs_ends(h->place.text) || stream_has_more(h) || h->node->topic->gone)
        handle_poll_tell(h);
    else
        pfile_wake_me(f, w);
}

static void on_poll_ends(struct text_wait *w, int rc)
{
    struct stream_poll *p = container_of(w, struct stream_poll, ends);
    struct handle *h = p->op.h;
    struct pfile *f = h->node->pfile;
    if (rc == 0 && h->place.at < 0)
        h->place.at = stream_begin(f, h->place.text);
    bool readable = rc != 0 || stream_has_more(h) || h->mount->stopping;
    h->poll_waker.cb = on_poll_news;
    if (poll_op_end(&p->op, readable)) {
        pfile_wake_me(f, &h->poll_waker);
        watch_want(h->mount->watch, f);
    }
    free(p);
}

static void stream_poll(struct handle *h, fuse_req_t req, struct fuse_pollhandle *ph)
{
    struct stream_poll *p = xcalloc(1, sizeof *p);
    poll_op_begin(&p->op, h, req, ph);
    p->ends.cb = on_poll_ends;
    text_ask(h->place.text, &p->ends);
}

/* ---- the file ---- */

static void stream_getattr(struct mount *m, struct node *n, fuse_req_t req)
{
    struct stat st;
    node_fill_stat(m, n, &st);
    fuse_reply_attr(req, &st, ENTRY_VALID_S);
}

static int stream_may_open(struct mount *m, struct node *n, int flags)
{
    (void)m;
    return n->topic->gone ? ESTALE : append_may_open(flags);
}

static unsigned stream_open_flags(const struct handle *h)
{
    if ((h->flags & O_ACCMODE) == O_WRONLY)
        return append_open_flags(h);
    return append_open_flags(h) | FOPEN_NONSEEKABLE | FOPEN_STREAM;
}

static void stream_write(struct handle *h, fuse_req_t req, const char *buf, size_t size,
                         struct fuse_file_info *fi)
{
    append_write(h, req, buf, size, fi->flags);
}

static void stream_release(struct handle *h)
{
    pfile_unwake(&h->poll_waker);
    handle_poll_forget(h);
    append_release(h);
}

const struct file_ops stream_ops = {
    .getattr = stream_getattr,
    .may_open = stream_may_open,
    .open = append_open,
    .open_flags = stream_open_flags,
    .read = stream_read,
    .write = stream_write,
    .flush = append_settle,
    .fsync = append_settle,
    .release = stream_release,
    .poll = stream_poll,
};
