/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How files read a partition by position: where their byte 0 is in the partition's text, and the chunks of it that are
 * here. Loop's thread only.
 *
 * A path leads to the text that begins where the log begins now; files that are open keep the one they were opened
 * with. Rules:
 *   X1  While an open file reads by a text its base does not move, no position changes its content and the size never
 *       shrinks. Files that only append hold nothing.
 *   X2  Once the log begins elsewhere than at a base that is held, was moved about by compaction, or has lost its tail,
 *       look-ups are led to a new text; nobody who opens a file sees an old one.
 *   X3  Bytes that the log no longer has are never made up: a positioned read of them is EIO, reading on goes on behind
 *       them.
 *   X4  st_ino stays while any text of the partition is held, and is another one after its base has moved and nobody
 *       holds one, so that who remembers an inode and a position does not mistake what is there for what was.
 *   X5  The kernel keeps no name of a partition while a text of it is held, and looks it up each time. It keeps one for a
 *       second where nobody reads, for those who append; the first who then opens the file to read is told ESTALE once,
 *       so that the kernel looks the name up anew and forgets it from then on.
 */
#ifndef KLOG_FUSE_PTEXT_H
#define KLOG_FUSE_PTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fuse/text/text.h"

struct pfile;

/* The record at `offset` begins at text position `at`; at -1: not known. */
struct text_edge {
    int64_t at, offset;
};
#define TEXT_EDGE_NONE ((struct text_edge){ -1, -1 })

/* Positions [from, to) of an open file lie at text position `at` and behind it. */
struct text_jump {
    int64_t from, to, at;
};

/* Where somebody reads. Text positions in it move with the log's. */
struct text_place {
    struct ptext *text;      /* owned reference; NULL: none yet */
    int64_t at;              /* where to go on; -1: not yet begun */
    struct text_edge edge;   /* what is known of that place */
    struct text_jump *jumps; /* where what was read lies elsewhere than ptext_place() says, by position */
    size_t n_jumps;
    LIST_ENTRY(text_place) link; /* text->places */
};

struct ptext {
    struct pfile *file; /* who has a reference on this has one on it too */
    int refs;
    int readers;       /* open files that read by it */
    int64_t opened_ns; /* when the first of them was opened */
    bool based;        /* base is fixed (X1) */
    int64_t base;      /* text position of byte 0 */
    int moves;         /* file->moves when its chunks were begun; another one: positions lie otherwise by now, */
    int64_t sure_from; /* but for those from here on */
    /* The log has lost its tail: file positions below whole_below lie where they did, those from on_position on at
     * text position on_text and behind it, and what was between is gone. on_position 0: nothing was lost. */
    int64_t whole_below, on_position, on_text;
    struct chunk_list chunks;
    LIST_HEAD(, text_place) places; /* of those who read by it */
    LIST_HEAD(, fetch) fetches; /* on their way */
    LIST_ENTRY(ptext) link;     /* file->texts */
};

/* The text that a look-up is led to; borrowed. */
struct ptext *ptext_now(struct pfile *f);
struct ptext *ptext_ref(struct ptext *t);
void ptext_unref(struct ptext *t); /* NULL is fine */
/* An open file that reads by it came or went. */
void ptext_opened(struct ptext *t);
void ptext_closed(struct ptext *t);
/* Are the ends too old to fix the base by? It is fixed by ends that were asked for after the file was opened. */
bool ptext_needs_ends(const struct ptext *t);
/* Text position of byte 0, and the file's size; the ends must be known. */
int64_t ptext_base(struct ptext *t);
int64_t ptext_size(struct ptext *t);
/* Text position of a position of the file; -1: it was lost. */
int64_t ptext_place(struct ptext *t, int64_t position);
/* Does the log still have at text position `at` what it had when the text was begun? */
bool ptext_is_sure(const struct ptext *t, int64_t at);

/* From now on the place is in text t. */
void place_lead(struct text_place *p, struct ptext *t);
void place_done(struct text_place *p);

/* ---- news of the log; its ends are still the old ones ---- */
/* Compaction moved what stands before `end_text`. */
void ptexts_moved(struct pfile *f, int64_t end_text);
/* What stood behind text position `text` is gone; the log goes on there with other records, from `offset`. */
void ptexts_lost(struct pfile *f, int64_t text, int64_t offset);
/* All positions are greater by `by` than they were. */
void ptexts_shift(struct pfile *f, int64_t by);

#endif
