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
 *
 * Each view of a partition has texts of its own, and the same rules. Where it prints records as they are, its positions are
 * the broker's, between those of its first and its last record. Else (json, tsv, an end by time) they count from the text's
 * first record and are found by printing the records once, which map.h remembers:
 *
 *   X6  A size and an end of file are only told of records that have all been printed, up to ends that were asked for since
 *       (P2), or up to damage: nobody knows how long the lines behind it are, so such a text ends there, with EIO.
 *   X7  What stands between two marks is printed anew as it was, or not put there at all: records never change, so that it is
 *       as it was when it is as long. Else compaction or retention took something of it, and who has read up to a record goes
 *       on by its offset on a detour: positions that no rule leads to, each of which is given out once.
 */
#ifndef KLOG_FUSE_PTEXT_H
#define KLOG_FUSE_PTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fuse/partition/place.h"
#include "fuse/text/map.h"
#include "fuse/text/text.h"

struct pfile;
struct ptext;

/* Which records a text has. */
struct window {
    struct extent extent;
    int64_t from_text, to_text; /* the broker's positions of its first record and behind its last one; to_text
                                   INT64_MAX: not yet there, or there is no last one; not used where a map is */
    bool ahead;                 /* the log has not come to its first record: it is empty, and from_text not known */
    int64_t asked_ns;           /* of ends of then; 0: not known */
};

/* A view of a partition: what the paths and open files have in common that show it so. */
struct lens {
    struct pfile *file;
    struct view view; /* only what says which records, and how */
    int refs;         /* of the plain one: its file's */
    struct window window;      /* what a look-up is led to, as last asked for; of a RANGE only */
    struct ptext *text;        /* and its text; owned reference; NULL: to be made */
    int readers;               /* open files that read by any of its texts */
    bool appended_to;          /* the last that was opened was to append */
    int held;                  /* texts whose base is fixed, */
    int64_t held_from;         /* and the base of the first that was while there was no other (X4) */
    LIST_ENTRY(lens) link;     /* file->lenses; not the plain one */
};

struct ptext {
    struct pfile *file;
    struct lens *lens; /* who has a reference on this has one on it too */
    struct text_form form;
    struct window window;  /* a RANGE's, of when the text was begun */
    int window_moves;      /* file->moves when the window's positions were asked for */
    struct text_map *map;  /* owned; NULL: its positions are the broker's */
    struct map_run *run;   /* that prints records (printed.c); NULL: none is on its way */
    int map_age;           /* another one: the map was begun anew or cut since */
    int64_t lost_offset, lost_size; /* with a map: the log lost its tail from here on, when the text had this size, */
    bool lost;                      /* and it is not known yet at which position that is */
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
    int64_t detours; /* bytes of them that were given out */
    struct chunk_list chunks;
    LIST_HEAD(, text_place) places; /* of those who read by it */
    LIST_HEAD(, fetch) fetches; /* on their way */
    LIST_HEAD(, reprint) reprints; /* and these, with a map */
    LIST_ENTRY(ptext) link;     /* file->texts */
};

/* ---- lenses ---- */
/* Found or made, with a reference. */
struct lens *lens_get(struct pfile *f, const struct view *v);
struct lens *lens_ref(struct lens *l);
void lens_unref(struct lens *l); /* NULL is fine */
static inline bool lens_has_range(const struct lens *l)
{
    return (l->view.parts & VIEW_RANGE) != 0;
}
bool lens_is_plain(const struct lens *l);
/* What its inode numbers are made of besides the path (X4). */
int64_t lens_ino_text(const struct lens *l);

/* ---- texts ---- */
/* The text that a look-up is led to; borrowed. */
struct ptext *ptext_now(struct lens *l);
/* One of its own, for an open file that need not share its place; with a reference. */
struct ptext *ptext_alone(struct lens *l);
struct ptext *ptext_ref(struct ptext *t);
void ptext_unref(struct ptext *t); /* NULL is fine */
/* An open file that reads by it came or went. */
void ptext_opened(struct ptext *t);
void ptext_closed(struct ptext *t);
/* Are the ends, or the window, too old to fix the base by? It is fixed by ends that were asked for after the file was opened.
 * Then text_ask() is to be called first. */
bool ptext_needs_ends(const struct ptext *t);
/* Text position of byte 0, and the file's size as far as records are printed; ptext_needs_ends is false. */
int64_t ptext_base(struct ptext *t);
int64_t ptext_size(struct ptext *t);
/* Nothing stands at text position `at` or behind it, by the ends that are known (X6). */
bool ptext_at_end(const struct ptext *t, int64_t at);
/* And nothing ever will: the window ends there. */
bool ptext_is_over(const struct ptext *t, int64_t at);
/* The offset before which its records end, by the ends that are known. */
int64_t ptext_limit(const struct ptext *t);
/* Does the log begin behind text position `at`? With a map nobody says so but a fetch, by a hole. */
bool ptext_is_before_start(const struct ptext *t, int64_t at);
/* Have all records been printed that are there? */
bool ptext_is_printed(const struct ptext *t);
/* A text position of which nobody but those who are led there knows; room for n bytes. */
int64_t ptext_detour(struct ptext *t, size_t n);
static inline bool ptext_is_detour(int64_t at)
{
    return at >= INT64_MAX / 2;
}
/* Text position of a position of the file; -1: it was lost. */
int64_t ptext_place(struct ptext *t, int64_t position);
/* Does the log still have at text position `at` what it had when the text was begun? */
bool ptext_is_sure(const struct ptext *t, int64_t at);

/* ---- asking (text_ask.c) ---- */
struct text_wait {
    void (*cb)(struct text_wait *w, int rc);
    bool printed; /* in cb all records have been printed, so that ptext_size() is exact (X6) */
    /* private */
    struct text_ask *ask;
    LIST_ENTRY(text_wait) link; /* of the run that prints */
    int64_t at;
    bool counts;
};
/* What a path of the lens leads to now: its ends, and a RANGE's window. cb as ends_ask's; never before this returns. */
void lens_ask(struct lens *l, struct text_wait *w);
/* The same for a text: afterwards ptext_needs_ends is false unless rc says why. */
void text_ask(struct ptext *t, struct text_wait *w);

/* ---- printing (printed.c); for texts with a map ---- */
/* Prints on from the front until there is text behind position `at`, or, where w->counts, until all is printed. rc: 0,
 * -EBADMSG at damage unless w->counts, -ERANGE: the ends are old, ... */
void print_on(struct ptext *t, struct text_wait *w);

/* ---- news of the log; its ends are still the old ones ---- */
/* Compaction moved what stands before `end_text`. */
void ptexts_moved(struct pfile *f, int64_t end_text);
/* What stood behind text position `text` is gone; the log goes on there with other records, from `offset`. */
void ptexts_lost(struct pfile *f, int64_t text, int64_t offset);
/* The first record of a text that was ahead of the log has come, to text position `text`. */
void ptext_reached(struct ptext *t, int64_t text);
/* Where text t goes on after that, at text position `text`. */
void ptext_lost(struct ptext *t, int64_t text, int64_t offset);
/* All positions are greater by `by` than they were. */
void ptexts_shift(struct pfile *f, int64_t by);

#endif
