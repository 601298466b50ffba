/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropping the log's end (S11). First everything that makes claims about the log is durably lowered: producer
 * snapshots beyond the new end, leader epochs, the flush point. Then the files are cut. A crash anywhere in
 * between leaves claims that are true of either log.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/clean_int.h"
#include "lib/store/recover.h"

/* The batch border at or below `offset`, in the segment that holds it, and the sum of what stays of that
 * segment. */
struct cut {
    int i;
    struct segment *seg;
    struct segment_sum sum;
    int64_t text_base;
};

/* How many entries have a key below `target`. */
static int count_below(struct plog *l, struct entries *e, struct entry_key key, int64_t target, int32_t *ret)
{
    uint8_t entry[ENTRY_BYTES_MAX];
    int32_t i = -1;
    int rc = entries_floor(e, &l->mu, key, target - 1, entry, &i);

    *ret = rc == 1 ? i + 1 : 0;
    return rc < 0 ? rc : 0;
}

static int count_entries(struct plog *l, struct segment *s, struct segment_sum *sum)
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
    sum->since_index = sum->size - indexed_at;
    return rc;
}

/* Greatest timestamps of what stays, by the batch headers: only what no longer has its summary needs it. */
static int sum_timestamps(struct plog *l, struct segment *s, struct segment_sum *sum)
{
    struct logscan scan;
    struct scan_item it;
    int rc = segfile_pin(s->log, false);

    if (rc < 0)
        return rc;
    logscan_init(&scan, l->io, segfile_fd(s->log), 0, sum->size, s->base);
    scan.limit_offset = sum->end_offset;
    scan.check_crc = false;
    while ((rc = logscan_next(&scan, &it)) == 0 && it.what != SCAN_END) {
        if (it.what != SCAN_BATCH)
            continue;
        if (it.at == 0)
            sum->first_timestamp = it.h.max_timestamp;
        if (it.h.max_timestamp > sum->max_timestamp) {
            sum->max_timestamp = it.h.max_timestamp;
            sum->max_timestamp_offset = batch_last_offset(&it.h);
        }
    }
    logscan_done(&scan);
    segfile_unpin(s->log);
    return rc;
}

static int find_cut(struct plog *l, int64_t offset, struct cut *ret)
{
    struct place at;
    int64_t text;

    ret->i = plog_find_segment(l, offset);
    ret->seg = l->segs[ret->i];
    int rc = plog_load_segment(l, ret->seg);
    ret->text_base = ret->seg->text_base;
    ret->sum = segment_sum_empty(ret->seg->base);
    if (rc < 0 || offset <= ret->seg->base)
        return rc;
    rc = plog_locate(l, ret->seg, offset, ret->seg->sum.size, &at);
    if (rc < 0)
        return rc;
    ret->sum.size = rc == 1 ? at.position : ret->seg->sum.size;
    ret->sum.end_offset = rc == 1 ? at.h.base_offset : ret->seg->sum.end_offset;
    rc = plog_text_of_offset(l, MAX(ret->sum.end_offset, l->start_offset), &text);
    ret->sum.text_bytes = rc == 0 ? text - ret->text_base : 0;
    if (rc == 0)
        rc = count_entries(l, ret->seg, &ret->sum);
    if (rc == 0)
        rc = sum_timestamps(l, ret->seg, &ret->sum);
    return rc;
}

/* The log as it will be, in memory; returns the segments that go. Under append_mu. */
static struct segment **lower_in_memory(struct plog *l, const struct cut *c, int *ret_n)
{
    pthread_mutex_lock(&l->mu);
    int n = l->n_segs - c->i - 1;
    struct segment **gone = xcalloc((size_t)n + 1, sizeof(struct segment *));
    for (int i = 0; i < n; i++) {
        gone[i] = l->segs[c->i + 1 + i];
        gone[i]->gone = true;
        l->size_bytes -= gone[i]->sum.size;
    }
    l->n_segs = c->i + 1;
    l->size_bytes -= c->seg->sum.size - c->sum.size;
    segment_reset(c->seg, &c->sum);
    c->seg->flushed = MIN(c->seg->flushed, c->sum.size);
    l->generation++;
    l->n_borders = l->n_read_ends = 0;
    l->end_offset = c->sum.end_offset;
    if (l->flushed.sum.end_offset >= c->sum.end_offset || l->flushed.segment > c->seg->base)
        l->flushed = plog_point(l);
    if (epochs_truncate_end(&l->epochs, c->sum.end_offset))
        l->epochs_dirty = true;
    plog_note_border(l);
    pthread_mutex_unlock(&l->mu);
    l->written_back = MIN(l->written_back, c->sum.size);
    *ret_n = n;
    return gone;
}

/* Producer state as of the new end, from an older snapshot and the log. Snapshots beyond the end are removed.
 */
static int reload_producers(struct plog *l)
{
    struct plog_recovery rec = { 0 };
    struct recovery r = { .l = l, .rec = &rec, .now_ms = MAX(l->newest_ms, 0) };

    r.have_ckpt = checkpoint_decode(slice_of(l->saved, sizeof l->saved), &r.ckpt);
    int rc = listing_read(l->io, l->dirfd, l->name, &r.ls);
    if (rc == 0) {
        pthread_mutex_lock(&l->mu);
        producers_clear(&l->producers);
        pthread_mutex_unlock(&l->mu);
        rc = recovery_load_producers(&r);
    }
    listing_done(&r.ls);
    return rc;
}

static int cut_files(struct plog *l, struct segment **gone, int n_gone, struct segment *last)
{
    pthread_mutex_lock(&l->fix_mu);
    int rc = 0;
    for (int i = n_gone - 1; rc == 0 && i >= 0; i--)
        rc = segment_unlink(gone[i]);
    pthread_mutex_unlock(&l->fix_mu);
    if (rc == 0)
        rc = segfile_truncate(last->log, last->sum.size);
    if (rc == 0)
        rc = segment_trim_files(last);
    if (rc == 0)
        rc = segfile_sync(last->log);
    return rc < 0 ? rc : io_sync_dir(l->io, l->dirfd, l->name);
}

static int64_t saved_hw(const struct plog *l)
{
    struct checkpoint c;
    return checkpoint_decode(slice_of(l->saved, sizeof l->saved), &c) ? c.hw : 0;
}

/* Under slow_mu and append_mu. */
static int truncate_to(struct plog *l, int64_t offset)
{
    struct cut c;
    int n_gone;
    int rc = segment_write_tails(plog_active(l), &l->mu);

    if (rc == 0) /* a manifest speaks of the log as it was */
        rc = clean_settle_locked(l);
    if (rc == 0)
        rc = find_cut(l, offset, &c);
    if (rc < 0)
        return rc;
    struct segment **gone = lower_in_memory(l, &c, &n_gone);
    rc = reload_producers(l);
    if (rc == 0)
        rc = plog_write_claims(l, MIN(saved_hw(l), l->end_offset));
    if (rc == 0)
        rc = cut_files(l, gone, n_gone, c.seg);
    for (int i = 0; i < n_gone; i++)
        segment_unref(gone[i]);
    free(gone);
    return plog_disk_error(l, rc, l->name);
}

int plog_truncate(struct plog *l, int64_t offset)
{
    int rc = 0;

    pthread_mutex_lock(&l->slow_mu);
    pthread_mutex_lock(&l->append_mu);
    if (offset < l->start_offset)
        rc = -ERANGE;
    else if (offset < l->end_offset)
        rc = truncate_to(l, offset);
    pthread_mutex_unlock(&l->append_mu);
    pthread_mutex_unlock(&l->slow_mu);
    return rc;
}
