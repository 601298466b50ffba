/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a partition by position. A read is answered in full unless the file ends in it, straight from
 * chunks; what is missing is fetched first, and for a reader that goes straight on the next chunks are
 * fetched while it reads this one. End of file is told only after asking (P2). Loop's thread.
 */
#include "fuse/pfile_read.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "fuse/file.h"
#include "fuse/mount.h"
#include "fuse/pfile.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* What is fetched for a reader that jumps about, for one that may go on, and for one that does. */
#define FETCH_RANDOM_BYTES     (64 * 1024)
#define FETCH_FIRST_BYTES      (256 * 1024)
#define FETCH_SEQUENTIAL_BYTES (1024 * 1024)
/* Text that is held ready in front of a sequential reader: two reads of the largest size. */
#define READ_AHEAD_BYTES (2 * 1024 * 1024)
/* Fetches and questions one read may need without getting further; more means that broker and log contradict each
 * other. */
#define READ_STEPS_MAX 64
/* A reader that has come so far through a file is taken for one that reads all of it once. */
#define SCAN_BYTES (16 * 1024 * 1024)

struct read_op {
    struct request r;
    struct handle *h; /* owned reference */
    int64_t off;
    size_t size;
    bool sequential;
    bool asked; /* the ends are newer than the read */
    int steps;
    int64_t reached; /* text position, when steps began to count */
    struct tails_wait tails;
    struct ends_wait ends;
    struct fetch_wait fetch;
};

static void read_step(struct read_op *op);

int pfile_errno(int rc)
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
        return -rc;
    case -ENOENT:
        return ESTALE;
    case -EAGAIN:
        return ETIMEDOUT;
    default:
        return EIO;
    }
}

static void read_free(struct read_op *op)
{
    handle_unref(op->h);
    free(op);
}

/* next: where it ends; skipped: holes inside it. */
static void read_finish(struct read_op *op, int64_t next, int64_t skipped, const struct text_span *span)
{
    struct handle *h = op->h;
    struct pfile *f = h->node->pfile;
    int64_t got = (int64_t)span->bytes;
    if (request_is_open(&op->r)) {
        h->run = op->sequential ? h->run + got : got;
        h->next_off = op->off + got;
        h->skip += skipped;
        request_text(&op->r, span);
        if (op->sequential && h->run > FETCH_RANDOM_BYTES && got > 0)
            fetch_ahead(f, next, next + READ_AHEAD_BYTES, FETCH_SEQUENTIAL_BYTES);
        if (h->run > SCAN_BYTES)
            chunk_pass(&f->mount->texts, &f->chunks, next - got, (size_t)got);
    }
    read_free(op);
}

/* The text position of the read. A sequential reader goes on behind what retention took from under it. */
static int64_t read_place(struct read_op *op, struct pfile *f)
{
    struct handle *h = op->h;
    if (!op->sequential)
        h->skip = 0;
    return pfile_base(f) + op->off + h->skip;
}

/* What is here from *next on, over holes. */
static void read_gather(struct read_op *op, int64_t *next, int64_t *skipped, struct text_span *span)
{
    struct pfile *f = op->h->node->pfile;
    for (;;) {
        *next += (int64_t)chunk_gather(&f->mount->texts, &f->chunks, *next, op->size, span);
        int64_t to = chunk_hole_end(&f->chunks, *next);
        if (span->bytes == op->size || span->n == TEXT_PIECES_MAX || to == *next)
            return;
        *skipped += to - *next;
        *next = to;
    }
}

/* What stands before the place that cannot be read comes first; the next read begins there, and has the error. */
static void read_fail(struct read_op *op, int rc)
{
    struct pfile *f = op->h->node->pfile;
    struct text_span span;
    span.bytes = 0;
    span.n = 0;
    if (request_is_open(&op->r) && f->ends_known) {
        int64_t next = read_place(op, f), skipped = 0;
        read_gather(op, &next, &skipped, &span);
        if (span.bytes > 0) {
            read_finish(op, next, skipped, &span);
            return;
        }
    }
    request_err(&op->r, pfile_errno(rc));
    read_free(op);
}

static void on_read_ends(struct ends_wait *w, int rc)
{
    struct read_op *op = container_of(w, struct read_op, ends);
    if (rc != 0) {
        read_fail(op, rc);
        return;
    }
    op->asked = true;
    read_step(op);
}

static void on_read_fetched(struct fetch_wait *w, int rc)
{
    struct read_op *op = container_of(w, struct read_op, fetch);
    if (rc == -ERANGE) { /* retention was faster: look where the log begins now */
        op->asked = false;
        ends_ask(op->h->node->pfile, &op->ends);
    } else if (rc != 0) {
        read_fail(op, rc);
    } else {
        read_step(op);
    }
}

static int32_t fetch_size(const struct read_op *op)
{
    if (!op->sequential)
        return (int32_t)MIN(MAX(2 * op->size, (size_t)FETCH_RANDOM_BYTES), (size_t)FETCH_SEQUENTIAL_BYTES);
    return op->h->run > 0 ? FETCH_SEQUENTIAL_BYTES : FETCH_FIRST_BYTES;
}

static void read_step(struct read_op *op)
{
    struct pfile *f = op->h->node->pfile;
    struct text_span span;
    span.bytes = 0;
    span.n = 0;
    if (!request_is_open(&op->r) || ++op->steps > READ_STEPS_MAX) {
        read_fail(op, -EIO);
        return;
    }
    if (!f->ends_known) {
        ends_ask(f, &op->ends);
        return;
    }
    int64_t next = read_place(op, f), skipped = 0;
    read_gather(op, &next, &skipped, &span);
    if (next > op->reached) {
        op->reached = next;
        op->steps = 0;
    }
    bool full = span.bytes == op->size || span.n == TEXT_PIECES_MAX, at_end = next >= f->ends.end_text;
    bool gone = next < f->ends.start_text && !fetch_goes_on(f, next);
    if (full || (at_end && op->asked) || (gone && span.bytes > 0)) {
        read_finish(op, next, skipped, &span);
    } else if (gone) {
        op->h->skip += skipped + f->ends.start_text - next;
        read_step(op);
    } else if (at_end) {
        ends_ask(f, &op->ends);
    } else {
        fetch_text(f, next, fetch_size(op), &op->fetch);
    }
}

static void on_read_tails(struct tails_wait *w)
{
    read_step(container_of(w, struct read_op, tails));
}

void pfile_read(struct handle *h, fuse_req_t req, size_t size, off_t off)
{
    struct read_op *op = xcalloc(1, sizeof *op);
    op->h = handle_ref(h);
    op->off = MIN(off, INT64_MAX / 4); /* no log is that long, and sums must not overflow */
    op->size = size;
    op->sequential = off == h->next_off;
    op->tails.cb = on_read_tails;
    op->ends.cb = on_read_ends;
    op->fetch.cb = on_read_fetched;
    request_begin(&op->r, h->mount, req);
    tails_ask(h->node->pfile, &op->tails);
}
