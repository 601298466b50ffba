/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a log may be cleaned now: sealed segments that are flushed and below `limit`, minus those with records younger
 * than min.compaction.lag.ms. Takes references, so that retention may go on meanwhile. Also what the choice among logs goes
 * by: clean and dirty bytes, and how old the oldest dirty record is. Any thread; reads headers of segments that nobody has
 * asked about yet.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/clean_int.h"

/* References to the sealed segments that end at or below `bound`. */
static void take_segments(struct plog *l, int64_t bound, struct clean_range *ret)
{
    lock_take(&l->mu);
    bound = MIN(bound, l->flushed.sum.end_offset);
    ret->segs = xcalloc((size_t)l->n_segs, sizeof(struct segment *));
    ret->ends = xcalloc((size_t)l->n_segs, sizeof *ret->ends);
    for (int i = 0; i + 1 < l->n_segs && l->segs[i + 1]->base <= bound; i++) {
        ret->segs[ret->n] = segment_ref(l->segs[i]);
        ret->ends[ret->n++] = l->segs[i + 1]->base;
    }
    ret->first_dirty = MAX(ret->first_dirty, MAX(l->start_offset, l->segs[0]->base));
    lock_release(&l->mu);
}

static void drop_from(struct clean_range *r, int n)
{
    while (r->n > n)
        segment_unref(r->segs[--r->n]);
}

/* Only what is dirty is loaded: the rest is, once a pass needs it. */
static int find_dirty(struct plog *l, int64_t min_lag_ms, int64_t now_ms, struct clean_range *r)
{
    for (r->dirty = 0; r->dirty < r->n && r->ends[r->dirty] <= r->first_dirty; r->dirty++) {
    }
    for (int i = r->dirty; i < r->n; i++) {
        int rc = min_lag_ms > 0 || i == r->dirty ? plog_load_segment(l, r->segs[i]) : 0;
        if (rc < 0)
            return rc;
        lock_take(&l->mu);
        int64_t newest = r->segs[i]->sum.max_timestamp;
        lock_release(&l->mu);
        if (min_lag_ms > 0 && newest > now_ms - min_lag_ms)
            drop_from(r, i);
    }
    r->end = r->dirty < r->n ? r->ends[r->n - 1] : r->first_dirty;
    return 0;
}

int clean_range_take(struct plog *l, int64_t first_dirty, int64_t limit, int64_t min_lag_ms, int64_t now_ms,
                     struct clean_range *ret)
{
    *ret = (struct clean_range){ .first_dirty = first_dirty };
    take_segments(l, limit, ret);
    /* A log that was cut has records of which nothing is known. */
    if (ret->first_dirty > limit)
        ret->first_dirty = limit;
    int rc = find_dirty(l, min_lag_ms, now_ms, ret);
    if (rc < 0)
        clean_range_done(ret);
    return rc;
}

void clean_range_done(struct clean_range *r)
{
    drop_from(r, 0);
    free(r->segs);
    free(r->ends);
    *r = (struct clean_range){ 0 };
}

int plog_clean_look(struct plog *l, int64_t first_dirty, int64_t limit, int64_t min_lag_ms, int64_t now_ms,
                    struct clean_look *ret)
{
    struct clean_range r;
    struct batch_header h;
    int rc = clean_range_take(l, first_dirty, limit, min_lag_ms, now_ms, &r);

    if (rc < 0)
        return rc;
    *ret = (struct clean_look){ .first_dirty = r.first_dirty, .end = r.end, .oldest_ms = -1 };
    lock_take(&l->mu);
    for (int i = 0; i < r.n; i++)
        *(i < r.dirty ? &ret->clean_bytes : &ret->dirty_bytes) += r.segs[i]->sum.size;
    lock_release(&l->mu);
    if (r.dirty < r.n && plog_header_at(l, r.segs[r.dirty], 0, r.segs[r.dirty]->sum.size, &h) == 0)
        ret->oldest_ms = h.max_timestamp;
    clean_range_done(&r);
    return 0;
}

int plog_roll_if_older(struct plog *l, int64_t age_ms, int64_t now_ms)
{
    int rc = 0;

    lock_take(&l->append_mu);
    lock_take(&l->mu);
    bool due =
        plog_active(l)->sum.size > 0 && l->active_since_ms >= 0 && now_ms - l->active_since_ms > age_ms;
    lock_release(&l->mu);
    if (due && !datadir_failed(l->dd) && l->half_cut.seg == NULL)
        rc = plog_disk_error(l, plog_roll(l, l->end_offset), l->name);
    else
        due = false;
    lock_release(&l->append_mu);
    return rc < 0 ? rc : due;
}
