/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending: a line is a record. Each open file keeps the bytes after its last '\n' (the tail) and joins them
 * to what is written next, so lines of any number of writers never mix. Loop's thread. Rules:
 *
 *   W1  What write() says is appended is committed (sync), or its error shows at the next write, close or fsync (async).
 *   W2  A write that fails part-way tells the bytes up to the last committed line; one that fails as a whole leaves the
 *       tail as it was, so that it can be tried again.
 *   W3  No piece of a line that is too long is ever appended: when a refused write tore one, the open file takes nothing
 *       more, since it cannot know where the next line begins.
 *   W4  The tail becomes a record at RELEASE (last close), unless the write that was to end its line failed.
 *   W5  The answer of an interrupted write waits up to a second for the acknowledgement; then what was not sent is
 *       withdrawn, and the write fails with EINTR.
 */
#include "fuse/file/pfile_write.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/watch.h"
#include "fuse/text/lines.h"
#include "fuse/tree/file.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* Bytes that wait for brokers; above it writers wait too, or get EAGAIN. */
#define PENDING_BYTES_MAX (64 * 1024 * 1024)
/* What a record and its batch have around the value, at most. */
#define RECORD_OVERHEAD_MAX 16
#define LINE_OVERHEAD_MAX   (BATCH_OVERHEAD + RECORD_OVERHEAD_MAX)
/* With compression a line may be longer than what it takes in the log; the broker judges beyond this. */
#define COMPRESSED_LINE_FACTOR 4
/* A batch of one send; the topic may want smaller ones. */
#define SEND_BYTES_MAX    (1024 * 1024)
#define INTERRUPT_WAIT_MS 1000
/* A write that must not block is withdrawn when it was not even sent by then: programs that set O_NONBLOCK for the descriptor of a log
 * (haproxy) drop what gets EAGAIN, so one that only waits for a connection or a busy machine is waited for; not while the brokers are
 * missed. */
#define NONBLOCK_WAIT_MS        500
#define NONBLOCK_WAIT_MISSED_MS 20

/* One producer_send of a write. */
struct part {
    struct append *ap;
    struct producer_send send;
    int32_t n, committed;
    int rc;
    bool done;
    STAILQ_ENTRY(part) link;
};

/* One write, or the last line of a closed file, on its way. */
struct append {
    struct request r; /* not open: answered, or there never was one */
    struct mount *mount;
    struct handle *h;   /* owned reference */
    struct pfile *file; /* owned reference */
    STAILQ_HEAD(, part) parts;
    int outstanding; /* parts on their way, and 1 while they are being sent */
    struct lines lines;
    struct bytebuf rest; /* the new tail once the lines are committed */
    struct timer timer;  /* the patience of O_NONBLOCK */
    bool is_tail;
    bool waits;               /* the answer waits for the parts (sync) */
    bool room;                /* async: the answer waits for room */
    LIST_ENTRY(append) way;   /* handle->app.on_way */
    TAILQ_ENTRY(append) link; /* writers->full */
};

struct append_wait {
    struct request r;
    struct handle *h; /* owned reference */
    LIST_ENTRY(append_wait) link;
};

struct writers {
    struct mount *mount;
    struct producer_record *records; /* scratch */
    size_t records_cap;
    size_t sends;              /* on their way */
    TAILQ_HEAD(, append) full; /* async writes that wait for room */
};

struct writers *writers_new(struct mount *m)
{
    struct writers *w = xcalloc(1, sizeof *w);
    w->mount = m;
    TAILQ_INIT(&w->full);
    return w;
}

void writers_free(struct writers *w)
{
    if (w == NULL)
        return;
    KCHECK(w->sends == 0);
    free(w->records);
    free(w);
}

size_t writers_pending(const struct writers *w)
{
    return w->sends;
}

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

/* Where write() itself tells every error there is nothing left for close() to tell, and two requests are
 * saved. */
unsigned append_open_flags(const struct handle *h)
{
    bool tells = handle_writes(h) && h->mount->opt->async;
    return tells ? FOPEN_DIRECT_IO : FOPEN_DIRECT_IO | FOPEN_NOFLUSH;
}

static size_t line_max(const struct handle *h)
{
    size_t max = (size_t)h->node->topic->max_message_bytes;
    max = max > LINE_OVERHEAD_MAX ? max - LINE_OVERHEAD_MAX : 0;
    return h->mount->opt->compression == CODEC_NONE ? max : max * COMPRESSED_LINE_FACTOR;
}

/* ---- the end of it ---- */

static void append_free(struct append *ap)
{
    struct part *p;
    while ((p = STAILQ_FIRST(&ap->parts)) != NULL) {
        STAILQ_REMOVE_HEAD(&ap->parts, link);
        free(p);
    }
    timer_clear(ap->mount->loop, &ap->timer);
    if (ap->room)
        TAILQ_REMOVE(&ap->mount->writers->full, ap, link);
    lines_done(&ap->lines);
    bytebuf_done(&ap->rest);
    LIST_REMOVE(ap, way);
    handle_unref(ap->h);
    pfile_unref(ap->file);
    free(ap);
}

static void settle_waiters(struct handle *h)
{
    struct append_wait *w;
    while (h->app.sends == 0 && (w = LIST_FIRST(&h->app.waiting)) != NULL) {
        LIST_REMOVE(w, link);
        request_err(&w->r, h->app.error);
        h->app.error = 0;
        handle_unref(w->h);
        free(w);
    }
}

/* Async writes whose lines are taken get their answer when there is room for more. */
static void writers_make_room(struct writers *w)
{
    struct append *ap;
    while ((ap = TAILQ_FIRST(&w->full)) != NULL &&
           producer_pending_bytes(w->mount->producer) <= PENDING_BYTES_MAX) {
        TAILQ_REMOVE(&w->full, ap, link);
        ap->room = false;
        request_written(&ap->r, ap->lines.taken);
        if (ap->outstanding == 0)
            append_free(ap);
    }
}

/* Lines committed from the first on without a gap; *ret_rc: what stopped the others, 0 when none. */
static size_t append_committed(const struct append *ap, int *ret_rc)
{
    const struct part *p;
    size_t n = 0;
    *ret_rc = 0;
    STAILQ_FOREACH (p, &ap->parts, link) {
        n += (size_t)p->committed;
        if (p->rc != 0) {
            *ret_rc = p->rc;
            break;
        }
    }
    return n;
}

static void set_tail(struct handle *h, struct bytebuf *from)
{
    h->app.tail.n = 0;
    h->app.torn = false;
    if (from->n > 0)
        bytebuf_add(&h->app.tail, from->p, from->n);
}

/* W1, W2 for a write that waits for its parts. */
static void append_answer(struct append *ap)
{
    struct handle *h = ap->h;
    int rc;
    size_t n = append_committed(ap, &rc);
    if (!request_is_open(&ap->r))
        return; /* interrupted (W5) */
    if (rc == 0) {
        set_tail(h, &ap->rest);
        request_written(&ap->r, ap->lines.taken);
    } else if (n > 0) {
        h->app.tail.n = 0;
        request_written(&ap->r, ap->lines.ends[n - 1]);
    } else {
        h->app.torn = h->app.tail.n > 0;
        request_err(&ap->r, request_errno(rc));
    }
}

static void tail_done(struct append *ap)
{
    struct pfile *f = ap->file;
    int rc;
    append_committed(ap, &rc);
    if (rc != 0) {
        log_error("the last line, without a newline, of a file closed is not in %s/p%d: %s; write newlines "
                  "to be told",
                  pfile_topic(f), pfile_partition(f), strerror(request_errno(rc)));
    }
    tail_answered(f);
}

static void append_done(struct append *ap)
{
    struct handle *h = ap->h;
    int rc;
    append_committed(ap, &rc);
    if (ap->is_tail)
        tail_done(ap);
    else if (ap->waits)
        append_answer(ap);
    else if (rc != 0 && h->app.error == 0)
        h->app.error = request_errno(rc);
    settle_waiters(h);
    if (!ap->room)
        append_free(ap);
}

static void append_release_one(struct append *ap)
{
    KCHECK(ap->outstanding > 0);
    if (--ap->outstanding == 0)
        append_done(ap);
}

static void part_end(struct part *p, int rc, int32_t committed)
{
    struct append *ap = p->ap;
    struct writers *w = ap->mount->writers;
    p->done = true;
    p->rc = rc;
    p->committed = rc == 0 ? p->n : committed;
    w->sends--;
    ap->h->app.sends--;
    ap->file->own_sends--;
    ap->file->own_records += p->committed;
    watch_judge(ap->mount->watch, ap->file);
    append_release_one(ap);
    writers_make_room(w);
}

static void on_sent(struct producer_send *s, int rc, enum kerr err, int64_t offset, int32_t n_committed,
                    const char *text)
{
    struct part *p = s->user;
    (void)offset;
    if (rc != 0)
        log_debug("append to %s/p%d: %s (%s) %s", pfile_topic(p->ap->file), pfile_partition(p->ap->file),
                  strerror(-rc), kerr_name(err), text == NULL ? "" : text);
    if (rc == 0)
        p->ap->file->key.topic->sure_ns = clock_mono_ns();
    if (rc == -ENOENT)
        topic_doubt(p->ap->file->key.topic);
    if (rc == -EMSGSIZE)
        p->ap->file->key.topic->limits_ms = 0; /* the limit is not what it was: ask at the next open */
    part_end(p, rc, n_committed);
}

/* ---- interrupts and impatience ---- */

/* Takes back what was not sent. True: all of it. */
static bool append_withdraw(struct append *ap)
{
    struct part *p;
    bool all = true;
    STAILQ_FOREACH (p, &ap->parts, link) {
        if (!p->done && producer_withdraw(ap->mount->producer, &p->send))
            part_end(p, -EINTR, 0);
        else
            all = false;
    }
    return all;
}

/* W5: the answer has waited long enough; lines that are on their way may or may not get there. Their beginning
 * is no tail any more. */
static void append_give_up(struct append *ap)
{
    const struct part *p = STAILQ_FIRST(&ap->parts);
    size_t n = 0;
    for (; p != NULL && p->done && p->rc == 0; p = STAILQ_NEXT(p, link))
        n += (size_t)p->committed;
    ap->h->app.tail.n = 0;
    if (n > 0)
        request_written(&ap->r, ap->lines.ends[n - 1]);
    else
        request_err(&ap->r, EINTR);
}

static void on_append_interrupted(struct request *r)
{
    struct append *ap = container_of(r, struct append, r);
    if (ap->room) { /* the lines are taken: say so */
        request_written(&ap->r, ap->lines.taken);
        return;
    }
    ap->outstanding++;
    if (!append_withdraw(ap))
        append_give_up(ap);
    append_release_one(ap);
}

static void on_nonblock_timer(struct timer *t)
{
    struct append *ap = container_of(t, struct append, timer);
    struct part *p = STAILQ_FIRST(&ap->parts);
    ap->outstanding++;
    if (STAILQ_NEXT(p, link) == NULL && append_withdraw(ap))
        request_err(&ap->r, EAGAIN);
    append_release_one(ap);
}

/* ---- the beginning ---- */

static struct producer_record *scratch_records(struct writers *w, size_t n)
{
    if (n > w->records_cap) {
        w->records_cap = MAX(n, MAX(w->records_cap * 2, (size_t)64));
        w->records = xreallocarray(w->records, w->records_cap, sizeof *w->records);
    }
    return w->records;
}

/* first: the value of the first line, joined from the tail; the others lie in buf. */
static void fill_records(struct producer_record *r, const struct lines *l, const char *buf, struct kstr first)
{
    int64_t now = clock_wall_ms();
    for (size_t i = 0; i < l->n; i++) {
        uint32_t from = i == 0 ? 0 : l->ends[i - 1];
        struct kstr value = i == 0 ? first : kstr_bytes(buf + from, l->ends[i] - 1 - from);
        r[i] = (struct producer_record){ .timestamp = now, .key = KSTR_NULL, .value = value };
    }
}

static void part_send(struct append *ap, const struct producer_record *records, size_t n, bool flush)
{
    struct part *p = xcalloc(1, sizeof *p);
    p->ap = ap;
    p->n = (int32_t)n;
    p->send = (struct producer_send){ .topic = pfile_topic(ap->file),
                                      .topic_id = ap->file->key.topic->id,
                                      .partition = pfile_partition(ap->file),
                                      .records = records,
                                      .n_records = (int32_t)n,
                                      .flush = flush,
                                      .cb = on_sent,
                                      .user = p };
    STAILQ_INSERT_TAIL(&ap->parts, p, link);
    ap->outstanding++;
    ap->mount->writers->sends++;
    ap->h->app.sends++;
    ap->file->own_sends++;
    producer_count_from(ap->mount->producer, mount_append_deadline_ms(ap->mount) - ap->mount->opt->timeout_ms);
    producer_send(ap->mount->producer, &p->send);
}

/* Sends records in as few batches as the topic's limit allows. */
static void append_send(struct append *ap, const struct producer_record *records, size_t n, bool flush)
{
    size_t max = MIN((size_t)ap->file->key.topic->max_message_bytes, (size_t)SEND_BYTES_MAX);
    size_t from = 0, bytes = BATCH_OVERHEAD;
    for (size_t i = 0; i < n; i++) {
        size_t size = (size_t)records[i].value.n + RECORD_OVERHEAD_MAX;
        if (i > from && bytes + size > max) {
            part_send(ap, records + from, i - from, flush);
            from = i;
            bytes = BATCH_OVERHEAD;
        }
        bytes += size;
    }
    part_send(ap, records + from, n - from, flush);
}

static struct append *append_new(struct handle *h, struct pfile *f)
{
    struct append *ap = xcalloc(1, sizeof *ap);
    ap->mount = h->mount;
    ap->h = handle_ref(h);
    ap->file = pfile_ref(f);
    ap->outstanding = 1;
    STAILQ_INIT(&ap->parts);
    LIST_INSERT_HEAD(&h->app.on_way, ap, way);
    return ap;
}

/* The first line with the tail before it; the tail gets the bytes for as long as the value is needed. */
static struct kstr first_line(struct appender *app, const char *buf, size_t n)
{
    if (app->tail.n == 0)
        return kstr_bytes(buf, n);
    bytebuf_add(&app->tail, buf, n);
    return kstr_bytes(app->tail.p, app->tail.n);
}

static void append_lines(struct append *ap, const char *buf, bool flush)
{
    struct appender *app = &ap->h->app;
    size_t tail = app->tail.n;
    struct producer_record *records = scratch_records(ap->mount->writers, ap->lines.n);
    fill_records(records, &ap->lines, buf, first_line(app, buf, ap->lines.ends[0] - 1));
    append_send(ap, records, ap->lines.n, flush);
    app->tail.n = tail;
}

static void append_answer_async(struct append *ap)
{
    struct writers *w = ap->mount->writers;
    set_tail(ap->h, &ap->rest);
    if (producer_pending_bytes(ap->mount->producer) <= PENDING_BYTES_MAX) {
        request_written(&ap->r, ap->lines.taken);
        return;
    }
    ap->room = true;
    TAILQ_INSERT_TAIL(&w->full, ap, link);
}

static int64_t nonblock_wait_ms(const struct mount *m)
{
    int64_t since = client_missing_since_ms(m->writer);
    bool missed = since != 0 && since + NONBLOCK_WAIT_MS <= loop_now_ms(m->loop);
    return missed ? NONBLOCK_WAIT_MISSED_MS : NONBLOCK_WAIT_MS;
}

/* Lines that were judged and are there. Takes *l over. */
static void append_begin(struct handle *h, struct pfile *f, fuse_req_t req, const char *buf, struct lines *l,
                         int flags)
{
    struct append *ap = append_new(h, f);
    ap->lines = *l;
    ap->waits = handle_waits(h, flags);
    if (l->rest > 0)
        bytebuf_add(&ap->rest, buf + l->taken - l->rest, l->rest);
    append_lines(ap, buf, ap->waits || h->mount->opt->linger_ms == 0);
    request_begin_with(&ap->r, h->mount, req, INTERRUPT_WAIT_MS, on_append_interrupted);
    if (!ap->waits) {
        append_answer_async(ap);
    } else if ((flags & O_NONBLOCK) != 0 && request_is_open(&ap->r)) {
        ap->timer.cb = on_nonblock_timer;
        timer_set(h->mount->loop, &ap->timer, loop_now_ms(h->mount->loop) + nonblock_wait_ms(h->mount));
    }
    append_release_one(ap);
}

/* `any`: the partitions take turns, those without a leader are left out. NULL: none has one. */
static struct pfile *any_partition(struct handle *h)
{
    struct topic *t = h->node->topic;
    const struct client_topic *ct = client_topic(h->mount->client, t->name);
    for (int32_t i = 0; ct != NULL && i < ct->n_partitions; i++) {
        const struct client_partition *p = &ct->partitions[t->turn++ % (uint32_t)ct->n_partitions];
        if (p->leader >= 0)
            return pfile_get(h->mount, t, p->id);
    }
    return NULL;
}

static struct pfile *append_target(struct handle *h)
{
    return h->node->pfile != NULL ? pfile_ref(h->node->pfile) : any_partition(h);
}

/* What keeps a write from being looked at: positive errno. */
static int append_refusal(struct handle *h, int flags)
{
    /* As it was opened: F_SETFL without O_APPEND is refused for a file under chattr +a, so programs that set O_NONBLOCK
     * alone go on appending there, and here. */
    if ((h->flags & O_APPEND) == 0 || !handle_writes(h))
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
    if ((flags & O_NONBLOCK) != 0 && (producer_pending_bytes(h->mount->producer) > PENDING_BYTES_MAX ||
                                      (handle_waits(h, flags) && h->app.sends > 0)))
        return EAGAIN;
    return 0;
}

void append_write(struct handle *h, fuse_req_t req, const char *buf, size_t size, int flags)
{
    struct lines l;
    int err = append_refusal(h, flags);
    if (err != 0 || size == 0) {
        if (err != 0)
            fuse_reply_err(req, err);
        else
            fuse_reply_write(req, 0);
        return;
    }
    lines_cut(buf, size, h->app.tail.n, line_max(h), &l);
    if (l.n == 0) {
        lines_done(&l);
        if (l.broken) { /* W3 */
            h->app.lost = true;
            bytebuf_done(&h->app.tail);
        }
        if (l.too_long) {
            fuse_reply_err(req, EMSGSIZE);
            return;
        }
        bytebuf_add(&h->app.tail, buf, size);
        fuse_reply_write(req, size);
        return;
    }
    struct pfile *f = append_target(h);
    if (f == NULL) {
        lines_done(&l);
        fuse_reply_err(req, ETIMEDOUT);
        return;
    }
    append_begin(h, f, req, buf, &l, flags);
    pfile_unref(f);
}

/* ---- flush, fsync, release ---- */

static void append_hurry(struct append *ap)
{
    struct part *p;
    STAILQ_FOREACH (p, &ap->parts, link) {
        if (!p->done)
            producer_hurry(ap->mount->producer, &p->send);
    }
}

void append_settle(struct handle *h, fuse_req_t req)
{
    if (h->app.sends == 0) {
        fuse_reply_err(req, h->app.error);
        h->app.error = 0;
        return;
    }
    struct append_wait *w = xcalloc(1, sizeof *w);
    w->h = handle_ref(h);
    LIST_INSERT_HEAD(&h->app.waiting, w, link);
    request_begin(&w->r, h->mount, req);
    struct append *ap;
    LIST_FOREACH (ap, &h->app.on_way, way)
        append_hurry(ap);
}

/* W4 */
void append_release(struct handle *h)
{
    struct appender *app = &h->app;
    if (app->tail.n == 0 || app->torn || app->lost)
        return;
    struct pfile *f = append_target(h);
    if (f == NULL) {
        log_error(
            "the last line, without a newline, of a file closed is lost: no partition of %s has a leader",
            h->node->topic->name);
        return;
    }
    struct append *ap = append_new(h, f);
    struct producer_record r = { .timestamp = clock_wall_ms(),
                                 .key = KSTR_NULL,
                                 .value = kstr_bytes(app->tail.p, app->tail.n) };
    ap->is_tail = true;
    tail_sent(f);
    append_send(ap, &r, 1, true);
    app->tail.n = 0;
    append_release_one(ap);
    pfile_unref(f);
}

void append_release_all(struct mount *m)
{
    struct handle *h;
    LIST_FOREACH (h, &m->handles, open_link)
        append_release(h);
}
