/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as lines, rendered from record batches into chunks, and the chunks that a mount keeps. Text positions of
 * the plain form are the broker's: they count from the first record ever; those of other forms count from where the text
 * begins (map.h). They stay what they are but for compaction, which moves what it leaves towards the log's end, as if the
 * rest had gone from the front. A chunk keeps the place it was first read at, and who goes on behind it meets a hole there: its
 * records' next offset is found at a larger position. No I/O. Loop's thread only, but for chunk_unref.
 */
#ifndef KLOG_FUSE_TEXT_H
#define KLOG_FUSE_TEXT_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "fuse/text/line_index.h"
#include "lib/base/buf.h"
#include "lib/record/iter.h"
#include "lib/view/view.h"

/* Plain bytes of one batch; more is refused as damage. */
#define TEXT_BATCH_MAX (256 * 1024 * 1024)
/* A chunk that is shorter grows by what comes after it. */
#define CHUNK_GROW_BELOW (64 * 1024)
/* Bytes of chunks that a mount keeps. */
#define TEXT_CACHE_MAX (64 * 1024 * 1024)
/* Of chunks that somebody has read through only so much is kept, so that a scan of a large file works in
 * memory that is still in the processor's cache, and leaves the chunks of others alone. */
#define TEXT_PASSED_MAX (8 * 1024 * 1024)
/* Pieces one answer is made of at most. */
#define TEXT_PIECES_MAX 256

/* How a text shows records, and which. */
struct text_form {
    enum line_form form;
    int32_t partition;
    int64_t time_from, time_to; /* only records of a time in here, in ms, time_to exclusive */
};
#define TEXT_FORM_PLAIN ((struct text_form){ LINE_PLAIN, 0, INT64_MIN, INT64_MAX })

/* Appends the text of the records in [from, limit) of the whole batches in `in`. *next is set to the offset
 * after the last batch that was read (never below from). A part of a batch at the end is left out. 0, or
 * -EBADMSG at a damaged batch: what came before it is in `out`, and *next stands at it. */
int text_render(struct record_iter *it, const struct text_form *form, struct slice in, int64_t from, int64_t limit,
                struct bytebuf *out, int64_t *next);
/* The same, and notes where each record's line is; records before `from` must have been noted, or none. */
int text_render_noted(struct record_iter *it, const struct text_form *form, struct slice in, int64_t from, int64_t limit,
                      struct bytebuf *out, struct line_index *notes, int64_t *next);
/* The same without the text: its bytes are added to *ret_bytes. */
int text_measure(struct record_iter *it, const struct text_form *form, struct slice in, int64_t from, int64_t limit,
                 int64_t *ret_bytes, int64_t *next);

/* The offset behind the whole batches in `in` that begin before limit, at most limit; *ret_bytes: what those take. Looks at
 * headers only. */
int64_t text_batches_end(struct slice in, int64_t from, int64_t limit, int64_t *ret_bytes);

/* Are offsets missing in the batches' part [from, limit)? Then compaction was there, or a part of the batches
 * is. Looks at headers only. */
bool text_has_gaps(struct slice in, int64_t from, int64_t limit);

struct chunk {
    int64_t start;                     /* text position of its first byte */
    int64_t hole_end;                  /* what follows its records is at this position; 0: at its end */
    int64_t first_offset, next_offset; /* the records in it: [first, next) */
    struct bytebuf text; /* not changed while it has other references than its list's */
    struct line_index lines; /* of printed text; else empty */
    atomic_int refs;
    struct chunk_list *list;
    bool passed;             /* see chunk_pass */
    TAILQ_ENTRY(chunk) link; /* by start */
    TAILQ_ENTRY(chunk) used; /* in the cache, the least recently used first */
};
TAILQ_HEAD(chunk_tailq, chunk);
struct chunk_list { /* of one partition; chunks never overlap */
    struct chunk_tailq chunks;
    struct chunk *hint; /* found last */
};

struct text_cache {
    struct chunk_tailq used;
    size_t bytes, bytes_max;
    struct record_iter iter; /* its scratch is reused by every rendering */
};

void text_cache_init(struct text_cache *c, size_t bytes_max);
void text_cache_done(struct text_cache *c); /* all lists must be empty */
void chunk_list_init(struct chunk_list *l);
void chunk_list_clear(struct text_cache *c, struct chunk_list *l);

static inline int64_t chunk_end(const struct chunk *k)
{
    return k->start + (int64_t)k->text.n;
}

/* Drops what reaches beyond `at`. */
void chunk_list_cut(struct text_cache *c, struct chunk_list *l, int64_t at);

/* The chunk that holds position `at`, marked as used; NULL. */
struct chunk *chunk_find(struct text_cache *c, struct chunk_list *l, int64_t at);
/* The chunk that ends exactly at `at`; NULL. */
struct chunk *chunk_before(struct chunk_list *l, int64_t at);
/* Renders what a fetch from `offset`, whose text begins at `start`, brought, and keeps it. 0 or -EBADMSG as
 * text_render; 1 when there was nothing to keep: *next then still tells how far to go on from. Bytes that are
 * there already are not kept twice. */
int chunk_add(struct text_cache *c, struct chunk_list *l, const struct text_form *form, int64_t start, int64_t offset,
              int64_t limit, struct slice in, int64_t *next);
/* Keeps text that was rendered from the records in [offset, next), and where its lines are (NULL: not noted); takes both over. What
 * is there of it already is replaced. */
void chunk_put(struct text_cache *c, struct chunk_list *l, int64_t start, int64_t offset, int64_t next, struct bytebuf *text,
               struct line_index *lines);
/* One that belongs to no list, with the caller's reference: a copy of n bytes that stand at `start`. */
struct chunk *chunk_copy(int64_t start, const uint8_t *p, size_t n);
/* What follows the chunk that ends at `at` is at `to`. False: there is no such chunk. */
bool chunk_set_hole(struct chunk_list *l, int64_t at, int64_t to);
/* Where reading goes on from `at`: there, or behind a hole. */
int64_t chunk_hole_end(struct chunk_list *l, int64_t at);
/* Text as it lies in chunks, piece by piece. */
struct text_span {
    size_t bytes;
    int n;
    struct iovec iov[TEXT_PIECES_MAX];
    struct chunk *chunks[TEXT_PIECES_MAX]; /* borrowed, unless referenced */
};
/* Adds to span the bytes from `at` on that are here without a gap, until it holds n; returns how many. */
size_t chunk_gather(struct text_cache *c, struct chunk_list *l, int64_t at, size_t n, struct text_span *span);
/* Keeps the span's chunks until each has had its chunk_unref, whatever the cache does. */
void text_span_ref(struct text_span *span);
void chunk_unref(struct chunk *k); /* any thread */

/* A reader that will not come back has read the n bytes from `at` on: chunks that end there are the next to
 * go. */
void chunk_pass(struct text_cache *c, struct chunk_list *l, int64_t at, size_t n);

#endif
