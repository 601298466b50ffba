/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a log. What the directory's clean marker vouches for is taken as it is and nothing is read.
 * Otherwise the log is walked from the flush point on (S9): everything below it is known to be on disk, the
 * indexes are kept up to the entries that the checkpoint counts. Nothing here trusts a cache over the log.
 */
#include "lib/store/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/check.h"
#include "lib/store/clean_int.h"
#include "lib/store/start_mark.h"

#define SCANNED_AGAIN_BYTES (1 << 20)

void recovery_note(struct recovery *r, const char *fmt, ...)
{
    char *note = r->rec->note;
    size_t n = strlen(note), room = sizeof r->rec->note;
    va_list ap;

    if (n > 0 && n + 2 < room) {
        memcpy(note + n, "; ", 3);
        n += 2;
    }
    va_start(ap, fmt);
    vsnprintf(note + n, room - n, fmt, ap);
    va_end(ap);
}

void recovery_note_hole(struct recovery *r, int64_t from)
{
    if (!r->rec->holed || from < r->rec->holed_from)
        r->rec->holed_from = from;
    r->rec->holed = true;
}

void recovery_note_gap(struct recovery *r, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    r->changed = true;
    recovery_note_hole(r, from);
    recovery_note(r,
                  "LOST offsets %" PRId64 "..%" PRId64 ": no segment has them; what reads there is told so and can "
                  "go on at %" PRId64,
                  from, to - 1, to);
}

/* What is known of how far the log had been on disk. */
static void load_flush_point(struct recovery *r)
{
    r->flush_known = plog_read_mark(r->l, &r->mark);
    r->flushed = MAX(r->mark.offset, r->have_ckpt ? r->ckpt.flushed.sum.end_offset : 0);
}

static int load_checkpoint(struct recovery *r)
{
    struct bytebuf b = { 0 };
    char path[PATH_MAX];

    plog_path(r->l, CHECKPOINT_FILE, path, sizeof path);
    int rc = io_read_file(r->l->io, r->l->dirfd, path, 65536, &b);
    r->have_ckpt = rc == 0 && checkpoint_decode(slice_of(b.p, b.n), &r->ckpt);
    if (r->have_ckpt && r->ckpt.identity != 0 && r->ckpt.identity != r->l->identity) {
        r->have_ckpt = false;
        recovery_note(r, "%s is another partition's: scanned from the start", CHECKPOINT_FILE);
    } else if (r->have_ckpt && b.n == CHECKPOINT_BYTES)
        memcpy(r->l->saved, b.p, CHECKPOINT_BYTES);
    else if (!r->have_ckpt && rc != -ENOENT)
        recovery_note(r, "%s is damaged: scanned from the start", CHECKPOINT_FILE);
    bytebuf_done(&b);
    return rc == -ENOENT || rc == -EFBIG ? 0 : rc;
}

/* What is another partition's counts for nothing and is told once: it lies aside for a day (plog_retain), and where it
 * cannot be moved it is told again at the next start. */
static void set_start_aside(struct recovery *r, int64_t offset, const char *path)
{
    const struct plog *l = r->l;
    char aside[PATH_MAX];

    int n = snprintf(aside, sizeof aside, "%s.cut", path);
    bool moved = n > 0 && n < (int)sizeof aside && l->io->renameat(l->io, l->dirfd, path, l->dirfd, aside) == 0;
    recovery_note(r, "%020" PRId64 START_SUFFIX " is another partition's and counts for nothing%s", offset,
                  moved ? ": it is kept in a file *.cut" : "");
}

/* The greatest NNN.start that does not say that it is another partition's. */
static int load_start(struct recovery *r)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct plog *l = r->l;

    for (int i = 0; i < r->ls.n_starts; i++) {
        int64_t offset = r->ls.starts[i];
        struct start_mark m;
        char path[PATH_MAX];
        segment_path(path, sizeof path, l->name, offset, START_SUFFIX);
        b.n = 0;
        int rc = io_read_file(l->io, l->dirfd, path, START_BYTES, &b);
        if (rc < 0 && rc != -EFBIG)
            return rc;
        if (rc == 0 && start_decode(slice_of(b.p, b.n), &m) && (m.identity != l->identity || m.offset != offset))
            set_start_aside(r, offset, path);
        else
            l->start_marker = offset;
    }
    return 0;
}

static int add_segment(struct recovery *r, int64_t base)
{
    struct plog *l = r->l;
    struct segment *s = segment_new(l->files, l->name, l->identity, base);
    struct io_stat st;
    int rc = l->io->statat(l->io, l->dirfd, segfile_path(s->log), 0, &st);

    if (rc < 0) {
        segment_unref(s);
        return rc;
    }
    s->sum.size = s->flushed = st.size;
    s->trusted = INT64_MAX;
    if (st.size > 0)
        l->newest_ms = st.mtime_ns / 1000000;
    plog_push_segment(l, s);
    return 0;
}

/* Segments that end at or below the start offset were about to be deleted. */
static int open_segments(struct recovery *r)
{
    struct listing *ls = &r->ls;

    for (int i = 0; i < ls->n_logs; i++) {
        if (i + 1 < ls->n_logs && ls->logs[i + 1] <= r->l->start_offset) {
            struct segment *s = segment_new(r->l->files, r->l->name, r->l->identity, ls->logs[i]);
            int rc = segment_unlink(s);
            segment_unref(s);
            if (rc < 0)
                return rc;
            continue;
        }
        int rc = add_segment(r, ls->logs[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int make_files(struct plog *l, struct segment *s)
{
    const struct log_point begin = { .segment = s->base, .text_base = s->text_base, .sum = segment_sum_empty(s->base) };
    struct flush_mark mark;
    int rc = plog_create_files(l, s);

    bool made = !plog_read_mark(l, &mark);
    if (rc == 0 && made) {
        rc = plog_write_mark(l, &begin);
        if (rc == 0 && !l->unsynced)
            rc = segfile_sync(l->mark);
    }
    if (rc == 0 && !l->unsynced)
        rc = io_sync_dir(l->io, l->dirfd, l->name);
    l->mark_kept = rc == 0 && made;
    l->dir_synced = l->dir_changes;
    return rc;
}

/* A log without any segment: new, or robbed of all of them; then offsets go on where they were. */
static int create_first_segment(struct recovery *r)
{
    struct plog *l = r->l;
    int64_t base = MAX(l->start_offset, r->flushed);

    if (base > 0)
        recovery_note(r, "LOST: all segments are missing, with records up to offset %" PRId64 "; it goes on there",
                      base);
    else if (r->had_dir) /* its creation was interrupted, or everything is gone */
        recovery_note(r, "its directory has no segment: it begins at offset 0");
    r->changed = base > 0 || r->had_dir;
    if (base > 0)
        recovery_note_hole(r, 0);
    l->start_offset = base;
    struct segment *s = segment_new(l->files, l->name, l->identity, base);
    if (r->have_ckpt)
        s->text_base = r->ckpt.flushed.text_base + r->ckpt.flushed.sum.text_bytes;
    s->known = true;
    plog_push_segment(l, s);
    l->end_offset = base;
    return make_files(l, s);
}

/* The log ends below its own start: what is missing had been deleted, but its offsets had been given out. It goes
 * on at its start in a new segment, so that the next start finds nothing amiss and no record that comes meanwhile
 * lies below the start. What there is lies below it, and goes. */
static int go_on_at_start(struct recovery *r)
{
    struct plog *l = r->l;
    const struct segment *old = plog_active(l);
    struct segment *s = segment_new(l->files, l->name, l->identity, l->start_offset);
    int n_old = l->n_segs;

    recovery_note(r, "LOST: the log ends at offset %" PRId64 ", but begins at %" PRId64 "; it goes on there",
                  l->end_offset, l->start_offset);
    r->changed = true;
    r->rec->lost_end = true;
    s->text_base = old->text_base + old->sum.text_bytes;
    s->known = true;
    l->end_offset = l->start_offset;
    int rc = make_files(l, s);
    if (rc < 0) {
        segment_unref(s);
        return rc;
    }
    for (int i = 0; i < n_old; i++) {
        if (rc == 0)
            rc = segment_unlink(l->segs[i]);
        segment_unref(l->segs[i]);
    }
    l->n_segs = 0;
    plog_push_segment(l, s);
    return rc < 0 ? rc : io_sync_dir(l->io, l->dirfd, l->name);
}

bool recovery_knows_text(struct recovery *r, struct segment *s)
{
    struct text_header h;
    bool ok = r->ckpt.identity != 0 && segment_read_header(s, &h) && h.version != 1;

    segfile_forget(s->text.file); /* of thousands of logs few are read soon */
    return ok;
}

/* The checkpoint was written when the log was closed, and describes it to its end. */
static bool adopt(struct recovery *r)
{
    struct segment *s = plog_active(r->l);
    const struct log_point *p = &r->ckpt.flushed;

    if (!r->have_ckpt || p->segment != s->base || p->sum.size != s->sum.size || !recovery_knows_text(r, s))
        return false;
    segment_reset(s, &p->sum);
    s->text_base = p->text_base;
    s->known = true;
    s->trusted = s->sum.size;
    s->may_be_longer = true; /* what stopped had perhaps written nothing since it found the file so */
    r->l->end_offset = p->sum.end_offset;
    r->first = r->l->n_segs;
    r->flush_known = true;
    r->flushed = p->sum.end_offset;
    return true;
}

static void settle(struct recovery *r)
{
    struct plog *l = r->l;

    if (r->had_dir)
        recovery_note_gap(r, l->start_offset, l->segs[0]->base);
    l->start_offset = MIN(MAX(l->start_offset, l->segs[0]->base), l->end_offset);
    l->flushed = plog_point(l);
    l->checkpoint_hw = r->have_ckpt ? MAX(MIN(r->ckpt.hw, l->end_offset), l->start_offset) : l->start_offset;
    for (int i = 0; i < l->n_segs; i++)
        l->size_bytes += l->segs[i]->sum.size;
    l->mark_kept = l->mark_kept || (r->have_ckpt && r->flush_known); /* each checkpoint has waited for it */
    plog_note_border(l);
    if (l->size_bytes > 0 && plog_active(l)->sum.size > 0)
        l->active_since_ms = l->newest_ms;
}

/* Is it cheaper to find it out again at the next start than to wait for the syncs of a checkpoint now? A broker starts with
 * thousands of logs. */
static bool is_little(const struct recovery *r)
{
    return r->flush_known && r->flushed <= r->l->end_offset && !r->changed && r->rec->cut_bytes == 0 &&
           r->rec->scanned_bytes <= SCANNED_AGAIN_BYTES;
}

/* No checkpoint is written; the next one is due the earlier. */
static int save_little(struct recovery *r)
{
    struct plog *l = r->l;

    l->flushed_bytes = r->rec->scanned_bytes;
    int rc = plog_write_mark(l, &l->flushed);
    if (rc == 0 && l->gap_end == l->end_offset) /* as flush.c: from now on it counts as flushed */
        rc = segfile_sync(l->mark);
    return rc == -ENOSPC || rc == -EDQUOT ? 0 : rc;
}

/* What was found out need not be found out again. A full disk must not keep the log from being read. */
static int save(struct recovery *r)
{
    struct plog *l = r->l;
    struct flush_mark mark;
    bool have_mark = plog_read_mark(l, &mark);

    lock_take(&l->slow_mu);
    int rc = plog_write_checkpoint(l, l->checkpoint_hw);
    lock_release(&l->slow_mu);
    if (rc == 0)
        rc = plog_write_mark(l, &l->flushed);
    /* One that is too high must not come back; one that vouches for a gap must stay. */
    if (rc == 0 && ((have_mark && mark.offset > l->end_offset) || l->gap_end == l->end_offset))
        rc = segfile_sync(l->mark);
    if (rc == -ENOSPC || rc == -EDQUOT) {
        recovery_note(r, "the disk is full: no checkpoint was written");
        return 0;
    }
    return rc;
}

/* A pass of the cleaner was under way: the text positions in the headers are counted anew. */
static int settle_text(struct recovery *r)
{
    if (r->clean_anchor < 0 || r->l->n_segs == 0)
        return 0;
    int rc = clean_recover_text(r->l, r->clean_anchor, r->clean_anchor_text);
    if (rc == -ENOSPC || rc == -EDQUOT) {
        recovery_note(r, "the disk is full: text positions were not written");
        return 0;
    }
    return rc;
}

/* No snapshot is believed that is of an offset above the flush point: such a one may tell of batches that are gone. */
static int settle_producers(struct recovery *r)
{
    struct plog *l = r->l;
    int64_t limit = r->flush_known || r->have_ckpt ? MIN(r->flushed, l->end_offset) : l->end_offset;

    r->end_offset = l->end_offset;
    int rc = recovery_drop_snapshots(r, limit);
    if (rc == 0)
        rc = recovery_load_producers(r);
    producers_swap(&l->producers, &r->producers);
    l->snapshot_offset = r->snapshot_offset;
    l->snapshot_empty = r->snapshot_empty;
    return rc;
}

static int recover(struct recovery *r, bool clean)
{
    struct plog *l = r->l;
    int rc = load_checkpoint(r);

    if (rc == 0)
        rc = load_start(r);
    if (rc < 0)
        return rc;
    l->start_offset = MAX(r->have_ckpt ? r->ckpt.start_offset : 0, MAX(l->start_marker, 0));
    rc = recovery_read_epochs(r);
    if (rc == 0)
        rc = open_segments(r);
    if (rc == 0)
        rc = settle_text(r);
    if (rc < 0)
        return rc;
    if (l->n_segs == 0) {
        load_flush_point(r);
        rc = create_first_segment(r);
        r->first = l->n_segs;
    } else if (clean && adopt(r)) {
        if (r->ckpt.sealed != plog_sealed_sum(l, l->n_segs - 1))
            rc = recovery_look_at_sealed(r);
    } else {
        load_flush_point(r);
        rc = recovery_scan(r);
        if (rc == 0)
            rc = recovery_look_at_sealed(r);
    }
    if (rc == 0 && l->start_offset > l->end_offset)
        rc = go_on_at_start(r);
    if (rc < 0)
        return rc;
    settle(r);
    rc = recovery_settle_epochs(r);
    if (rc == 0)
        rc = settle_producers(r);
    r->rec->clean = r->rec->scanned_bytes == 0 && r->rec->cut_bytes == 0;
    if (rc == 0 && r->had_dir && (!r->have_ckpt || !r->rec->clean || r->changed))
        rc = is_little(r) ? save_little(r) : save(r);
    return rc;
}

int plog_recover(struct plog *l, bool clean, bool had_dir, int64_t now_ms, struct plog_recovery *rec)
{
    struct recovery r = { .l = l, .rec = rec, .now_ms = now_ms, .had_dir = had_dir };
    const char *problem;
    int rc = clean_recover_files(l, &r.clean_anchor, &r.clean_anchor_text, &problem);

    if (problem != NULL)
        recovery_note(&r, CLEAN_MANIFEST " %s and counts for nothing", problem);
    if (rc == 0)
        rc = listing_read(l->io, l->dirfd, l->name, &r.ls);
    if (rc == 0)
        listing_remove_orphans(l->io, l->dirfd, l->name, &r.ls);
    if (rc == 0)
        rc = recover(&r, clean);
    listing_done(&r.ls);
    producers_clear(&r.producers);
    return rc;
}
