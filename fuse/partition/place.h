/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where somebody reads in a text, and what he needs to go on there when it was evicted and the log was compacted or cut
 * meanwhile: which record comes next, or the rest of the line that he has begun. Loop's thread.
 */
#ifndef KLOG_FUSE_PLACE_H
#define KLOG_FUSE_PLACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct ptext;
struct chunk;
struct text_span;

/* The record at `offset` begins at text position `at`; at -1: not known. */
struct text_edge {
    int64_t at, offset;
};
#define TEXT_EDGE_NONE ((struct text_edge){ -1, -1 })

/* Positions [from, to) of an open file lie at text position `at` and behind it. */
struct text_jump {
    int64_t from, to, at;
};

/* Text positions in it move with the log's. */
struct text_place {
    struct ptext *text;      /* owned reference; NULL: none yet */
    int64_t at;              /* where to go on; -1: not yet begun */
    struct text_edge edge;   /* what is known of that place; in a text with a map the record that it is in, or that comes there */
    struct chunk *rest;      /* owned reference; there, too: what follows of the line that was begun; NULL: nothing */
    int64_t rest_next;       /* the record after that one */
    struct text_jump *jumps; /* where what was read lies elsewhere than ptext_place() says, by position */
    size_t n_jumps;
    LIST_ENTRY(text_place) link; /* text->places */
};

/* From now on the place is in text t. */
void place_lead(struct text_place *p, struct ptext *t);
void place_done(struct text_place *p);
/* Reading goes on at text position `at`. known: what the caller knows of that position, where the chunks may not. */
void place_went(struct text_place *p, int64_t at, struct text_edge known);
/* The record at position `at`, where the chunk before it or the rest of a line that ends there tells; else TEXT_EDGE_NONE. For
 * texts with a map. */
struct text_edge place_edge(const struct text_place *p, int64_t at);
/* Adds to the span what is there of the begun line from `at` on; returns how many bytes. */
size_t place_rest(const struct text_place *p, int64_t at, size_t n, struct text_span *span);
/* The log lost what stood behind `text`, and goes on there with the record at `offset`. */
void place_lost(struct text_place *p, int64_t text, int64_t offset);
/* All positions are greater by `by` than they were. */
void place_shift(struct text_place *p, int64_t by);

#endif
