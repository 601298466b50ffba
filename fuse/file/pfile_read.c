/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a partition by position. A read is answered in full unless the file ends in it, straight from
 * chunks; what is missing is fetched first, and for a reader that goes straight on the next chunks are
 * fetched while it reads this one. End of file is told only after asking (P2).
 *
 * Who reads on goes on behind what retention, compaction or a lost tail took from under it. From there on this open
 * file's positions stand for other places than the text's rule has it (ptext_place); `jumps` remembers which, so that
 * what it has read is found again at the same position (bash seeks back to the end of a line it took), and anything
 * else that is gone is EIO (X3). Loop's thread.
 */
#include "fuse/file/pfile_read.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* Jumps that an open file remembers; above it the older half of what it has read is EIO. */
#define JUMPS_MAX 4096
/* Pieces without a hole between them that one answer is made of. */
#define PIECES_MAX 32
/* Holes that one answer is led over by fetches. */
#define HOPS_MAX 16

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

/* A reader that goes straight on goes on from `from` at to.at. */
struct hop {
    int64_t from;
    struct text_edge to;
    int64_t at;
};

struct read_op {
    struct request r;
    struct handle *h; /* owned reference */
    int64_t off;
    size_t size;
    bool sequential;
    bool asked; /* the ends are newer than the read */
    int steps;
    int64_t reached;  /* text position, when steps began to count */
    int64_t fetching; /* the text position that is fetched */
    struct text_edge edge; /* what is known of the place; of a text with a map read_edge() says it */
    struct hop hops[HOPS_MAX];
    int n_hops;
    struct tails_wait tails;
    struct text_wait ends;
    struct fetch_wait fetch;
};

static void read_step(struct read_op *op);

static void read_free(struct read_op *op)
{
    handle_unref(op->h);
    free(op);
}

/* ---- where positions of an open file lie ---- */

static struct text_jump *jump_at(struct handle *h, int64_t off)
{
    size_t low = 0, high = h->place.n_jumps;
    while (low < high) { /* the first that ends behind off */
        size_t mid = low + (high - low) / 2;
        if (h->place.jumps[mid].to <= off)
            low = mid + 1;
        else
            high = mid;
    }
    return low < h->place.n_jumps && h->place.jumps[low].from <= off ? &h->place.jumps[low] : NULL;
}

static void jumps_forget_half(struct handle *h)
{
    size_t keep = h->place.n_jumps / 2;
    h->lost_to = h->place.jumps[h->place.n_jumps - keep - 1].to;
    memmove(h->place.jumps, h->place.jumps + h->place.n_jumps - keep, keep * sizeof *h->place.jumps);
    h->place.n_jumps = keep;
}

/* n bytes from `off` on were read at text position `at`. */
static void jump_note(struct handle *h, int64_t off, int64_t at, int64_t n)
{
    struct text_jump *last = h->place.n_jumps > 0 ? &h->place.jumps[h->place.n_jumps - 1] : NULL;
    if (n == 0 || ptext_place(h->place.text, off) == at || (last != NULL && off < last->to))
        return;
    if (last != NULL && last->to == off && last->at + (last->to - last->from) == at) {
        last->to += n;
        return;
    }
    if (h->place.n_jumps == JUMPS_MAX)
        jumps_forget_half(h);
    if (h->place.n_jumps == 0 && h->place.jumps == NULL)
        h->lost_from = off;
    if ((h->place.n_jumps & (h->place.n_jumps + 1)) == 0 || h->place.jumps == NULL) /* full at 1, 3, 7, ... */
        h->place.jumps = xreallocarray(h->place.jumps, 2 * h->place.n_jumps + 1, sizeof *h->place.jumps);
    h->place.jumps[h->place.n_jumps++] = (struct text_jump){ off, off + n, at };
}

/* The text position of the read; -1: it is gone, or nobody knows any more. */
static int64_t read_place(struct read_op *op)
{
    struct handle *h = op->h;
    if (op->off == h->next_off && h->place.at >= 0)
        return h->place.at;
    const struct text_jump *j = jump_at(h, op->off);
    if (j != NULL)
        return j->at + op->off - j->from;
    j = h->place.n_jumps > 0 ? &h->place.jumps[h->place.n_jumps - 1] : NULL;
    if (j != NULL && op->off == j->to) { /* reading on, after a look elsewhere */
        op->sequential = true;
        return j->at + j->to - j->from;
    }
    if (op->off >= h->lost_from && op->off < h->lost_to)
        return -1;
    return ptext_place(h->place.text, op->off);
}

/* What is known of text position `next`, which the read has come to. */
static struct text_edge read_edge(const struct read_op *op, int64_t next)
{
    const struct text_place *p = &op->h->place;
    if (p->text->map == NULL)
        return op->edge.at <= next ? op->edge : TEXT_EDGE_NONE;
    for (int i = 0; i < op->n_hops; i++) {
        if (op->hops[i].at == next)
            return op->hops[i].to;
    }
    return op->sequential ? place_edge(p, next) : TEXT_EDGE_NONE;
}

/* Nothing is at text position `from`; a reader that goes straight on goes on at `at`. */
static int read_hop(struct read_op *op, int64_t from, int64_t at, struct text_edge edge)
{
    if (!op->sequential)
        return -EIO;
    struct hop *last = op->n_hops > 0 ? &op->hops[op->n_hops - 1] : NULL;
    if (last != NULL && last->at == from) {
        last->at = at;
        last->to = edge;
    } else if (op->n_hops < HOPS_MAX) {
        op->hops[op->n_hops++] = (struct hop){ from, edge, at };
    } else {
        return -ELOOP; /* what was gathered is told, and the next read goes on */
    }
    op->edge = edge;
    return 0;
}

/* ---- the answer ---- */

struct pieces {
    int n;
    struct {
        int64_t at, bytes;
    } p[PIECES_MAX];
};

/* next: text position where it ends. */
static void read_finish(struct read_op *op, int64_t next, const struct pieces *pieces, const struct text_span *span)
{
    struct handle *h = op->h;
    struct ptext *t = h->place.text;
    int64_t got = (int64_t)span->bytes, off = op->off;
    if (request_is_open(&op->r)) {
        for (int i = 0; i < pieces->n; off += pieces->p[i++].bytes)
            jump_note(h, off, pieces->p[i].at, pieces->p[i].bytes);
        h->run = op->sequential ? h->run + got : got;
        h->next_off = op->off + got;
        request_text(&op->r, span);
        place_went(&h->place, next, read_edge(op, next));
        if (op->sequential && h->run > FETCH_RANDOM_BYTES && got > 0)
            fetch_ahead(t, next, next + READ_AHEAD_BYTES, FETCH_SEQUENTIAL_BYTES);
        if (h->run > SCAN_BYTES)
            chunk_pass(&t->file->mount->texts, &t->chunks, next - got, (size_t)got);
    }
    read_free(op);
}

/* Where a reader that goes straight on finds what follows, when nothing is at `next`. */
static int64_t read_hole_end(const struct read_op *op, int64_t next)
{
    for (int i = 0; i < op->n_hops; i++) {
        if (op->hops[i].from == next)
            return op->hops[i].at;
    }
    return chunk_hole_end(&op->h->place.text->chunks, next);
}

/* What is here from *next on. Who goes straight on is led over holes; at any other position there is nothing in a hole. */
static void read_gather(struct read_op *op, int64_t *next, struct pieces *pieces, struct text_span *span)
{
    const struct text_place *p = &op->h->place;
    for (;;) {
        int64_t got = (int64_t)chunk_gather(&p->text->file->mount->texts, &p->text->chunks, *next, op->size, span);
        if (got == 0 && op->sequential)
            got = (int64_t)place_rest(p, *next, op->size, span);
        if (got > 0) {
            pieces->p[pieces->n].at = *next;
            pieces->p[pieces->n++].bytes = got;
        }
        *next += got;
        int64_t to = op->sequential ? read_hole_end(op, *next) : *next;
        if (span->bytes == op->size || span->n == TEXT_PIECES_MAX || pieces->n == PIECES_MAX || (to == *next && got == 0))
            return;
        *next = to;
    }
}

/* What stands before the place that cannot be read comes first; the next read begins there, and has the error. */
static void read_fail(struct read_op *op, int rc)
{
    struct ptext *t = op->h->place.text;
    struct pieces pieces = { .n = 0 };
    struct text_span span;
    span.bytes = 0;
    span.n = 0;
    int64_t next = request_is_open(&op->r) && !ptext_needs_ends(t) ? read_place(op) : -1;
    if (next >= 0)
        read_gather(op, &next, &pieces, &span);
    if (span.bytes > 0) {
        read_finish(op, next, &pieces, &span);
        return;
    }
    request_err(&op->r, request_errno(rc));
    read_free(op);
}

static void on_read_ends(struct text_wait *w, int rc)
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
        text_ask(op->h->place.text, &op->ends);
    } else if (rc != 0) {
        read_fail(op, rc);
    } else if (w->hole_end > 0 && (rc = read_hop(op, op->fetching, w->hole_end, w->edge)) != 0) {
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

/* Nothing is to be had at text position `next` any more. */
static void read_gone(struct read_op *op, int64_t next)
{
    struct handle *h = op->h;
    const struct ends *e = &h->place.text->file->ends;
    if (!op->sequential || next >= e->start_text) {
        read_fail(op, -EIO);
        return;
    }
    h->next_off = op->off;
    h->place.at = e->start_text;
    h->place.edge = op->edge = (struct text_edge){ e->start_text, e->start_offset };
    read_step(op);
}

static void read_fetch(struct read_op *op, int64_t next)
{
    struct ptext *t = op->h->place.text;
    op->fetching = next;
    if (!op->sequential && chunk_hole_end(&t->chunks, next) != next)
        read_fail(op, -EIO); /* what stood there is gone, and nothing else is to be put in its place */
    else
        fetch_text(t, next, t->map != NULL ? read_edge(op, next) : op->edge, fetch_size(op), &op->fetch);
}

static void read_step(struct read_op *op)
{
    struct handle *h = op->h;
    if (h->holds)
        handle_renew_text(h);
    struct ptext *t = h->place.text;
    struct pfile *f = t->file;
    struct pieces pieces = { .n = 0 };
    struct text_span span;
    span.bytes = 0;
    span.n = 0;
    if (!request_is_open(&op->r) || ++op->steps > READ_STEPS_MAX) {
        read_fail(op, -EIO);
        return;
    }
    if (ptext_needs_ends(t) && !f->key.topic->gone) {
        text_ask(t, &op->ends);
        return;
    }
    int64_t next = f->ends_known ? read_place(op) : -1;
    if (next < 0) {
        read_fail(op, f->key.topic->gone ? -ESTALE : -EIO);
        return;
    }
    if (op->sequential && op->edge.at < 0 && op->n_hops == 0)
        op->edge = h->place.edge;
    read_gather(op, &next, &pieces, &span);
    if (next > op->reached) {
        op->reached = next;
        op->steps = 0;
    }
    bool full = span.bytes == op->size || span.n == TEXT_PIECES_MAX || pieces.n == PIECES_MAX;
    bool at_end = ptext_at_end(t, next);
    bool gone = !at_end && !fetch_goes_on(t, next, op->edge) && (ptext_is_before_start(t, next) || !ptext_is_sure(t, next));
    if (full || (at_end && op->asked && !f->key.topic->gone) || (span.bytes > 0 && (gone || f->key.topic->gone)))
        read_finish(op, next, &pieces, &span);
    else if (f->key.topic->gone)
        read_fail(op, -ESTALE);
    else if (gone)
        read_gone(op, next);
    else if (at_end)
        text_ask(t, &op->ends);
    else
        read_fetch(op, next);
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
    op->edge = TEXT_EDGE_NONE;
    op->tails.cb = on_read_tails;
    op->ends.cb = on_read_ends;
    op->fetch.cb = on_read_fetched;
    request_begin(&op->r, h->mount, req);
    tails_ask(h->node->pfile, &op->tails);
}
