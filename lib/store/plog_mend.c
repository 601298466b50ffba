/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting go of damage whose records others have (S10): the log is cut as in a truncation (S11), where good batches end that can
 * be read. Where the disk refuses to read, or a file is missing, the whole segment goes unread; where the front of the log
 * is what is missing, everything goes, and it is as a new one. What is cut is not kept: nobody asks for this before another
 * replica leads that has it.
 */
#include <errno.h>
#include <limits.h>

#include "lib/base/check.h"
#include "lib/store/clean_int.h"
#include "lib/store/plog_check.h"
#include "lib/store/recover.h"

/* ---- an empty log at offset 0 ---- */

/* Nothing is claimed of it any more. Names of markers and snapshots go before the checkpoint that speaks of none. */
static int drop_claims(struct plog *l, const struct log_point *begin)
{
    struct recovery r = { .l = l };
    const struct checkpoint none = { .identity = l->identity, .flushed = *begin, .producers_empty = true };
    char path[PATH_MAX];
    int rc = listing_read(l->io, l->dirfd, l->name, &r.ls);

    if (rc == 0)
        rc = recovery_drop_snapshots(&r, -1);
    for (int i = 0; rc == 0 && i < r.ls.n_starts; i++) {
        segment_path(path, sizeof path, l->name, r.ls.starts[i], ".start");
        rc = l->io->unlinkat(l->io, l->dirfd, path, 0);
    }
    listing_done(&r.ls);
    if (rc == 0)
        rc = plog_write_mark(l, begin);
    if (rc == 0)
        rc = segfile_sync(l->mark);
    if (rc == 0)
        rc = plog_save_checkpoint(l, &none);
    return rc;
}

/* The last first, as in every cut. */
static int drop_files(struct plog *l)
{
    int rc = 0;

    lock_take(&l->fix_mu);
    for (int i = l->n_segs - 1; rc == 0 && i >= 0; i--)
        rc = segment_unlink(l->segs[i]);
    lock_release(&l->fix_mu);
    return rc < 0 ? rc : io_sync_dir(l->io, l->dirfd, l->name);
}

static void forget_everything(struct plog *l, struct segment *fresh, const struct log_point *begin)
{
    lock_assert_held(&l->append_mu);
    lock_take(&l->mu);
    while (l->n_segs > 0) {
        struct segment *s = l->segs[--l->n_segs];
        s->gone = true;
        segment_unref(s);
    }
    plog_push_segment(l, fresh);
    l->start_offset = l->end_offset = 0;
    l->size_bytes = 0;
    l->active_since_ms = -1;
    l->flushed = *begin;
    l->generation++;
    l->n_borders = l->n_read_ends = 0;
    l->gap_end = -1;
    epochs_truncate_end(&l->epochs, 0);
    l->epochs_dirty = true;
    l->epoch_is_new = false;
    producers_clear(&l->producers);
    plog_note_border(l);
    lock_release(&l->mu);
    l->written_back = 0;
    l->start_marker = -1;
    l->snapshot_offset = 0;
    l->snapshot_empty = true;
    l->half_cut.seg = NULL;
    plog_drop_pending(l);
}

static int begin_anew_locked(struct plog *l)
{
    const struct log_point begin = { .sum = segment_sum_empty(0) };
    struct segment *fresh = segment_new(l->files, l->name, l->identity, 0);
    int rc = drop_claims(l, &begin);

    fresh->known = true;
    if (rc == 0)
        rc = drop_files(l);
    if (rc == 0)
        rc = plog_create_files(l, fresh);
    if (rc == 0)
        rc = io_sync_dir(l->io, l->dirfd, l->name);
    if (rc == 0)
        forget_everything(l, fresh, &begin);
    else
        segment_unref(fresh);
    return rc < 0 ? rc : plog_write_epochs(l);
}

static int begin_anew(struct plog *l)
{
    int rc = clean_settle_locked(l);

    lock_take(&l->append_mu);
    lock_take(&l->mark_mu);
    if (rc == 0)
        rc = begin_anew_locked(l);
    lock_release(&l->mark_mu);
    lock_release(&l->append_mu);
    return rc;
}

/* ---- all of it ---- */

static bool is_inside(struct plog *l, int64_t offset)
{
    lock_take(&l->mu);
    bool inside = offset > l->start_offset && offset < l->end_offset;
    lock_release(&l->mu);
    return inside;
}

static bool is_damage(int rc)
{
    return rc == -EBADMSG || rc == -EIO || rc == -ENOENT || rc == -ENODATA;
}

int plog_mend(struct plog *l, int64_t offset)
{
    lock_take(&l->slow_mu);
    int rc = is_inside(l, offset) ? plog_truncate_by(l, offset, CUT_BY_SCAN) : -ERANGE;
    if (is_damage(rc))
        rc = plog_truncate_by(l, offset, CUT_BEFORE_SEGMENT);
    if (is_damage(rc) || rc == -ERANGE)
        rc = begin_anew(l);
    lock_release(&l->slow_mu);
    plog_call_done(l);
    return plog_disk_error(l, rc, l->name);
}
