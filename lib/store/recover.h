/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of opening a log, shared by recover*.c. No lock: nobody else knows the log yet. Blocks. */
#ifndef KLOG_STORE_RECOVER_H
#define KLOG_STORE_RECOVER_H

#include "lib/store/plog_int.h"

struct recovery {
    struct plog *l;
    struct plog_recovery *rec; /* the report */
    struct listing ls;
    struct checkpoint ckpt;
    bool have_ckpt;
    bool have_epochs; /* from their file */
    bool had_dir;     /* the directory was there before */
    int64_t now_ms;

    int64_t clean_anchor, clean_anchor_text; /* clean_recover_files */

    int first;              /* segments before it are taken as they are */
    int64_t first_position; /* where the scan of it began */
    int n_before;           /* segments there were before cutting */

    bool flush_known;       /* the flush point of the moment of the stop is known (partition.flushed) */
    int64_t flushed;        /* everything below had been on disk; at least this far when it is not known */
    struct flush_mark mark; /* of what is known; offset -1: nothing */
    bool changed;           /* what was found is not what the checkpoint says */

    /* what recovery_load_producers works out, for the caller to take over */
    int64_t end_offset;     /* of the log, or where it is about to be cut */
    struct segment *end_segment; /* NULL, or the one that will be cut, and where: its file may be already */
    int64_t end_position;
    struct producers producers;
    int64_t snapshot_offset;
    bool snapshot_empty;
};

/* Adds to the report's one line of notes. */
void recovery_note(struct recovery *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Records from that offset on are damaged or missing. */
void recovery_note_hole(struct recovery *r, int64_t from);
/* Offsets in [from, to) are in no segment. */
void recovery_note_gap(struct recovery *r, int64_t from, int64_t to);

/* recover_scan.c: walks the log from the flush point, cuts what is torn, rewrites the rest (S9, S10). */
int recovery_scan(struct recovery *r);
/* The checkpoint counts entries of the segment's .text: that is the one which is there. */
bool recovery_knows_text(struct recovery *r, struct segment *s);
/* recover_sealed.c: what the scan did not walk, from the front to segment r->first. */
int recovery_look_at_sealed(struct recovery *r);
/* Another file in the place of a .log of which nothing is known yet; sum: the witness (NULL: the segment's summary). */
bool recovery_is_foreign(struct recovery *r, struct segment *s, const struct segment_sum *sum);
int recovery_keep_foreign(struct recovery *r, struct segment *s); /* of a sealed one */
/* recover_cut.c: ends the log at a position of segment i, keeping what is cut off in *.cut files. */
int recovery_cut(struct recovery *r, int i, int64_t position);
/* recover_state.c: producers and leader epochs, from their files and from the log. The epochs' file is read
 * before the scan, which adds what it sees; without the file they are rebuilt after it. */
int recovery_read_epochs(struct recovery *r);
int recovery_settle_epochs(struct recovery *r);
int recovery_load_producers(struct recovery *r);
/* Removes the snapshots of offsets above `limit`, durably. */
int recovery_drop_snapshots(struct recovery *r, int64_t limit);

#endif
