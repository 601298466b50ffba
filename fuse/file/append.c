/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One write, from the kernel's request to its answer: judged, cut into lines, sent, answered. Where the answer waits for the
 * commit (sync) it is decided here what is told of lines of which some failed (W1, W2), and what becomes of a write that is
 * interrupted (W5) or must not block; where it does not (async), the answer only waits for room. Rules: append.h. Loop's
 * thread.
 */
#include "fuse/file/append.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/file/append_int.h"
#include "fuse/partition/pfile.h"
#include "fuse/text/lines.h"
#include "fuse/tree/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* With compression a line may be longer than what it takes in the log; the broker judges beyond this. */
#define COMPRESSED_LINE_FACTOR 4
/* A record's line in another form than the plain one may be so much longer than what it takes in the log: one byte is six as an
 * escape, two of a header are some twenty. */
#define FORMED_LINE_FACTOR 16
#define INTERRUPT_WAIT_MS      1000

struct write {
    struct append ap;
    struct request r; /* not open: answered */
    struct lines lines;
    struct bytebuf rest; /* the new tail once the lines are committed */
    struct timer timer;  /* the patience of O_NONBLOCK */
    bool waits;          /* the answer waits for the lines (sync) */
    struct room_wait room;
};

/* ---- what may be opened and how long a line may be ---- */

int append_may_open(int flags)
{
    if ((flags & O_ACCMODE) == O_RDONLY)
        return (flags & O_TRUNC) != 0 ? EPERM : 0;
    return (flags & O_APPEND) == 0 || (flags & O_TRUNC) != 0 ? EPERM : 0;
}

static bool handle_waits(const struct handle *h, int flags)
{
    return !h->mount->opt->async || (flags & (O_SYNC | O_DSYNC)) != 0;
}

/* Where write() itself tells every error there is nothing left for close() to tell, and two requests are saved. */
unsigned append_open_flags(const struct handle *h)
{
    bool tells = handle_writes(h) && h->mount->opt->async;
    return tells ? FOPEN_DIRECT_IO : FOPEN_DIRECT_IO | FOPEN_NOFLUSH;
}

static size_t line_max(const struct handle *h)
{
    size_t max = (size_t)h->node->topic->max_message_bytes;
    max = max > LINE_OVERHEAD_MAX ? max - LINE_OVERHEAD_MAX : 0;
    if (view_form(&h->node->view) != LINE_PLAIN)
        max = MIN(max, (size_t)INT32_MAX / 256) * FORMED_LINE_FACTOR;
    return h->mount->opt->compression == CODEC_NONE ? max : max * COMPRESSED_LINE_FACTOR;
}

/* ---- the answer ---- */

static void write_free(struct write *w)
{
    timer_clear(w->ap.mount->loop, &w->timer);
    lines_done(&w->lines);
    bytebuf_done(&w->rest);
    append_end(&w->ap);
    free(w);
}

static void set_tail(struct handle *h, const struct bytebuf *from)
{
    h->app.tail.n = 0;
    h->app.torn = false;
    if (from->n > 0)
        bytebuf_add(&h->app.tail, from->p, from->n);
}

/* The first n lines are committed, what follows is not or may not be; its beginning is no tail any more. */
static void answer_part(struct write *w, size_t n)
{
    w->ap.h->app.tail.n = 0;
    request_written(&w->r, w->lines.ends[n - 1]);
}

/* W1, W2 for a write that waits for its lines. */
static void answer_sync(struct write *w, size_t n, int rc)
{
    struct handle *h = w->ap.h;
    if (!request_is_open(&w->r))
        return; /* interrupted (W5) */
    if (rc == 0) {
        set_tail(h, &w->rest);
        request_written(&w->r, w->lines.taken);
    } else if (n > 0) {
        answer_part(w, n);
    } else {
        h->app.torn = h->app.tail.n > 0;
        request_err(&w->r, request_errno(rc));
    }
}

static void on_write_done(struct append *ap)
{
    struct write *w = container_of(ap, struct write, ap);
    struct handle *h = ap->h;
    int rc;
    size_t n = append_committed(ap, &rc);
    if (w->waits)
        answer_sync(w, n, rc);
    else if (rc != 0 && h->app.error == 0)
        h->app.error = request_errno(rc);
    append_settled(h);
    if (!w->room.waiting)
        write_free(w);
}

/* Async: the lines are taken, and there is room for more. */
static void on_room(struct room_wait *rw)
{
    struct write *w = container_of(rw, struct write, room);
    request_written(&w->r, w->lines.taken);
    if (w->ap.outstanding == 0)
        write_free(w);
}

static void answer_async(struct write *w)
{
    set_tail(w->ap.h, &w->rest);
    if (append_has_room(w->ap.mount)) {
        request_written(&w->r, w->lines.taken);
        return;
    }
    w->room.cb = on_room;
    append_wait_room(w->ap.mount, &w->room);
}

/* ---- interrupts and impatience ---- */

/* W5: the answer has waited long enough; lines that are on their way may or may not get there. */
static void write_give_up(struct write *w)
{
    int rc;
    size_t n = append_committed(&w->ap, &rc);
    if (n > 0) {
        answer_part(w, n);
    } else {
        w->ap.h->app.tail.n = 0;
        request_err(&w->r, EINTR);
    }
}

static void on_write_interrupted(struct request *r)
{
    struct write *w = container_of(r, struct write, r);
    if (w->room.waiting) { /* the lines are taken: say so */
        request_written(&w->r, w->lines.taken);
        return;
    }
    append_hold(&w->ap);
    if (!append_withdraw(&w->ap))
        write_give_up(w);
    append_let_go(&w->ap);
}

static void on_nonblock_timer(struct timer *t)
{
    struct write *w = container_of(t, struct write, timer);
    append_hold(&w->ap);
    if (append_is_one_batch(&w->ap) && append_withdraw(&w->ap))
        request_err(&w->r, EAGAIN);
    append_let_go(&w->ap);
}

/* ---- the lines ---- */

/* The first line with the tail before it; the tail gets the bytes for as long as the value is needed. */
static struct kstr first_line(struct appender *app, const char *buf, size_t n)
{
    if (app->tail.n == 0)
        return kstr_bytes(buf, n);
    bytebuf_add(&app->tail, buf, n);
    return kstr_bytes(app->tail.p, app->tail.n);
}

/* Reads the lines as records; of what is not of the form, and behind it, nothing is taken. */
static struct append_records read_lines(struct handle *h, const char *buf, struct lines *l)
{
    struct appender *app = &h->app;
    size_t tail = app->tail.n;
    struct append_records got = append_read(h, buf, l->ends, l->n, first_line(app, buf, l->ends[0] - 1));
    app->tail.n = tail; /* its bytes stay where they are until the records are sent */
    if (got.n == l->n)
        return got;
    log_debug("%s: a line that was appended to %s is refused: %s", h->node->topic->name, h->node->path, got.why);
    l->n = got.n;
    l->taken = got.n > 0 ? l->ends[got.n - 1] : 0;
    l->rest = 0;
    return got;
}

/* Lines that were judged and are there. Takes *l over. */
static void write_lines(struct handle *h, struct pfile *f, fuse_req_t req, const char *buf, struct lines *l,
                        const struct append_records *got, int flags)
{
    struct mount *m = h->mount;
    struct write *w = xcalloc(1, sizeof *w);
    append_begin(&w->ap, h, f, on_write_done);
    w->lines = *l;
    w->waits = handle_waits(h, flags);
    if (l->rest > 0)
        bytebuf_add(&w->rest, buf + l->taken - l->rest, l->rest);
    append_send(&w->ap, got->records, got->n, w->waits || m->opt->linger_ms == 0);
    request_begin_with(&w->r, m, req, INTERRUPT_WAIT_MS, on_write_interrupted);
    if (!w->waits) {
        answer_async(w);
    } else if ((flags & O_NONBLOCK) != 0 && request_is_open(&w->r)) {
        w->timer.cb = on_nonblock_timer;
        timer_set(m->loop, &w->timer, loop_now_ms(m->loop) + mount_nonblock_wait_ms(m));
    }
    append_let_go(&w->ap);
}

/* ---- the write ---- */

/* What keeps a write from being looked at: positive errno. */
static int write_refusal(struct handle *h, int flags)
{
    /* As it was opened: F_SETFL without O_APPEND is refused for a file under chattr +a, so programs that set O_NONBLOCK
     * alone go on appending there, and here. */
    if (((h->flags & O_APPEND) == 0 && h->node->kind != NODE_ANY) || !handle_writes(h))
        return EPERM; /* the file was made by touch */
    if (h->app.error != 0) {
        int e = h->app.error;
        h->app.error = 0;
        return e;
    }
    if (h->app.lost)
        return EMSGSIZE;
    if (h->node->topic->gone)
        return ESTALE;
    if ((flags & O_NONBLOCK) != 0 && (!append_has_room(h->mount) || (handle_waits(h, flags) && h->app.sends > 0)))
        return EAGAIN;
    return 0;
}

/* No line ends in it. */
static void write_tail(struct handle *h, fuse_req_t req, const char *buf, size_t size, const struct lines *l)
{
    if (l->broken) { /* W3 */
        h->app.lost = true;
        bytebuf_done(&h->app.tail);
    }
    if (l->too_long) {
        fuse_reply_err(req, EMSGSIZE);
        return;
    }
    bytebuf_add(&h->app.tail, buf, size);
    fuse_reply_write(req, size);
}

void append_write(struct handle *h, fuse_req_t req, const char *buf, size_t size, int flags)
{
    struct lines l;
    struct pfile *f;
    int err = write_refusal(h, flags);
    if (err != 0) {
        fuse_reply_err(req, err);
    } else if (size == 0) {
        fuse_reply_write(req, 0);
    } else {
        lines_cut(buf, size, h->app.tail.n, line_max(h), &l);
        struct append_records got = { .n = 0 };
        bool whole = l.n > 0;
        if (whole)
            got = read_lines(h, buf, &l);
        if (!whole) {
            write_tail(h, req, buf, size, &l);
            lines_done(&l);
        } else if (got.n == 0) { /* W6 */
            h->app.torn = h->app.tail.n > 0;
            lines_done(&l);
            fuse_reply_err(req, EINVAL);
        } else if ((f = append_target(h)) == NULL) {
            lines_done(&l);
            fuse_reply_err(req, ETIMEDOUT);
        } else {
            write_lines(h, f, req, buf, &l, &got, flags);
            pfile_unref(f);
        }
    }
}
