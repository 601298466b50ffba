/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropping the log's end (S11): claims first, files second, memory last. Producer snapshots beyond the new end,
 * leader epochs and the flush point are durably lowered; then the files are cut; then the log is what the files are.
 * A crash anywhere leaves claims that are true of either log, and an error leaves a log that goes on as it was
 * (claims) or takes no appends until the cut was tried again (files). Every step may be done twice.
 *
 * append_mu is held from the first claim on. An index that lies is mended before, without it.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/clean_int.h"
#include "lib/store/plog_check.h"
#include "lib/store/recover.h"

/* How many entries have a key below `target`. */
static int count_below(struct plog *l, struct entries *e, struct entry_key key, int64_t target, int32_t *ret)
{
    uint8_t entry[ENTRY_BYTES_MAX];
    int32_t i = -1;
    int rc = entries_floor(e, &l->mu, key, target - 1, entry, &i);

    *ret = rc == 1 ? i + 1 : 0;
    return rc < 0 ? rc : 0;
}

static int count_entries(struct plog *l, struct segment *s, struct segment_sum *sum, int64_t *ret_text_at)
{
    uint8_t e[ENTRY_BYTES_MAX];
    int64_t indexed_at = 0;
    int rc = count_below(l, &s->index, INDEX_POSITION, sum->size, &sum->index_n);

    if (rc == 0)
        rc = count_below(l, &s->text, TEXT_POSITION, sum->size, &sum->text_n);
    if (rc == 0)
        rc = count_below(l, &s->time, TIME_OFFSET, sum->end_offset - s->base, &sum->time_n);
    if (rc == 0 && sum->index_n > 0) {
        rc = entries_get(&s->index, sum->index_n - 1, e);
        indexed_at = rc == 0 ? entry_key_get(e, INDEX_POSITION) : 0;
    }
    if (rc == 0 && sum->time_n > 0) {
        rc = entries_get(&s->time, sum->time_n - 1, e);
        sum->indexed_timestamp = rc == 0 ? entry_key_get(e, TIME_TIMESTAMP) : -1;
    }
    if (rc == 0 && sum->text_n > 0) {
        rc = entries_get(&s->text, sum->text_n - 1, e);
        *ret_text_at = rc == 0 ? entry_key_get(e, TEXT_POSITION) : 0;
    }
    sum->since_index = sum->size - indexed_at;
    return rc;
}

struct summing {
    struct segment_sum *sum;
    int64_t text_at; /* of the last entry of .text */
};

static int sum_item(void *arg, struct logscan *scan, const struct scan_item *it)
{
    const struct summing *w = arg;
    struct segment_sum *sum = w->sum;

    (void)scan;
    if (it->what != SCAN_BATCH) {
        if (it->at >= w->text_at)
            sum->heads = HEADS_UNKNOWN;
        sum->all_heads = HEADS_UNKNOWN;
        return 0;
    }
    if (it->at >= w->text_at)
        sum->heads = heads_add(sum->heads, &it->h);
    sum->all_heads = heads_add(sum->all_heads, &it->h);
    if (it->at == 0)
        sum->first_timestamp = it->h.max_timestamp;
    if (it->h.max_timestamp > sum->max_timestamp) {
        sum->max_timestamp = it->h.max_timestamp;
        sum->max_timestamp_offset = batch_last_offset(&it->h);
    }
    return 0;
}

/* Greatest timestamps of what stays, by the batch headers, and the heads since the last entry of .text: only what no
 * longer has its summary needs them. */
static int sum_headers(struct segment *s, int64_t text_at, struct segment_sum *sum)
{
    struct summing w = { .sum = sum, .text_at = text_at };
    return segment_walk(s, sum->size, sum->end_offset, false, sum_item, &w);
}

struct cut_search {
    int64_t offset;
    struct place *found;
};

static int pass_good_batch(void *arg, struct logscan *scan, const struct scan_item *it)
{
    const struct cut_search *c = arg;

    (void)scan;
    if (it->what != SCAN_BATCH || batch_last_offset(&it->h) >= c->offset)
        return 1;
    c->found->position = it->at + it->n;
    c->found->h.base_offset = batch_last_offset(&it->h) + 1;
    return 0;
}

/* By the batches themselves, when the log is damaged where it is to be cut: the end of the last batch that can be
 * read. */
static int find_cut_by_scan(struct segment *s, int64_t offset, struct place *ret)
{
    struct cut_search c = { .offset = offset, .found = ret };

    *ret = (struct place){ .h.base_offset = s->base };
    return segment_walk(s, s->sum.size, s->sum.end_offset, true, pass_good_batch, &c);
}

/* Nothing of the segment is read, nor of what follows. */
static int find_cut_before(struct plog *l, struct cut *ret)
{
    struct segment *before = ret->i > 0 ? l->segs[ret->i - 1] : NULL;
    int rc = before == NULL ? 0 : plog_load_segment(l, before);

    ret->text_base = before == NULL ? ret->seg->text_base : before->text_base + before->sum.text_bytes;
    ret->sum = segment_sum_empty(ret->seg->base);
    return rc;
}

/* -EBADMSG: what is known of ret->seg contradicts its log. */
static int find_cut(struct plog *l, int64_t offset, enum cut_by by, struct cut *ret)
{
    struct place at;
    int64_t text_at = 0;
    bool by_scan = by == CUT_BY_SCAN;

    ret->i = plog_find_segment(l, offset);
    ret->seg = l->segs[ret->i];
    if (by == CUT_BEFORE_SEGMENT)
        return find_cut_before(l, ret);
    int rc = plog_load_segment(l, ret->seg);
    ret->text_base = ret->seg->text_base;
    ret->sum = segment_sum_empty(ret->seg->base);
    if (rc < 0 || offset <= ret->seg->base)
        return rc;
    rc = by_scan ? find_cut_by_scan(ret->seg, offset, &at)
                 : plog_locate_as_is(l, ret->seg, offset, ret->seg->sum.size, &at);
    if (rc < 0)
        return rc;
    if (rc == 0 && !by_scan) { /* it lies behind the segment's last batch */
        at.position = ret->seg->sum.size;
        at.h.base_offset = ret->seg->sum.end_offset;
    }
    if (at.position == 0)
        return 0;
    ret->sum.size = at.position;
    ret->sum.end_offset = MIN(at.h.base_offset, offset); /* compaction may have left out what is between */
    rc = plog_text_before(l, ret->seg, at.position, &ret->sum.text_bytes);
    if (rc == 0)
        rc = count_entries(l, ret->seg, &ret->sum, &text_at);
    if (rc == 0)
        rc = sum_headers(ret->seg, text_at, &ret->sum);
    return rc == -ENODATA ? -EBADMSG : rc;
}

/* ---- claims ---- */

/* Producer state as of the new end, from an older snapshot and the log. */
static int find_producers(struct plog *l, const struct cut *c, struct recovery *r)
{
    struct plog_recovery rec = { 0 };

    r->rec = &rec;
    r->have_ckpt = checkpoint_decode(slice_of(l->saved, sizeof l->saved), &r->ckpt);
    r->end_offset = c->sum.end_offset;
    r->end_segment = c->seg;
    r->end_position = c->sum.size;
    int rc = listing_read(l->io, l->dirfd, l->name, &r->ls);
    if (rc == 0)
        rc = recovery_drop_snapshots(r, r->end_offset);
    if (rc == 0)
        rc = recovery_load_producers(r);
    listing_done(&r->ls);
    r->rec = NULL;
    return rc;
}

static int lower_epochs(struct plog *l, int64_t end)
{
    struct epochs low = { 0 };
    struct bytebuf b = { 0 };
    int rc = 0;

    lock_take(&l->mu);
    epochs_copy(&l->epochs, &low);
    bool some_go = epochs_truncate_end(&low, end);
    l->epochs_dirty |= some_go; /* memory has them until the files are cut, which may fail */
    lock_release(&l->mu);
    if (some_go) {
        epochs_encode(&low, &b);
        rc = plog_replace(l, EPOCHS_FILE, b.p, b.n);
    }
    epochs_done(&low);
    bytebuf_done(&b);
    return rc;
}

/* The flush point as it will be: not above the cut. */
static struct log_point lower_point(const struct plog *l, const struct cut *c)
{
    if (l->flushed.sum.end_offset < c->sum.end_offset && l->flushed.segment <= c->seg->base)
        return l->flushed;
    return (struct log_point){ .segment = c->seg->base, .text_base = c->text_base, .sum = c->sum };
}

/* At each step the epochs of all batches that the checkpoint covers are in their file (S6): they are written before it, and
 * lowered behind it, when batches above the cut are scanned again after a crash. */
static int lower_claims(struct plog *l, const struct cut *c, const struct recovery *r)
{
    lock_assert_held(&l->mark_mu);
    struct checkpoint old, low = { .identity = l->identity };
    int64_t hw = checkpoint_decode(slice_of(l->saved, sizeof l->saved), &old) ? old.hw : 0;

    lock_take(&l->mu);
    low.producers_offset = r->snapshot_offset;
    low.producers_empty = r->snapshot_empty;
    low.start_offset = l->start_offset;
    low.sealed = plog_sealed_sum(l, c->i);
    low.flushed = lower_point(l, c);
    lock_release(&l->mu);
    low.hw = MIN(hw, c->sum.end_offset);
    int rc = plog_write_mark(l, &low.flushed);
    if (rc == 0)
        rc = segfile_sync(l->mark);
    if (rc == 0)
        rc = plog_write_epochs(l);
    if (rc == 0) /* its summary, if it was sealed */
        rc = segment_write_header(c->seg, false);
    if (rc == 0)
        rc = segfile_sync(c->seg->text.file);
    if (rc == 0)
        rc = plog_save_checkpoint(l, &low);
    return rc < 0 ? rc : lower_epochs(l, c->sum.end_offset);
}

/* ---- files ---- */

static int cut_files(struct plog *l, const struct cut *c)
{
    int rc = 0;

    lock_take(&l->fix_mu);
    for (int i = l->n_segs - 1; rc == 0 && i > c->i; i--)
        rc = segment_unlink(l->segs[i]);
    if (rc == 0 && c->sum.size == 0) { /* somebody may have removed it */
        segfile_forget(c->seg->log);
        rc = segfile_pin(c->seg->log, true);
        if (rc == 0)
            segfile_unpin(c->seg->log);
    }
    if (rc == 0)
        rc = segfile_truncate(c->seg->log, c->sum.size);
    if (rc == 0)
        rc = segfile_sync(c->seg->log);
    lock_release(&l->fix_mu);
    return rc < 0 ? rc : io_sync_dir(l->io, l->dirfd, l->name);
}

/* ---- memory ---- */

/* The log is what its files are. */
static void lower_in_memory(struct plog *l, const struct cut *c, struct recovery *r)
{
    lock_assert_held(&l->append_mu);
    lock_take(&l->mu);
    KINVARIANT("S11", c->sum.end_offset <= l->end_offset && c->sum.size <= c->seg->sum.size && l->segs[c->i] == c->seg);
    l->flushed = lower_point(l, c);
    while (l->n_segs > c->i + 1) {
        struct segment *s = l->segs[--l->n_segs];
        s->gone = true;
        l->size_bytes -= s->sum.size;
        segment_unref(s);
    }
    l->size_bytes -= c->seg->sum.size - c->sum.size;
    segment_reset(c->seg, &c->sum);
    c->seg->flushed = MIN(c->seg->flushed, c->sum.size);
    c->seg->n_good = c->seg->n_bad = 0;
    c->seg->trusted = MIN(c->seg->trusted, c->sum.size);
    c->seg->foreign = c->seg->foreign && c->sum.size > 0;
    l->generation++;
    l->n_borders = l->n_read_ends = 0;
    l->end_offset = l->gap_end = c->sum.end_offset; /* there may be one before the batch that is the last now, or behind it */
    l->end_is_apart = true;
    if (epochs_truncate_end(&l->epochs, c->sum.end_offset))
        l->epochs_dirty = true;
    producers_swap(&l->producers, &r->producers);
    plog_note_border(l);
    KINVARIANT("S11", l->flushed.sum.end_offset <= l->end_offset && plog_active(l) == c->seg);
    lock_release(&l->mu);
    l->written_back = MIN(l->written_back, c->sum.size);
    l->snapshot_offset = r->snapshot_offset;
    l->snapshot_empty = r->snapshot_empty;
    l->half_cut.seg = NULL;
    l->restart_base = -1;
    plog_drop_pending(l);
}

static int prepare(struct plog *l, int64_t offset, enum cut_by by, struct cut *ret, struct segment **ret_lying)
{
    int rc = segment_write_tails(plog_active(l), &l->mu);

    if (rc == 0) /* a manifest speaks of the log as it was */
        rc = clean_settle_locked(l);
    if (rc == 0)
        rc = find_cut(l, offset, by, ret);
    if (rc == -EBADMSG)
        *ret_lying = segment_ref(ret->seg);
    return rc == 0 && ret->sum.end_offset < l->start_offset ? -ERANGE : rc; /* the batch holds the start */
}

/* Under slow_mu and append_mu. *ret_lying: the segment whose index has to be mended first. */
static int truncate_to(struct plog *l, int64_t offset, enum cut_by by, struct segment **ret_lying)
{
    struct recovery r = { .l = l, .now_ms = MAX(l->newest_ms, 0) };
    struct cut c;
    int rc = l->half_cut.seg != NULL ? 0 : prepare(l, offset, by, &c, ret_lying);

    if (rc < 0)
        return rc;
    if (l->half_cut.seg != NULL)
        c = l->half_cut;
    rc = find_producers(l, &c, &r);
    lock_take(&l->mark_mu);
    if (rc == 0)
        rc = lower_claims(l, &c, &r);
    if (rc == 0) {
        l->half_cut = c;
        rc = cut_files(l, &c);
    }
    if (rc == 0)
        lower_in_memory(l, &c, &r);
    lock_release(&l->mark_mu);
    producers_clear(&r.producers);
    if (rc == 0) /* caches: what is too long in them is not counted, and an error costs a rebuild */
        segment_trim_files(c.seg);
    return rc;
}

/* What a full disk refuses is tried again with what was kept back for emptying it. */
static int truncate_sparing(struct plog *l, int64_t offset, enum cut_by by, struct segment **ret_lying)
{
    int rc = truncate_to(l, offset, by, ret_lying);

    return datadir_spend_reserve(l->dd, rc) ? truncate_to(l, offset, by, ret_lying) : rc;
}

/* A cut that was begun comes first. */
static int try_truncate(struct plog *l, int64_t offset, enum cut_by by, struct segment **ret_lying)
{
    int rc = 0;

    lock_take(&l->append_mu);
    if (offset < l->start_offset)
        rc = -ERANGE;
    else if (l->half_cut.seg != NULL)
        rc = truncate_sparing(l, offset, by, ret_lying);
    if (rc == 0 && offset < l->end_offset)
        rc = truncate_sparing(l, offset, by, ret_lying);
    lock_release(&l->append_mu);
    return rc;
}

int plog_truncate_by(struct plog *l, int64_t offset, enum cut_by by)
{
    lock_assert_held(&l->slow_mu);
    struct segment *lying = NULL;
    int rc = try_truncate(l, offset, by, &lying);

    while (rc == -EBADMSG && lying != NULL && by == CUT_BY_INDEX) {
        if (plog_repair_segment(l, lying) < 0)
            by = CUT_BY_SCAN; /* the log itself is damaged there */
        segment_unref(lying);
        lying = NULL;
        rc = try_truncate(l, offset, by, &lying);
    }
    segment_unref(lying);
    return rc;
}

int plog_truncate(struct plog *l, int64_t offset)
{
    lock_take(&l->slow_mu);
    int rc = plog_truncate_by(l, offset, CUT_BY_INDEX);
    lock_release(&l->slow_mu);
    plog_call_done(l);
    return rc == -EBADMSG || rc == -ERANGE ? rc : plog_disk_error(l, rc, l->name);
}
