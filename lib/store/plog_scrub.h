/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a log for nothing but its checksums (S10), a piece at a time; nothing is held between two pieces, so that the log may
 * be cut, compacted, deleted meanwhile. Files are opened by their names, whatever descriptors the log has: one that was
 * removed is damage, too. One thread a cursor.
 */
#ifndef KLOG_STORE_PLOG_SCRUB_H
#define KLOG_STORE_PLOG_SCRUB_H

#include "lib/store/plog.h"

struct scrub_cursor { /* where it has come to; begins with scrub_begin() */
    int64_t segment;        /* base offset; -1: at the front of the one that has next_offset */
    int64_t at;             /* position in it */
    int64_t next_offset, to;
    int32_t epoch;
    bool after_damage, done;
    int64_t start_offset;   /* of the log, when it was last looked at, */
    uint32_t generation, swaps; /* and what had been cut and exchanged */
};

struct scrub_found {
    int64_t bytes;     /* that were read */
    int64_t damage_at; /* -1: none; the first record damaged or missing there, */
    int eno;           /* EBADMSG, or what the disk said */
    int64_t segment, at, n;
};

/* Whole segments from the one that holds `from` on, up to what is there now, or to the end of that segment only. */
void scrub_begin(struct plog *l, struct scrub_cursor *c, int64_t from, bool one_segment);
/* Reads about max_bytes, to the next damage or to the end (c->done). 0, or -errno when nothing can be said now: again later.
 * Blocks. */
int plog_scrub(struct plog *l, struct scrub_cursor *c, int64_t max_bytes, struct scrub_found *ret);

#endif
