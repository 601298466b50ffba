/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a cleaning pass; inside lib/store/clean*.c and recover.c only. */
#ifndef KLOG_STORE_CLEAN_INT_H
#define KLOG_STORE_CLEAN_INT_H

#include "lib/store/clean.h"
#include "lib/store/clean_map.h"
#include "lib/store/plog_int.h"

/* ---- clean_range.c: what may be cleaned ---- */
struct clean_range {
    struct segment **segs; /* references: the sealed ones from the front of the log on, loaded */
    int64_t *ends;         /* offset behind each: where the next one begins */
    int n;
    int dirty;           /* the first that has dirty offsets; n when none has */
    int64_t first_dirty; /* offset */
    int64_t end;         /* offset: behind the last one; first_dirty at least */
};
/* Segments that lie wholly below limit and on disk; none with dirty records younger than min_lag_ms. */
int clean_range_take(struct plog *l, int64_t first_dirty, int64_t limit, int64_t min_lag_ms, int64_t now_ms,
                     struct clean_range *ret);
void clean_range_done(struct clean_range *r);

/* ---- clean_txns.c: which transactions were aborted ---- */
struct clean_txn {
    int64_t producer, first, last; /* data in [first, last] of that producer was aborted */
};
struct clean_txns {
    struct clean_txn *aborted; /* by producer, then first */
    int n, cap;
    struct clean_txn *open; /* while scanning: no marker seen yet */
    int n_open, cap_open;
};
int clean_txns_scan(struct clean_txns *t, const struct clean_range *r);
bool clean_txns_aborted(const struct clean_txns *t, const struct batch_header *h);
void clean_txns_done(struct clean_txns *t);

/* ---- a pass ---- */
struct clean_pass {
    struct plog *l;
    const struct clean_options *o;
    struct clean_result *ret;
    struct plog_config cfg;
    struct clean_range range;
    struct segment *anchor; /* a reference: the first segment behind the range, which stays as it is */
    struct clean_txns txns;
    struct clean_map *map;
    uint32_t generation;     /* of the log when the pass began */
    int64_t end;             /* of the records below, the map (or an earlier pass) tells which are newest */
    int64_t *last_of_active; /* last offsets of the last batches of the producers that are known, rising */
    int n_active;
};
int clean_progress(struct clean_pass *p, int64_t bytes); /* go_on: 0 or -ECANCELED */

/* ---- clean_filter.c: one group of segments into one new one ---- */
/* The new one's files have names of their own and are pinned; NULL when nothing would change. */
int clean_group(struct clean_pass *p, int first, int n, struct segment **ret);
/* Drops the reference, and the files unless somebody may still want them. */
void clean_discard(struct segment *fresh, bool files);
#define CLEANED_SUFFIX ".cleaned"
static inline struct segfile *clean_file_of(struct segment *s, enum segment_file which)
{
    struct segfile *const all[SEGMENT_FILES] = { s->log, s->index.file, s->time.file, s->text.file };
    return all[which];
}

/* ---- clean_swap.c: the exchange, and the text positions behind it ---- */
/* Takes `fresh` over. 0, -ECANCELED when the segments are no longer what they were, -errno. */
int clean_swap(struct clean_pass *p, int first, int n, struct segment *fresh);
/* Writes moved text positions to the headers, and ends the pass on disk. Also before another one begins: what
 * the last could not bring to an end, for want of room, still needs its files. */
int clean_settle(struct plog *l);
int clean_settle_locked(struct plog *l); /* under slow_mu */
/* Nothing that is on disk about the log points into the range. Under no lock. */
int clean_raise_claims(struct clean_pass *p);

/* ---- clean_manifest.c ---- */
struct clean_manifest {
    int64_t anchor;      /* base of the first segment that the pass does not touch */
    int64_t anchor_text; /* where its text begins */
    int64_t base;        /* of the exchange under way: the new segment; -1: none */
    int64_t size;        /* bytes of the new .log */
    const int64_t *olds; /* bases of those it replaces */
    uint32_t n_olds;
};
int clean_manifest_write(struct plog *l, const struct clean_manifest *m);
int clean_manifest_remove(struct plog *l);
/* At the start, before the directory is looked at: finishes the exchange that was under way, or undoes what
 * had not got so far. *ret_anchor: -1, or text positions below it have to be settled. *ret_problem: NULL, or why the
 * manifest there was counts for nothing; it is removed. */
int clean_recover_files(struct plog *l, int64_t *ret_anchor, int64_t *ret_anchor_text, const char **ret_problem);
/* At the start, when the segments are known: settles the text positions below the anchor. */
int clean_recover_text(struct plog *l, int64_t anchor, int64_t anchor_text);

#endif
