/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which record stands where in a piece of printed text: two or three bytes a record. A reader that stops anywhere in the piece
 * is so known by the record it stops in, and can be led on by that when the piece is gone and compaction has moved what is
 * left. Pure; loop's thread.
 */
#ifndef KLOG_FUSE_LINE_INDEX_H
#define KLOG_FUSE_LINE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct line_cursor {
    size_t pos;     /* in the index's bytes */
    int64_t at;     /* bytes of text before it */
    int64_t offset; /* all records before it are of lower offsets */
};

struct line_index {
    struct bytebuf b; /* for each record: offsets left out before it, bytes of its line; a line of 0 bytes leaves out only */
    int64_t first;    /* offset where it begins */
    int64_t next;     /* offset after the last record */
    struct line_cursor hint; /* found last: readers move forward */
};

/* A record's line: bytes [begin, end) of the text. */
struct line_place {
    int64_t begin, end;
    int64_t offset;
};

void line_index_begin(struct line_index *x, int64_t offset);
void line_index_done(struct line_index *x);
/* The next record; offset >= x->next, bytes > 0. */
void line_index_add(struct line_index *x, int64_t offset, size_t bytes);
/* All records of `more`, which begins at x->next or behind it, after those of x; `more` is done afterwards. */
void line_index_join(struct line_index *x, struct line_index *more);
/* The record whose line holds byte `at` of the text. False: the text ends at or before it. */
bool line_index_find(struct line_index *x, int64_t at, struct line_place *ret);

#endif
