/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a log writes beside its segments: checkpoint, producer snapshots, leader epochs, the start marker. All
 * by rule S6, all under slow_mu, all of it less than the log is: it may lag, it never leads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/varint.h"
#include "lib/store/plog_check.h"
#include "lib/store/plog_int.h"
#include "lib/store/start_mark.h"

#define CHECKPOINT_EVERY_BYTES    (64LL << 20)
#define CHECKPOINT_EVERY_SEGMENTS 64 /* a recovery pays for each file as well */

void snapshot_path(const struct plog *l, int64_t offset, char *ret, size_t size)
{
    segment_path(ret, size, l->name, offset, ".producers");
}

int plog_replace(struct plog *l, const char *file, const void *p, size_t n)
{
    char path[PATH_MAX];

    plog_path(l, file, path, sizeof path);
    return io_replace_file(l->io, l->dirfd, l->name, path, p, n);
}

int plog_write_epochs(struct plog *l)
{
    lock_assert_held(&l->slow_mu);
    struct bytebuf b = { 0 };

    lock_take(&l->mu);
    bool dirty = l->epochs_dirty;
    l->epochs_dirty = false;
    epochs_encode(&l->epochs, &b);
    lock_release(&l->mu);
    int rc = dirty ? plog_replace(l, EPOCHS_FILE, b.p, b.n) : 0;
    bytebuf_done(&b);
    if (rc < 0) {
        lock_take(&l->mu);
        l->epochs_dirty = true;
        lock_release(&l->mu);
    }
    return rc;
}

static void remove_old_snapshots(struct plog *l)
{
    struct listing ls;
    char path[PATH_MAX];

    if (listing_read(l->io, l->dirfd, l->name, &ls) < 0)
        return;
    for (int i = 0; i + SNAPSHOTS_KEPT < ls.n_snapshots; i++) {
        snapshot_path(l, ls.snapshots[i], path, sizeof path);
        l->io->unlinkat(l->io, l->dirfd, path, 0);
    }
    listing_done(&ls);
}

/* Producer state as of the log's end, kept until the flush point has got there. */
static void take_pending(struct plog *l)
{
    lock_assert_held(&l->slow_mu);
    struct pending_snapshot *p = &l->pending;

    p->bytes.n = 0;
    p->offset = l->end_offset;
    p->empty = l->producers.n == 0;
    if (!p->empty)
        producers_encode(&l->producers, p->offset, l->identity, &p->bytes);
}

static int write_pending(struct plog *l)
{
    struct pending_snapshot *p = &l->pending;
    char path[PATH_MAX];
    int rc = 0;

    if (!p->empty) {
        snapshot_path(l, p->offset, path, sizeof path);
        rc = io_replace_file(l->io, l->dirfd, l->name, path, p->bytes.p, p->bytes.n);
        if (rc == 0)
            remove_old_snapshots(l);
    }
    if (rc < 0)
        return rc;
    l->snapshot_offset = p->offset;
    l->snapshot_empty = p->empty;
    plog_drop_pending(l);
    return 0;
}

void plog_drop_pending(struct plog *l)
{
    bytebuf_done(&l->pending.bytes);
    l->pending.offset = -1;
}

/* S4: no snapshot is of an offset above the flush point. After a power cut the log could end below it and grow
 * past it with other batches, and then it would be believed. While appends go on the end is always above: the
 * state is taken now and written by a later checkpoint. flushed: what the checkpoint will claim; flushes go on meanwhile. */
static int write_snapshot(struct plog *l, int64_t flushed)
{
    lock_take(&l->mu);
    if (flushed == l->end_offset && flushed != l->snapshot_offset)
        take_pending(l);
    lock_release(&l->mu);
    int rc = l->pending.offset >= 0 && l->pending.offset <= flushed ? write_pending(l) : 0;
    lock_take(&l->mu);
    if (rc == 0 && l->pending.offset < 0 && l->end_offset > flushed)
        take_pending(l);
    lock_release(&l->mu);
    return rc;
}

/* Index entries that the checkpoint counts are on disk before it is. */
static void sync_indexes(struct plog *l, int64_t from_segment)
{
    for (;;) {
        lock_take(&l->mu);
        int i = plog_find_segment(l, from_segment);
        struct segment *s =
            l->segs[i]->base >= from_segment || i + 1 == l->n_segs ? l->segs[i] : l->segs[i + 1];
        bool last = s == plog_active(l);
        segment_ref(s);
        lock_release(&l->mu);
        segfile_sync(s->index.file);
        segfile_sync(s->time.file);
        segfile_sync(s->text.file);
        from_segment = s->base + 1;
        segment_unref(s);
        if (last)
            return;
    }
}

uint32_t plog_sealed_sum(const struct plog *l, int n)
{
    uint32_t crc = 0;

    for (int i = 0; i < n; i++) {
        uint8_t p[16];
        put_be64(p, (uint64_t)l->segs[i]->base);
        put_be64(p + 8, (uint64_t)l->segs[i]->sum.size);
        crc = crc32c(crc, p, sizeof p);
    }
    return crc;
}

int plog_save_checkpoint(struct plog *l, const struct checkpoint *c)
{
    lock_assert_held(&l->slow_mu);
    uint8_t bytes[CHECKPOINT_BYTES];
    struct checkpoint old;
    bool have_old = checkpoint_decode(slice_of(l->saved, sizeof l->saved), &old);

    KCHECK(c->identity == l->identity);
    KINVARIANT("S4", c->producers_offset <= c->flushed.sum.end_offset);
    checkpoint_encode(bytes, c);
    l->is_late = l->save_late && memcmp(bytes, l->saved, sizeof bytes) != 0;
    if (l->is_late)
        memcpy(l->late, bytes, sizeof bytes);
    if (l->is_late || memcmp(bytes, l->saved, sizeof bytes) == 0)
        return 0;
    sync_indexes(l, have_old ? old.flushed.segment : c->flushed.segment);
    int rc = plog_replace(l, CHECKPOINT_FILE, bytes, sizeof bytes);
    if (rc == 0)
        memcpy(l->saved, bytes, sizeof bytes);
    return rc;
}

int plog_write_checkpoint(struct plog *l, int64_t hw)
{
    lock_assert_held(&l->slow_mu);
    struct checkpoint c = { .hw = hw, .identity = l->identity };

    lock_take(&l->append_mu);
    segment_write_tails(plog_active(l), &l->mu); /* an error makes the index sparser, no more */
    lock_release(&l->append_mu);
    lock_take(&l->mu);
    c.start_offset = l->start_offset;
    c.flushed = l->flushed;
    c.sealed = plog_sealed_sum(l, l->n_segs - 1);
    KINVARIANT("S4", c.flushed.sum.end_offset <= l->end_offset);
    l->flushed_bytes = 0;
    l->dir_checkpointed = l->dir_changes;
    lock_release(&l->mu);
    int rc = write_snapshot(l, c.flushed.sum.end_offset);
    if (rc == 0)
        rc = plog_write_epochs(l);
    if (rc < 0)
        return plog_disk_error(l, rc, l->name);
    rc = plog_keep_mark(l);
    if (rc == 1)
        rc = io_sync_dir(l->io, l->dirfd, l->name);
    if (rc < 0)
        return plog_disk_error(l, rc, l->name);
    c.producers_offset = l->snapshot_offset;
    c.producers_empty = l->snapshot_empty;
    return plog_disk_error(l, plog_save_checkpoint(l, &c), l->name);
}

int plog_checkpoint(struct plog *l, int64_t hw, bool force)
{
    lock_take(&l->slow_mu);
    lock_take(&l->mu);
    bool due = force || l->flushed_bytes >= CHECKPOINT_EVERY_BYTES ||
               l->dir_changes - l->dir_checkpointed >= CHECKPOINT_EVERY_SEGMENTS;
    lock_release(&l->mu);
    due = due && l->half_cut.seg == NULL; /* its claims were lowered */
    int rc = due ? plog_write_checkpoint(l, hw) : 0;
    lock_release(&l->slow_mu);
    plog_call_done(l);
    return rc;
}

/* ---- of many logs together ---- */

int plog_checkpoint_prepare(struct plog *l, int64_t hw)
{
    int rc = plog_flush_all(l);

    lock_take(&l->slow_mu);
    l->save_late = true;
    if (rc == 0)
        rc = plog_write_checkpoint(l, hw);
    l->save_late = false;
    lock_release(&l->slow_mu);
    return rc;
}

bool plog_checkpoint_is_late(const struct plog *l)
{
    return l->is_late;
}

static int write_late(struct plog *l)
{
    char tmp[PATH_MAX];

    plog_path(l, CHECKPOINT_FILE ".tmp", tmp, sizeof tmp);
    return io_write_unsynced(l->io, l->dirfd, tmp, l->late, sizeof l->late);
}

static int rename_late(struct plog *l)
{
    char tmp[PATH_MAX], path[PATH_MAX];

    plog_path(l, CHECKPOINT_FILE ".tmp", tmp, sizeof tmp);
    plog_path(l, CHECKPOINT_FILE, path, sizeof path);
    return l->io->renameat(l->io, l->dirfd, tmp, l->dirfd, path);
}

static int each_late(struct plog *const *logs, size_t n, const struct datadir *dd, int (*f)(struct plog *l))
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        if (logs[i]->is_late && logs[i]->dd == dd)
            rc = f(logs[i]);
    return rc;
}

static int note_saved(struct plog *l)
{
    memcpy(l->saved, l->late, sizeof l->saved);
    l->is_late = false;
    return 0;
}

/* Also the index entries that the checkpoints count are on disk before these are. */
static int save_late_in(struct datadir *dd, struct plog *const *logs, size_t n)
{
    const struct store_io *io = datadir_io(dd);
    int rc = each_late(logs, n, dd, write_late);

    if (rc == 0)
        rc = io->syncfs(io, datadir_fd(dd));
    if (rc == 0)
        rc = each_late(logs, n, dd, rename_late);
    if (rc == 0)
        rc = io->syncfs(io, datadir_fd(dd));
    return rc == 0 ? each_late(logs, n, dd, note_saved) : rc;
}

int plog_checkpoint_together(struct plog *const *logs, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        if (logs[i]->is_late)
            rc = plog_disk_error(logs[i], save_late_in(logs[i]->dd, logs, n), "checkpoints");
    return rc;
}

int plog_mark_start(struct plog *l, int64_t offset)
{
    lock_assert_held(&l->slow_mu);
    const struct start_mark m = { .offset = offset, .identity = l->identity };
    uint8_t p[START_BYTES];
    char path[PATH_MAX];

    if (offset <= l->start_marker)
        return 0;
    start_encode(p, &m);
    segment_path(path, sizeof path, l->name, offset, START_SUFFIX);
    int rc = io_write_unsynced(l->io, l->dirfd, path, p, sizeof p);
    if (datadir_spend_reserve(l->dd, rc))
        rc = io_write_unsynced(l->io, l->dirfd, path, p, sizeof p);
    if (rc == 0)
        rc = io_sync_dir(l->io, l->dirfd, l->name); /* its name is enough: start_decode() */
    if (rc < 0) { /* the log begins where it did, and may be cut below that offset */
        l->io->unlinkat(l->io, l->dirfd, path, 0);
        return plog_disk_error(l, rc, l->name);
    }
    if (l->start_marker >= 0) {
        segment_path(path, sizeof path, l->name, l->start_marker, START_SUFFIX);
        l->io->unlinkat(l->io, l->dirfd, path, 0);
    }
    l->start_marker = offset;
    return 0;
}

/* ---- leader epochs ---- */

/* The entry need not be durable yet: a start that does not find it in the file finds it in the batches above
 * the checkpoint, and no checkpoint is written before the file has it. */
void plog_epoch_begin(struct plog *l, int32_t epoch)
{
    lock_take(&l->mu);
    if (epochs_assign(&l->epochs, epoch, l->end_offset))
        l->epoch_is_new = true;
    lock_release(&l->mu);
    plog_call_done(l);
}

int32_t plog_epoch_latest(struct plog *l)
{
    lock_take(&l->mu);
    int32_t epoch = epochs_latest(&l->epochs);
    lock_release(&l->mu);
    return epoch;
}

void plog_epoch_end(struct plog *l, int32_t epoch, int32_t *ret_epoch, int64_t *ret_end)
{
    lock_take(&l->mu);
    epochs_end(&l->epochs, epoch, l->end_offset, ret_epoch, ret_end);
    lock_release(&l->mu);
}

int32_t plog_epoch_at(struct plog *l, int64_t offset)
{
    lock_take(&l->mu);
    int32_t epoch = epochs_at(&l->epochs, offset);
    lock_release(&l->mu);
    return epoch;
}

int32_t plog_n_producers(struct plog *l)
{
    lock_take(&l->mu);
    int32_t n = l->producers.n;
    lock_release(&l->mu);
    return n;
}

void plog_producers_each(struct plog *l, void (*f)(void *arg, const struct producer_state *p), void *arg)
{
    lock_take(&l->mu);
    producers_each(&l->producers, f, arg);
    lock_release(&l->mu);
}

void plog_expire_producers(struct plog *l, int64_t now_ms)
{
    lock_take(&l->mu);
    if (l->cfg.producer_expiry_ms >= 0)
        producers_expire(&l->producers, now_ms - l->cfg.producer_expiry_ms);
    lock_release(&l->mu);
    plog_call_done(l);
}
