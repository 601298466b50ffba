/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The follower's way into a log: batches come as the leader has them, with offsets and epochs, many in one piece, and are
 * stored byte for byte. Where the leader's log was compacted offsets are missing; they never go back, and epochs never fall
 * (S1). Segments end where the leader's do, since both ask plog_roll_is_due(). Batches that lie one behind the other go to
 * the file with one write, and either all of these are in the log or none (S2).
 *
 * Everything is judged before a lock is taken. Below: a log that starts anew elsewhere.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/clean_int.h"
#include "lib/store/plog_check.h"
#include "lib/store/recover.h"

struct copied_batch {
    struct batch_header h;
    const uint8_t *p;
    int64_t text_bytes;
};

struct copy {
    struct copied_batch *v; /* those that were judged good, in order */
    size_t n, cap;
    const char *bad;  /* why the next one is not */
    struct batch_header bad_header;
};

/* ---- judging ---- */

/* What is wrong with it behind the one before, whose checksum was right as this one's is. */
static const char *batch_fault(const struct copy *c, const struct batch_header *h, int64_t size)
{
    if (!batch_header_plausible(h, size) || h->base_offset > INT64_MAX - 1 - h->last_offset_delta)
        return "a batch's counts contradict each other";
    if (h->leader_epoch < 0)
        return "a batch has no leader epoch";
    if (c->n == 0)
        return NULL;
    const struct batch_header *before = &c->v[c->n - 1].h;
    if (h->base_offset <= batch_last_offset(before))
        return "offsets go back";
    return h->leader_epoch < before->leader_epoch ? "leader epochs go back" : NULL;
}

static void keep(struct copy *c, const struct batch_header *h, const uint8_t *p, int64_t text_bytes)
{
    if (c->n == c->cap) {
        c->cap = c->cap == 0 ? 16 : c->cap * 2;
        c->v = xreallocarray(c->v, c->cap, sizeof *c->v);
    }
    c->v[c->n++] = (struct copied_batch){ *h, p, text_bytes };
}

/* Up to the first that is bad, or that is not all there. */
static void judge_all(struct slice rest, struct copy *c)
{
    struct record_iter it;
    struct batch_header h = { .base_offset = -1 };

    record_iter_init(&it);
    while (rest.n > 0) {
        int rc = batch_check(rest, BATCH_BYTES_MAX, &h);
        if (rc == -EAGAIN)
            break;
        c->bad = rc < 0 ? "a batch is damaged" : batch_fault(c, &h, batch_size(&h));
        c->bad_header = h;
        if (c->bad != NULL)
            break;
        struct slice one = slice_of(rest.p, (size_t)batch_size(&h));
        keep(c, &h, rest.p, batch_text_bytes(&it, one));
        rest = slice_of(rest.p + one.n, rest.n - one.n);
    }
    record_iter_done(&it);
}

/* ---- appending; under append_mu ---- */

/* Does it go behind the end? 1; 0: it is in the log already; -EBADMSG: neither, and c->bad says why. Under mu. */
static int find_place(struct plog *l, struct copy *c, const struct batch_header *h)
{
    bool behind = h->base_offset >= l->end_offset;
    bool reached = behind && batch_last_offset(h) - l->end_offset <= INT32_MAX; /* a segment from here on can have it */

    if (reached && h->leader_epoch >= epochs_at(&l->epochs, l->end_offset - 1))
        return 1;
    if (behind)
        c->bad = reached ? "its leader epoch is older than the log's last" : "more offsets are missing than any segment spans";
    else if (batch_last_offset(h) >= l->end_offset)
        c->bad = "it begins below the log's end and reaches over it";
    else if (h->base_offset >= l->start_offset && epochs_at(&l->epochs, h->base_offset) != h->leader_epoch)
        c->bad = "the log has a batch of another leader epoch there";
    else
        return 0;
    c->bad_header = *h;
    return -EBADMSG;
}

/* A run: batches that lie one behind the other and go into the same segment. */
struct run {
    size_t first, n; /* in copy.v */
    size_t bytes;
    bool roll; /* into a new segment */
    int64_t writeback_bytes;
};

/* From batch i on, which goes behind the end. Under mu. */
static struct run plan_run(const struct plog *l, const struct copy *c, size_t i, int64_t now_ms)
{
    struct filling f = plog_filling(l);
    struct run r = { .first = i, .writeback_bytes = l->cfg.writeback_bytes };

    for (; i < c->n; i++) {
        const struct batch_header *h = &c->v[i].h;
        bool roll = plog_roll_is_due(l, &f, h, h->base_offset, now_ms);
        if (roll && r.n > 0)
            break;
        if (roll) {
            r.roll = true;
            f = (struct filling){ .base = l->end_offset, .first_timestamp = -1 };
        }
        if (f.size == 0)
            f.first_timestamp = h->max_timestamp;
        f.size += batch_size(h);
        r.bytes += (size_t)batch_size(h);
        r.n++;
    }
    return r;
}

/* Index tails are written as they fill up, which is rare and needs mu released. */
static void take_in_run(struct plog *l, const struct copy *c, const struct run *r, int64_t now_ms)
{
    struct segment *s = plog_active(l);

    lock_take(&l->mu);
    for (size_t i = r->first; i < r->first + r->n; i++) {
        if (segment_tails_full(s)) {
            lock_release(&l->mu);
            segment_write_tails(s, &l->mu); /* an error makes the index sparser, no more */
            lock_take(&l->mu);
        }
        plog_take_in(l, &c->v[i].h, c->v[i].text_bytes, now_ms);
    }
    lock_release(&l->mu);
    segfile_unpin(s->log);
}

static int append_run(struct plog *l, const struct copy *c, const struct run *r, int64_t now_ms,
                      struct plog_copied *ret)
{
    int rc = r->roll ? plog_roll(l, l->end_offset) : 0;

    if (rc < 0)
        return plog_disk_error(l, rc, l->name);
    ret->rolled |= r->roll;
    rc = plog_write_batches(l, plog_active(l), c->v[r->first].p, r->bytes, r->writeback_bytes);
    if (rc < 0)
        return rc;
    take_in_run(l, c, r, now_ms);
    ret->appended += (int32_t)r->n;
    return 0;
}

/* An epoch that this broker led and in which nothing was written: what the leader has there is of other epochs. */
static void forget_empty_epoch(struct plog *l)
{
    if (epochs_truncate_end(&l->epochs, l->end_offset))
        l->epochs_dirty = true;
    l->epoch_is_new = false;
}

static int append_all(struct plog *l, struct copy *c, int64_t now_ms, struct plog_copied *ret)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < c->n;) {
        struct run r = { .n = 1 };
        lock_take(&l->mu);
        int place = find_place(l, c, &c->v[i].h);
        if (place == 1) {
            forget_empty_epoch(l);
            r = plan_run(l, c, i, now_ms);
        }
        lock_release(&l->mu);
        rc = place == 1 ? append_run(l, c, &r, now_ms, ret) : place;
        i += r.n;
    }
    return rc;
}

int plog_append_copy(struct plog *l, struct slice batches, int64_t now_ms, struct plog_copied *ret)
{
    struct copy c = { 0 };
    int rc = 0;

    *ret = (struct plog_copied){ .bad_offset = -1 };
    if (datadir_failed(l->dd))
        return -EROFS;
    judge_all(batches, &c);
    lock_take(&l->append_mu);
    if (l->half_cut.seg != NULL || l->restart_base >= 0)
        rc = -EAGAIN; /* a truncation has to be tried again first */
    else if (c.n > 0 && datadir_is_full(l->dd))
        rc = -ENOSPC;
    else
        rc = append_all(l, &c, now_ms, ret);
    ret->end_offset = l->end_offset;
    lock_release(&l->append_mu);
    if (rc == 0 && c.bad != NULL)
        rc = -EBADMSG;
    if (rc == -EBADMSG) {
        ret->bad = c.bad;
        ret->bad_offset = c.bad_header.base_offset;
    }
    free(c.v);
    plog_call_done(l);
    return rc;
}

/* ---- starting anew elsewhere ---- */

/* The segment is as it will be when all in front of it has gone. Under append_mu. */
static void set_text_base(struct plog *l, int64_t text_base)
{
    struct segment *s = plog_active(l);

    lock_take(&l->mark_mu); /* no flush of what goes ends meanwhile */
    lock_take(&l->mu);
    KINVARIANT("S12", s->sum.size == 0 && s->base == l->end_offset);
    s->text_base = text_base;
    l->restart_base = s->base;
    l->generation++; /* text positions are others */
    l->n_borders = l->n_read_ends = 0;
    plog_note_border(l);
    lock_release(&l->mu);
    lock_release(&l->mark_mu);
}

/* What was known belongs to offsets that are gone. */
static void forget_all(struct plog *l)
{
    const struct segment *s = plog_active(l);

    lock_take(&l->append_mu);
    lock_take(&l->mu);
    epochs_truncate_end(&l->epochs, 0);
    l->epochs_dirty = true;
    l->epoch_is_new = false;
    producers_clear(&l->producers);
    l->producers.unsure_below = s->base;
    l->restart_base = -1;
    lock_release(&l->mu);
    lock_release(&l->append_mu);
}

/* An empty active segment from `base` on, which nothing is in front of but what is about to go. */
static int begin_segment(struct plog *l, int64_t base, int64_t text_base)
{
    int rc = 0;

    lock_take(&l->append_mu);
    if (l->half_cut.seg != NULL)
        rc = -EAGAIN; /* a truncation has to be tried again first */
    else if (base < l->end_offset || (base == l->end_offset && l->size_bytes > 0 && l->restart_base < 0))
        rc = -EINVAL;
    else if (plog_active(l)->base != base)
        rc = plog_roll(l, base);
    if (rc == 0) {
        set_text_base(l, text_base);
        rc = segment_write_header(plog_active(l), false);
        if (rc == 0)
            rc = segfile_sync(plog_active(l)->text.file);
    }
    lock_release(&l->append_mu);
    return rc == -EINVAL || rc == -EAGAIN ? rc : plog_disk_error(l, rc, l->name);
}

/* Snapshots of producers speak of batches that are let go of, and of sequences that may come once more. They go before the new
 * start is there: without any, a start has what the log says. */
static int drop_snapshots(struct plog *l)
{
    struct recovery r = { .l = l };
    int rc = listing_read(l->io, l->dirfd, l->name, &r.ls);

    if (rc == 0)
        rc = recovery_drop_snapshots(&r, -1);
    listing_done(&r.ls);
    if (rc == 0) {
        l->snapshot_offset = -1;
        l->snapshot_empty = false;
        plog_drop_pending(l);
    }
    return plog_disk_error(l, rc, l->name);
}

/* The new segment first: a crash before its start is durable leaves the log as it was, one after it a log that begins
 * there. So does an error, after which a restart at the same place or above goes on, or a truncation leads back. */
int plog_restart(struct plog *l, int64_t base, int64_t text_base)
{
    KCHECK(base >= 0 && text_base >= 0);
    lock_take(&l->slow_mu);
    int rc = clean_settle_locked(l); /* a manifest speaks of the log as it was */
    if (rc == 0)
        rc = begin_segment(l, base, text_base);
    if (rc == 0)
        rc = plog_disk_error(l, io_sync_dir(l->io, l->dirfd, l->name), l->name);
    if (rc == 0)
        rc = drop_snapshots(l);
    if (rc == 0)
        rc = plog_delete_front(l, base);
    if (rc >= 0)
        forget_all(l);
    lock_release(&l->slow_mu);
    plog_call_done(l);
    return rc < 0 ? rc : 0;
}
