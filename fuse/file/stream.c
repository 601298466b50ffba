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
#include "fuse/file/pfile_attr.h"
#include "fuse/file/pfile_read.h"
#include "fuse/file/pfile_write.h"
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
    bool parked;
    int steps; /* since `reached` */
    int64_t reached;
    struct ends_wait ends;
    struct fetch_wait fetch;
    LIST_ENTRY(stream_reader) link; /* pfile->parked */
};

static void stream_step(struct stream_reader *s);

static void reader_free(struct stream_reader *s)
{
    KCHECK(!s->parked);
    handle_unref(s->h);
    free(s);
}

static void reader_end(struct stream_reader *s, int err)
{
    request_err(&s->r, err);
    reader_free(s);
}

static void reader_unpark(struct stream_reader *s)
{
    if (s->parked)
        LIST_REMOVE(s, link);
    s->parked = false;
}

static void on_stream_interrupted(struct request *r)
{
    struct stream_reader *s = container_of(r, struct stream_reader, r);
    request_err(r, EINTR);
    if (s->parked) { /* else what it waits for ends it */
        reader_unpark(s);
        reader_free(s);
    }
}

static void on_stream_ends(struct ends_wait *w, int rc)
{
    struct stream_reader *s = container_of(w, struct stream_reader, ends);
    s->asked = true;
    if (rc != 0)
        reader_end(s, pfile_errno(rc));
    else
        stream_step(s);
}

static void on_stream_fetched(struct fetch_wait *w, int rc)
{
    struct stream_reader *s = container_of(w, struct stream_reader, fetch);
    struct pfile *f = s->h->node->pfile;
    if (rc == -ERANGE) { /* retention was faster */
        ends_ask(f, &s->ends);
    } else if (rc != 0) {
        reader_end(s, pfile_errno(rc));
    } else {
        if (w->hole_end > 0) {
            s->h->at = w->hole_end;
            s->h->edge = TEXT_EDGE_NONE;
        }
        stream_step(s);
    }
}

/* At the log's end all texts lie alike: who stands there goes on by the one that others are led to, and shares what is
 * fetched with them. */
static void stream_renew(struct handle *h)
{
    struct ptext *now = ptext_now(h->node->pfile);
    if (h->ptext == now)
        return;
    ptext_ref(now);
    ptext_unref(h->ptext);
    h->ptext = now;
}

static void stream_park(struct stream_reader *s)
{
    struct pfile *f = s->h->node->pfile;
    stream_renew(s->h);
    s->parked = true;
    s->steps = 0;
    LIST_INSERT_HEAD(&f->parked, s, link);
    watch_want(f->mount->watch, f);
}

static void stream_answer(struct stream_reader *s, const struct text_span *span)
{
    struct handle *h = s->h;
    struct ptext *t = h->ptext;
    h->at += (int64_t)span->bytes;
    h->edge = fetch_edge(t, h->at);
    request_text(&s->r, span);
    /* Who catches up finds the next piece ready. */
    fetch_ahead(t, h->at, h->at + STREAM_FETCH_BYTES, STREAM_FETCH_BYTES);
    reader_free(s);
}

/* The text begins where the log does, since nobody holds it otherwise. */
static int64_t stream_begin(struct pfile *f, struct ptext *t)
{
    if (f->ends_known && !t->based)
        ptext_base(t);
    return f->ends_known ? f->ends.start_text : 0;
}

static void reader_eof(struct stream_reader *s)
{
    request_buf(&s->r, NULL, 0);
    reader_free(s);
}

static void stream_step(struct stream_reader *s)
{
    struct handle *h = s->h;
    struct pfile *f = h->node->pfile;
    struct ptext *t = h->ptext;
    struct text_span span;
    span.bytes = 0;
    span.n = 0;
    if (!request_is_open(&s->r)) {
        reader_free(s);
        return;
    }
    if (!f->ends_known && !f->key.topic->gone) {
        ends_ask(f, &s->ends);
        return;
    }
    if (h->at < 0)
        h->at = stream_begin(f, t);
    if (chunk_gather(&f->mount->texts, &t->chunks, h->at, s->size, &span) > 0) {
        stream_answer(s, &span);
        return;
    }
    if (f->key.topic->gone) {
        reader_eof(s);
        return;
    }
    int64_t to = chunk_hole_end(&t->chunks, h->at);
    if (to > h->at) {
        h->at = to;
        stream_step(s);
        return;
    }
    if (!fetch_goes_on(t, h->at, h->edge) && h->at < f->ends.start_text) {
        h->at = f->ends.start_text;
        h->edge = (struct text_edge){ h->at, f->ends.start_offset };
    }
    if (!fetch_goes_on(t, h->at, h->edge) && h->at < f->ends.end_text && !ptext_is_sure(t, h->at)) {
        reader_end(s, EIO); /* compaction moved the place, and nobody knows where to */
        return;
    }
    if (h->at > s->reached) {
        s->reached = h->at;
        s->steps = 0;
    }
    if (++s->steps > STREAM_STEPS_MAX)
        reader_end(s, EIO);
    else if (h->at < f->ends.end_text)
        fetch_text(t, h->at, h->edge, STREAM_FETCH_BYTES, &s->fetch);
    else if (!s->nonblock)
        stream_park(s);
    else if (!s->asked)
        ends_ask(f, &s->ends);
    else
        reader_end(s, EAGAIN);
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
    request_begin_with(&s->r, m, req, 0, on_stream_interrupted);
    stream_step(s);
}

/* ---- waking ---- */

static void poll_forget(struct handle *h)
{
    if (h->poll != NULL)
        LIST_REMOVE(h, poll_link);
    handle_poll_forget(h);
}

static void polls_tell(struct pfile *f)
{
    struct handle *h, *next;
    for (h = LIST_FIRST(&f->polled); h != NULL; h = next) {
        next = LIST_NEXT(h, poll_link);
        if (h->at < f->ends.end_text || h->node->topic->gone) {
            LIST_REMOVE(h, poll_link);
            handle_poll_tell(h);
        }
    }
}

/* Those parked anew while this runs stand at the front of a list that was taken away. */
static void readers_go_on(struct pfile *f, void (*go)(struct stream_reader *s))
{
    struct stream_reader *s, *next;
    for (s = LIST_FIRST(&f->parked); s != NULL; s = next) {
        next = LIST_NEXT(s, link);
        reader_unpark(s);
        go(s);
    }
}

static void wakers_tell(struct pfile *f)
{
    LIST_HEAD(, pfile_waker) told = LIST_HEAD_INITIALIZER(told);
    struct pfile_waker *w;
    while ((w = LIST_FIRST(&f->wakers)) != NULL) {
        LIST_REMOVE(w, link);
        LIST_INSERT_HEAD(&told, w, link);
    }
    while ((w = LIST_FIRST(&told)) != NULL) {
        pfile_unwake(w);
        w->cb(w);
    }
}

void streams_wake(struct pfile *f)
{
    pfile_ref(f);
    readers_go_on(f, stream_step);
    wakers_tell(f);
    polls_tell(f);
    pfile_unref(f);
}

void streams_gone(struct pfile *f)
{
    pfile_ref(f);
    readers_go_on(f, f->key.topic->gone ? stream_step : reader_eof);
    wakers_tell(f);
    polls_tell(f);
    pfile_unref(f);
}

void streams_end(struct mount *m)
{
    struct pfile *f, *next;
    HASH_ITER (hh, m->pfiles, f, next)
        streams_gone(f);
}

/* ---- poll ---- */

struct stream_poll {
    struct poll_op op;
    struct ends_wait ends;
};

static void on_poll_ends(struct ends_wait *w, int rc)
{
    struct stream_poll *p = container_of(w, struct stream_poll, ends);
    struct handle *h = p->op.h;
    struct pfile *f = h->node->pfile;
    if (rc == 0 && h->at < 0)
        h->at = f->ends.start_text;
    bool readable = rc != 0 || h->at < f->ends.end_text || h->mount->stopping;
    bool listed = h->poll != NULL;
    if (poll_op_end(&p->op, readable)) {
        if (!listed)
            LIST_INSERT_HEAD(&f->polled, h, poll_link);
        watch_want(h->mount->watch, f);
    }
    free(p);
}

static void stream_poll(struct handle *h, fuse_req_t req, struct fuse_pollhandle *ph)
{
    struct stream_poll *p = xcalloc(1, sizeof *p);
    poll_op_begin(&p->op, h, req, ph);
    p->ends.cb = on_poll_ends;
    ends_ask(h->node->pfile, &p->ends);
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
    poll_forget(h);
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
