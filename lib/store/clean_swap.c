/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchange of a group of segments for the one that was made of them (S13): the new files are durable,
 * then the manifest, then the log has the new segment, then the names: four renames, the directory, the old
 * files that have other names. Who still reads an old segment goes on with its descriptors, or is told to
 * look again (swaps, gone).
 *
 * Text positions: the view has no holes. What follows the group keeps its positions, so what precedes it
 * moves up by what was taken out; as far as a reader is concerned that much went from the front.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/clean_int.h"

/* Where the group stands in the log, -1: it is no longer whole. Under mu. */
static int find_group(const struct clean_pass *p, struct segment *const *olds, int n)
{
    const struct plog *l = p->l;
    int at = plog_find_segment(l, olds[0]->base);

    if (at + n >= l->n_segs || l->generation != p->generation)
        return -1;
    for (int i = 0; i < n; i++) {
        if (l->segs[at + i] != olds[i])
            return -1;
    }
    return at;
}

/* Under append_mu, fix_mu and mu. */
static void exchange(struct plog *l, int at, int n, struct segment *s)
{
    const struct segment *last = l->segs[at + n - 1];
    int64_t text_end = last->text_base + last->sum.text_bytes;
    int64_t taken = text_end - l->segs[at]->text_base - s->sum.text_bytes;

    KINVARIANT("S13", s->base == l->segs[at]->base && s->sum.end_offset == plog_segment_end(l, at + n - 1));
    s->text_base = MAX(text_end - s->sum.text_bytes, 0);
    for (int i = 0; i < at; i++)
        l->segs[i]->text_base += MAX(taken, 0);
    for (int i = at; i < at + n; i++) {
        l->segs[i]->gone = true;
        l->size_bytes -= l->segs[i]->sum.size;
        for (int k = 0; k < SEGMENT_FILES; k++)
            segfile_retire(clean_file_of(l->segs[i], (enum segment_file)k));
        segment_unref(l->segs[i]); /* the pass has another reference */
    }
    l->size_bytes += s->sum.size;
    l->segs[at] = s;
    memmove(l->segs + at + 1, l->segs + at + n, (size_t)(l->n_segs - at - n) * sizeof(struct segment *));
    l->n_segs -= n - 1;
    l->swaps++;
    l->n_borders = l->n_read_ends = 0;
    plog_note_border(l);
}

static int rename_file(struct plog *l, const char *from, const char *to)
{
    return l->io->renameat(l->io, l->dirfd, from, l->dirfd, to);
}

/* The segment under its own names, holding the open files of the one that was built. */
static struct segment *take_over(struct plog *l, struct segment *fresh)
{
    struct segment *s = segment_new(l->files, l->name, l->identity, fresh->base);
    struct segment_sum sum = segment_sum(fresh);

    segment_reset(s, &sum);
    s->flushed = sum.size;
    s->text_base = fresh->text_base;
    s->known = true;
    for (int i = 0; i < SEGMENT_FILES; i++)
        segfile_adopt(clean_file_of(s, (enum segment_file)i), clean_file_of(fresh, (enum segment_file)i));
    return s;
}

static int rename_all(struct plog *l, struct segment *fresh, struct segment *s)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < SEGMENT_FILES; i++) {
        enum segment_file which = (enum segment_file)i;
        rc = rename_file(l, segfile_path(clean_file_of(fresh, which)), segfile_path(clean_file_of(s, which)));
    }
    return rc;
}

/* Old segments whose names the new one does not have. */
static int unlink_others(struct segment *const *olds, int n)
{
    int rc = 0;

    for (int i = 1; rc == 0 && i < n; i++)
        rc = segment_unlink(olds[i]);
    return rc;
}

static int write_manifest(struct clean_pass *p, struct segment *const *olds, int n, int64_t size)
{
    CLEANUP(freep) int64_t *bases = xcalloc((size_t)n + 1, sizeof *bases);
    struct clean_manifest m = {
        .base = n > 0 ? olds[0]->base : -1, .olds = bases, .n_olds = (uint32_t)n, .size = size
    };

    for (int i = 0; i < n; i++)
        bases[i] = olds[i]->base;
    m.anchor = p->anchor->base;
    lock_take(&p->l->mu);
    m.anchor_text = p->anchor->text_base;
    lock_release(&p->l->mu);
    return clean_manifest_write(p->l, &m);
}

/* From here on the log has the new segment, and its files must get its names: a shortage that passes may not stop it on
 * the way, so the directory has been opened before (dir). Only the last manifest may wait: what it would end is done,
 * and a start, or the next pass, finds nothing left to do and removes it. Under slow_mu. */
static int commit(struct clean_pass *p, int at, struct segment *const *olds, int n, struct segment *fresh, int dir)
{
    struct plog *l = p->l;
    struct segment *s = take_over(l, fresh);

    lock_take(&l->append_mu);
    lock_take(&l->fix_mu);
    lock_take(&l->mu);
    exchange(l, at, n, segment_ref(s));
    lock_release(&l->mu);
    lock_release(&l->append_mu);
    int rc = rename_all(l, fresh, s);
    lock_release(&l->fix_mu);
    if (rc == 0)
        rc = l->io->fsync(l->io, dir);
    if (rc == 0)
        rc = unlink_others(olds, n);
    if (rc == 0)
        rc = l->io->fsync(l->io, dir);
    if (rc < 0)
        datadir_fail(l->dd, -rc, l->name); /* what is in memory is not what the names say */
    else /* nothing of this is to be done again at the next start */
        rc = plog_disk_error(l, write_manifest(p, NULL, 0, 0), l->name);
    for (int i = 0; i < SEGMENT_FILES; i++)
        segfile_unpin(clean_file_of(s, (enum segment_file)i));
    segment_unref(s);
    segment_unref(fresh);
    return rc;
}

/* Everything that can fail for reasons that pass comes first. The directory is then open, for the caller to close.
 * Under slow_mu. */
static int prepare(struct clean_pass *p, struct segment *const *olds, int n, const struct segment *fresh,
                   int *ret_at, int *ret_dir)
{
    struct plog *l = p->l;

    lock_take(&l->mu);
    *ret_at = find_group(p, olds, n);
    lock_release(&l->mu);
    if (*ret_at < 0)
        return -ECANCELED;
    if (datadir_failed(l->dd))
        return -EROFS;
    int dir = l->io->openat(l->io, l->dirfd, l->name, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0)
        return dir;
    int rc = l->io->fsync(l->io, dir);
    if (rc == 0) {
        l->cleaning = true; /* even if this fails, some manifest may be there */
        rc = write_manifest(p, olds, n, fresh->sum.size);
    }
    if (rc < 0)
        l->io->close(l->io, dir);
    else
        *ret_dir = dir;
    return rc;
}

int clean_swap(struct clean_pass *p, int first, int n, struct segment *fresh)
{
    struct plog *l = p->l;
    struct segment *const *olds = p->range.segs + first;
    int at, dir;

    lock_take(&l->slow_mu);
    int rc = prepare(p, olds, n, fresh, &at, &dir);
    if (rc == 0) {
        rc = commit(p, at, olds, n, fresh, dir);
        l->io->close(l->io, dir);
    } else {
        if (rc != -ECANCELED)
            plog_disk_error(l, rc, l->name);
        clean_discard(fresh, !l->cleaning); /* as long as a manifest names its files, they must be there */
    }
    lock_release(&l->slow_mu);
    return rc;
}

/* ---- before the first and after the last exchange ---- */

int clean_raise_claims(struct clean_pass *p)
{
    struct plog *l = p->l;
    struct checkpoint old;
    int rc = 0;

    lock_take(&l->slow_mu);
    bool saved = checkpoint_decode(slice_of(l->saved, sizeof l->saved), &old);
    lock_take(&l->mu);
    bool cut = l->generation != p->generation;
    bool inside = !cut && l->flushed.segment < p->anchor->base;
    KINVARIANT("S4", !inside || l->flushed.sum.end_offset == p->anchor->base);
    if (inside)
        l->flushed = (struct log_point){
            .segment = p->anchor->base,
            .text_base = p->anchor->text_base,
            .sum = segment_sum_empty(p->anchor->base),
        };
    lock_release(&l->mu);
    if (cut)
        rc = -ECANCELED;
    else if (inside || (saved && old.flushed.segment < p->anchor->base))
        rc = plog_write_checkpoint(l, p->o->limit);
    lock_release(&l->slow_mu);
    return rc;
}

/* The next sealed segment of which something is known; NULL at the end. */
static struct segment *next_segment(struct plog *l, int64_t from)
{
    struct segment *s = NULL;

    lock_take(&l->mu);
    int i = plog_find_segment(l, from);
    while (i + 1 < l->n_segs && (l->segs[i]->base < from || !l->segs[i]->known))
        i++;
    if (i + 1 < l->n_segs)
        s = segment_ref(l->segs[i]);
    lock_release(&l->mu);
    return s;
}

/* What is right already need not be written, and syncing it costs next to nothing. */
static int write_base(struct plog *l, struct segment *s)
{
    struct text_header h;
    int rc = 0;

    lock_take(&l->fix_mu);
    bool right = segment_read_header(s, &h) && h.sealed && h.text_base == s->text_base;
    if (!right)
        rc = segment_write_header(s, true);
    lock_release(&l->fix_mu);
    return rc < 0 ? rc : segfile_sync(s->text.file);
}

static int settle(struct plog *l)
{
    struct segment *s;
    int rc = 0;

    for (int64_t from = 0; rc == 0 && (s = next_segment(l, from)) != NULL;) {
        rc = datadir_failed(l->dd) ? -EROFS : write_base(l, s);
        from = s->base + 1;
        segment_unref(s);
    }
    if (rc == 0)
        rc = clean_manifest_remove(l);
    if (rc == 0)
        l->cleaning = false;
    return rc;
}

int clean_settle_locked(struct plog *l)
{
    lock_assert_held(&l->slow_mu);
    return l->cleaning ? plog_disk_error(l, settle(l), l->name) : 0;
}

int clean_settle(struct plog *l)
{
    lock_take(&l->slow_mu);
    int rc = clean_settle_locked(l);
    lock_release(&l->slow_mu);
    return rc;
}
