/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan after an unproven stop. What it makes of bytes that are no good batch:
 *   - at or above the flush point: the end of what reached the disk, cut off with all that follows (S9). A disk
 * writes what was not flushed in any order, so good batches may lie behind it; nobody was told of them;
 *   - below it: damage, which is never cut (S10), unless it is the end of the file: then the log comes up shorter,
 * and the report says what is lost;
 *   - when the flush point is not known (partition.flushed is lost): with good batches after it damage, else torn.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/store/recover.h"

#define REWRITE_BYTES (1 << 20)
#define REWRITE_FILES 64 /* that are written before the first of them is synced; as many are open */

/* Where to begin: the flush point, or the front of its segment when the file does not reach it, or the front
 * of the log when there is no checkpoint. */
static void choose_start(struct recovery *r)
{
    struct plog *l = r->l;
    const struct log_point *p = &r->ckpt.flushed;

    r->first = 0;
    r->first_position = 0;
    if (!r->have_ckpt)
        return;
    r->first = plog_find_segment(l, p->segment);
    struct segment *s = l->segs[r->first];
    if (s->base == p->segment && s->sum.size >= p->sum.size && recovery_knows_text(r, s))
        r->first_position = p->sum.size;
}

/* Text position of the first scanned segment when the scan starts at its front. */
static int64_t first_text_base(struct recovery *r)
{
    struct plog *l = r->l;
    struct segment *s = l->segs[r->first];
    struct text_header h;

    if (segment_read_header(s, &h))
        return h.text_base;
    if (r->have_ckpt && r->ckpt.flushed.segment == s->base)
        return r->ckpt.flushed.text_base;
    if (r->first == 0)
        return 0;
    struct segment *before = l->segs[r->first - 1];
    return plog_load_segment(l, before) == 0 ? before->text_base + before->sum.text_bytes : 0;
}

struct segment_scan {
    struct logscan scan;
    struct record_iter iter;
    int64_t cut_at;   /* -1: all of it stays */
    bool to_be_met;   /* partition.flushed names a border ahead, and the heads of all batches before it */
    bool contradicted; /* and those are others */
};

/* The segment's bytes so far end at the first offset that is not known to be good. */
static bool reached_flush_point(const struct recovery *r, const struct segment *s)
{
    return r->flush_known && s->sum.end_offset >= r->flushed;
}

/* True: the log ends before this item. */
static bool must_cut(const struct recovery *r, int i, const struct scan_item *it)
{
    return reached_flush_point(r, r->l->segs[i]) || (it->what == SCAN_TAIL && i + 1 == r->l->n_segs);
}

static void keep_damage(struct recovery *r, struct segment *s, struct segment_scan *ss, const struct scan_item *it)
{
    int64_t from = s->sum.end_offset;

    r->changed = true;
    recovery_note_hole(r, from);
    s->sum.size += it->n;
    s->sum.text_bytes += damage_text_bytes(&ss->iter, &ss->scan, it);
    s->trusted = s->sum.size; /* what stands before it is looked at when it is read */
    s->sum.since_index = INT32_MAX + 1LL;
    s->sum.heads = s->sum.all_heads = HEADS_UNKNOWN;
    if (it->what == SCAN_TAIL)
        s->sum.end_offset = ss->scan.limit_offset;
    else if (it->header_ok)
        s->sum.end_offset = batch_last_offset(&it->h) + 1;
    recovery_note(r, "damage in %s at %" PRId64 ", kept: records from offset %" PRId64 " on cannot be read",
                  segfile_path(s->log), it->at, from);
}

static int scan_batch(struct recovery *r, struct segment *s, struct segment_scan *ss,
                      const struct scan_item *it)
{
    struct slice bytes;

    if (it->at + it->n > INT32_MAX || batch_last_offset(&it->h) - s->base > INT32_MAX)
        return -EBADMSG;
    int rc = logscan_bytes(&ss->scan, it, &bytes);
    if (rc == 0 && segment_tails_full(s))
        rc = segment_write_tails(s, NULL);
    if (rc < 0 && rc != -ENOSPC && rc != -EDQUOT)
        return rc;
    if (epochs_assign(&r->l->epochs, it->h.leader_epoch, it->h.base_offset))
        r->l->epochs_dirty = true;
    if (it->h.base_offset > s->sum.end_offset)
        r->l->gap_end = batch_last_offset(&it->h) + 1;
    segment_add(s, &it->h, batch_text_bytes(&ss->iter, bytes), r->l->cfg.index_interval_bytes);
    return 0;
}

/* Does partition.flushed say what the newest segment holds from `position` on? Not of one that was sealed: the cleaner
 * may have written it anew. */
static bool has_mark_ahead(const struct recovery *r, struct segment *s, int64_t position)
{
    struct text_header h;

    return r->mark.segment == s->base && r->mark.position > position && r->mark.all_heads != HEADS_UNKNOWN &&
           s == plog_active(r->l) && !(segment_read_header(s, &h) && h.sealed);
}

/* S15: after each batch. With damage among them nothing can be said. */
static bool contradicts_mark(const struct recovery *r, const struct segment *s, struct segment_scan *ss)
{
    if (!ss->to_be_met || s->sum.size < r->mark.position || s->sum.all_heads == HEADS_UNKNOWN)
        return false;
    ss->to_be_met = false;
    return s->sum.size != r->mark.position || s->sum.all_heads != r->mark.all_heads;
}

static int scan_items(struct recovery *r, int i, struct segment_scan *ss)
{
    struct segment *s = r->l->segs[i];
    struct scan_item it;
    int rc;

    while ((rc = logscan_next(&ss->scan, &it)) == 0 && it.what != SCAN_END) {
        if (it.what == SCAN_BATCH) {
            rc = scan_batch(r, s, ss, &it);
            ss->contradicted = rc == 0 && contradicts_mark(r, s, ss);
            if (rc < 0 || ss->contradicted)
                break;
        } else if (must_cut(r, i, &it)) {
            ss->cut_at = it.at;
            break;
        } else {
            keep_damage(r, s, ss, &it);
        }
    }
    return rc;
}

/* Walks segment i from `position`, filling what is known of it. */
static int scan_segment(struct recovery *r, int i, int64_t position, int64_t next_offset,
                        struct segment_scan *ss)
{
    struct segment *s = r->l->segs[i];
    int64_t size = s->flushed; /* of the file: nothing was added yet */
    int rc = segfile_pin(s->log, false);

    if (rc < 0)
        return rc;
    logscan_init(&ss->scan, r->l->io, segfile_fd(s->log), position, size, next_offset);
    if (i + 1 < r->l->n_segs)
        ss->scan.limit_offset = r->l->segs[i + 1]->base;
    ss->scan.gaps_below = r->flush_known ? r->flushed : 0;
    record_iter_init(&ss->iter);
    ss->cut_at = -1;
    ss->to_be_met = has_mark_ahead(r, s, position);
    rc = scan_items(r, i, ss);
    r->rec->scanned_bytes += size - position;
    r->rec->rebuilt_indexes += position == 0 && size > 0;
    logscan_done(&ss->scan);
    record_iter_done(&ss->iter);
    segfile_unpin(s->log);
    if (rc == -EBADMSG)
        recovery_note(r, "%s holds what no segment may", segfile_path(s->log));
    return rc;
}

/* A segment that is followed by others is as it will stay. */
static int seal_scanned(struct segment *s)
{
    int rc = segment_write_tails(s, NULL);
    segment_add_last_time(s);
    if (rc == 0)
        rc = segment_write_tails(s, NULL);
    if (rc == 0)
        rc = segment_trim_files(s);
    if (rc == 0)
        rc = segment_write_header(s, true);
    return rc == -ENOSPC || rc == -EDQUOT ? 0 : rc;
}

/* S9: pages that a failed write-back marked clean exist in memory only; written again they get to the disk.
 */
static int rewrite(struct plog *l, struct segment *s, int64_t from)
{
    struct bytebuf b = { 0 };
    int rc = segfile_pin(s->log, false);

    if (rc < 0)
        return rc;
    int fd = segfile_fd(s->log);
    for (int64_t at = from; rc == 0 && at < s->sum.size; at += REWRITE_BYTES) {
        size_t n = (size_t)MIN((int64_t)REWRITE_BYTES, s->sum.size - at);
        b.n = 0;
        int64_t got = io_pread_full(l->io, fd, bytebuf_room(&b, n), n, at);
        rc = got < 0 ? (int)got : (size_t)got < n ? -EIO : io_pwrite_all(l->io, fd, b.p, n, at);
    }
    if (rc == 0 && from < s->sum.size) {
        l->io->sync_file_range(l->io, fd, from, s->sum.size - from, SYNC_FILE_RANGE_WRITE);
        segfile_set_dirty(s->log, true); /* kept open: an error is told to who had it open */
    }
    segfile_unpin(s->log);
    bytebuf_done(&b);
    return plog_disk_error(l, rc, segfile_path(s->log));
}

/* Nothing to do for what the checkpoint vouches for to its end, unless it is followed: a truncation that was not synced may have cut it, a
 * power cut would make it longer again, and what stands behind it is about to count as flushed. */
static int sync_rewritten(struct plog *l, struct segment *s, int64_t from)
{
    int rc = from < s->sum.size || s != plog_active(l) ? segfile_sync(s->log) : 0;

    if (rc == 0)
        segfile_set_dirty(s->log, false);
    s->flushed = s->sum.size;
    return plog_disk_error(l, rc, segfile_path(s->log));
}

static int64_t rewritten_from(const struct recovery *r, int i)
{
    return i == r->first ? r->first_position : 0;
}

/* What was scanned, and no file that is another one: nothing of it is read, and it may be shorter than what was there.
 * The disk is busy with all of a group before the first sync waits. */
static int rewrite_all(struct recovery *r)
{
    struct plog *l = r->l;
    int rc = 0;

    for (int i = r->first; rc == 0 && i < l->n_segs; i += REWRITE_FILES) {
        int end = MIN(i + REWRITE_FILES, l->n_segs);
        for (int j = i; rc == 0 && j < end; j++)
            rc = l->segs[j]->foreign ? 0 : rewrite(l, l->segs[j], rewritten_from(r, j));
        for (int j = i; rc == 0 && j < end; j++)
            rc = sync_rewritten(l, l->segs[j], rewritten_from(r, j));
    }
    return rc;
}

/* What the checkpoint says of the newest segment. */
static const struct segment_sum *witness_of_last(const struct recovery *r, const struct segment *s)
{
    bool same = r->have_ckpt && r->ckpt.identity != 0 && r->ckpt.flushed.segment == s->base;
    static const struct segment_sum none;

    return same ? &r->ckpt.flushed.sum : &none;
}

/* The newest segment's file is another one: it is kept aside as what is cut off, and the log ends before it. */
static int cut_foreign(struct recovery *r, int i)
{
    struct segment *s = r->l->segs[i];
    struct segment_sum empty = segment_sum_empty(s->base);

    segment_reset(s, &empty);
    s->known = true;
    return recovery_cut(r, i, 0);
}

/* What the newest segment has above `sum` is not what was flushed there. */
static int cut_contradicted(struct recovery *r, int i, const struct segment_sum *sum)
{
    struct segment *s = r->l->segs[i];

    recovery_note(r, "%s from %" PRId64 " on does not hold what was written there", segfile_path(s->log), sum->size);
    segment_reset(s, sum);
    return recovery_cut(r, i, sum->size);
}

static int scan_all(struct recovery *r, struct segment_scan *ss)
{
    struct plog *l = r->l;
    struct segment *s = l->segs[r->first];
    int64_t position = r->first_position;
    int64_t text_base = position > 0 ? r->ckpt.flushed.text_base : first_text_base(r);
    struct segment_sum sum = position > 0 ? r->ckpt.flushed.sum : segment_sum_empty(s->base);

    for (int i = r->first; i < l->n_segs; i++) {
        s = l->segs[i];
        bool last = i + 1 == l->n_segs;
        bool foreign = recovery_is_foreign(r, s, last ? witness_of_last(r, s) : NULL);
        if (foreign && last)
            return cut_foreign(r, i);
        segment_reset(s, &sum);
        s->text_base = text_base;
        s->known = true;
        s->trusted = position;
        ss->cut_at = -1;
        ss->contradicted = false;
        int rc = foreign ? recovery_keep_foreign(r, s) : scan_segment(r, i, position, sum.end_offset, ss);
        if (rc < 0)
            return rc;
        if (ss->contradicted)
            return cut_contradicted(r, i, &sum);
        if (ss->cut_at >= 0)
            return recovery_cut(r, i, ss->cut_at);
        if (i + 1 == l->n_segs)
            break;
        if (s->sum.end_offset != l->segs[i + 1]->base && reached_flush_point(r, s))
            return recovery_cut(r, i, s->sum.size);
        recovery_note_gap(r, s->sum.end_offset, l->segs[i + 1]->base);
        rc = foreign ? 0 : seal_scanned(s);
        if (rc < 0)
            return rc;
        text_base = s->text_base + s->sum.text_bytes;
        sum = segment_sum_empty(l->segs[i + 1]->base);
        position = 0;
    }
    return 0;
}

/* A copy of a compacted log that was cut where offsets are missing ends behind its last batch. When all that was flushed is there, byte
 * for byte, it still does, and nothing is lost. */
static void keep_missing_end(const struct recovery *r)
{
    struct plog *l = r->l;
    struct segment *s = plog_active(l);
    const struct segment_sum *sum = &r->ckpt.flushed.sum;
    bool sound = r->flush_known && s->sum.size > 0 && s->sum.all_heads != HEADS_UNKNOWN;
    bool by_mark = r->mark.segment == s->base && r->mark.offset == r->flushed && r->mark.position == s->sum.size &&
                   r->mark.all_heads == s->sum.all_heads;
    bool by_checkpoint = r->have_ckpt && r->ckpt.flushed.segment == s->base && sum->end_offset == r->flushed &&
                         sum->size == s->sum.size && sum->all_heads == s->sum.all_heads;

    if (sound && (by_mark || by_checkpoint) && r->flushed > s->sum.end_offset) {
        l->end_offset = l->gap_end = s->sum.end_offset = r->flushed;
        l->end_is_apart = true;
    }
}

static void note_loss(struct recovery *r)
{
    int64_t was = r->flushed, is = r->l->end_offset;

    r->rec->lost_end |= is < was;
    if (is < was)
        recovery_note(r,
                      "LOST %" PRId64 " records that had been on disk: %s now ends at %" PRId64
                      ", it had reached %" PRId64,
                      was - is, r->l->name, is, was);
}

int recovery_scan(struct recovery *r)
{
    struct plog *l = r->l;
    struct segment_scan ss;
    struct text_header h;

    choose_start(r);
    int rc = scan_all(r, &ss);
    if (rc < 0)
        return rc;
    struct segment *s = plog_active(l);
    l->end_offset = s->sum.end_offset;
    keep_missing_end(r);
    s->may_be_longer = true; /* were it so, what stood there would lie between it and a segment begun behind it */
    rc = segment_write_tails(s, NULL);
    if (rc == 0)
        rc = segment_trim_files(s);
    /* It will be written to: a summary of what was there must not outlive that, not even a power cut. */
    if (rc == 0 && (!segment_read_header(s, &h) || h.version == 1 || h.sealed)) {
        rc = segment_write_header(s, false);
        if (rc == 0)
            rc = segfile_sync(s->text.file);
    }
    if (rc < 0 && rc != -ENOSPC && rc != -EDQUOT)
        return rc;
    rc = rewrite_all(r);
    if (rc == 0) /* names that were made, or removed, before a kill (S5) */
        rc = plog_disk_error(l, io_sync_dir(l->io, l->dirfd, l->name), l->name);
    note_loss(r);
    return rc;
}
