/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit: a ticket names everything appended so far; its fdatasyncs run without any lock; when they
 * have returned 0, and only then, the flush point moves (S4). A failed one is never tried again: the kernel
 * marks the pages clean and would answer 0 the second time (S8). Only when there was no descriptor to sync by
 * is nothing lost, and another round does it.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/plog_check.h"
#include "lib/store/plog_int.h"

struct flush_part {
    struct segment *seg;
    int64_t size;
};

struct plog_flush {
    struct plog *l;
    uint32_t generation;
    uint64_t dir_changes;
    bool sync_dir;
    bool sync_mark; /* the last batch has missing offsets before it */
    struct log_point point;
    int n;
    struct flush_part parts[];
};

static bool is_unflushed(const struct segment *s)
{
    return s->flushed < s->sum.size || s->sum.size == 0 || s->may_be_longer;
}

/* First segment from which on bytes may not be on disk; all before it are. Under mu. */
static int first_unflushed(const struct plog *l)
{
    int i = l->n_segs;

    while (i > 0 && is_unflushed(l->segs[i - 1]))
        i--;
    return i;
}

/* Under mu. */
static struct plog_flush *ticket_new(struct plog *l)
{
    int first = first_unflushed(l);
    int n = l->n_segs - first;
    struct plog_flush *t = xcalloc(1, sizeof *t + (size_t)n * sizeof t->parts[0]);

    t->l = l;
    t->generation = l->generation;
    t->dir_changes = l->dir_changes;
    t->sync_dir = l->dir_changes != l->dir_synced;
    t->sync_mark = l->gap_end == l->end_offset;
    t->point = plog_point(l);
    for (int i = first; i < l->n_segs; i++) {
        struct segment *s = l->segs[i];
        if (s->sum.size > 0)
            t->parts[t->n++] = (struct flush_part){ .seg = segment_ref(s), .size = s->sum.size };
    }
    return t;
}

struct plog_flush *plog_flush_begin(struct plog *l)
{
    struct plog_flush *t = NULL;

    lock_take(&l->mu);
    if (l->flushed.sum.end_offset < l->end_offset)
        t = ticket_new(l);
    lock_release(&l->mu);
    return t;
}

int plog_flush_run(struct plog_flush *t)
{
    int rc = 0;

    if (datadir_failed(t->l->dd))
        return -EROFS;
    for (int i = 0; rc == 0 && i < t->n; i++)
        rc = segfile_sync(t->parts[i].seg->log);
    int marked = rc == 0 ? plog_keep_mark(t->l) : 0;
    if (marked < 0 && marked != -ENOSPC && marked != -EDQUOT) /* else the next flush tries again */
        rc = marked;
    if (rc == 0 && (t->sync_dir || marked == 1))
        rc = io_sync_dir(t->l->io, t->l->dirfd, t->l->name);
    return rc;
}

/* Under mu. */
static void flush_done(struct plog *l, const struct plog_flush *t)
{
    for (int i = 0; i < t->n; i++) {
        struct segment *s = t->parts[i].seg;
        KINVARIANT("S4", t->parts[i].size <= s->sum.size); /* no truncation came between */
        l->flushed_bytes += MAX(t->parts[i].size - s->flushed, 0);
        s->flushed = MAX(s->flushed, t->parts[i].size);
        s->may_be_longer = false;
        if (s->flushed == s->sum.size)
            segfile_set_dirty(s->log, false);
    }
    KINVARIANT("S5", t->dir_changes <= l->dir_changes);
    l->dir_synced = MAX(l->dir_synced, t->dir_changes);
    if (t->point.sum.end_offset > l->flushed.sum.end_offset)
        l->flushed = t->point;
    KINVARIANT("S4", l->flushed.sum.end_offset <= l->end_offset);
}

/* At the end of a log only the mark tells a batch with missing offsets before it from one whose offset is damaged: it is
 * durable before anybody counts on the batch. */
static int keep_gap(struct plog *l, const struct plog_flush *t)
{
    lock_assert_held(&l->mark_mu);
    lock_take(&l->mu);
    bool cut = t->generation != l->generation || l->half_cut.seg != NULL;
    lock_release(&l->mu);
    int rc = cut ? 0 : plog_write_mark(l, &t->point);
    return cut || rc < 0 ? rc : segfile_sync(l->mark);
}

int64_t plog_flush_end(struct plog *l, struct plog_flush *t, int rc)
{
    KCHECK(t->l == l);
    lock_take(&l->mark_mu);
    if (rc == 0 && t->sync_mark)
        rc = keep_gap(l, t);
    if (rc < 0 && rc != -EMFILE && rc != -ENFILE)
        datadir_fail(l->dd, -rc, l->name);
    lock_take(&l->mu);
    bool moved = rc == 0 && t->generation == l->generation && l->half_cut.seg == NULL;
    if (moved)
        flush_done(l, t);
    struct log_point flushed = l->flushed;
    lock_release(&l->mu);
    if (moved)
        plog_disk_error(l, plog_write_mark(l, &flushed), l->name);
    lock_release(&l->mark_mu);
    for (int i = 0; i < t->n; i++)
        segment_unref(t->parts[i].seg);
    free(t);
    plog_call_done(l);
    return flushed.sum.end_offset;
}
