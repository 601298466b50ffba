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
#include "lib/store/plog_int.h"

#define CHECKPOINT_EVERY_BYTES    (64LL << 20)
#define CHECKPOINT_EVERY_SEGMENTS 64 /* a recovery pays for each file as well */

void snapshot_path(const struct plog *l, int64_t offset, char *ret, size_t size)
{
    segment_path(ret, size, l->name, offset, ".producers");
}

static int replace(struct plog *l, const char *file, const void *p, size_t n)
{
    char path[PATH_MAX];

    plog_path(l, file, path, sizeof path);
    return io_replace_file(l->io, l->dirfd, l->name, path, p, n);
}

int plog_write_epochs(struct plog *l)
{
    struct bytebuf b = { 0 };

    pthread_mutex_lock(&l->mu);
    bool dirty = l->epochs_dirty;
    l->epochs_dirty = false;
    epochs_encode(&l->epochs, &b);
    pthread_mutex_unlock(&l->mu);
    int rc = dirty ? replace(l, EPOCHS_FILE, b.p, b.n) : 0;
    bytebuf_done(&b);
    if (rc < 0) {
        pthread_mutex_lock(&l->mu);
        l->epochs_dirty = true;
        pthread_mutex_unlock(&l->mu);
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

/* Producer state as of the log's end. That may be above the flush point: a snapshot that the log does not
 * reach is not used by recovery, which is why older ones are kept. */
static int write_snapshot(struct plog *l)
{
    struct bytebuf b = { 0 };
    char path[PATH_MAX];
    int rc = 0;

    pthread_mutex_lock(&l->mu);
    int64_t offset = l->end_offset;
    bool empty = l->producers.n == 0;
    if (!empty && offset != l->snapshot_offset)
        producers_encode(&l->producers, offset, &b);
    pthread_mutex_unlock(&l->mu);
    if (b.n > 0) {
        snapshot_path(l, offset, path, sizeof path);
        rc = io_replace_file(l->io, l->dirfd, l->name, path, b.p, b.n);
        bytebuf_done(&b);
        if (rc == 0)
            remove_old_snapshots(l);
    }
    if (rc == 0) {
        l->snapshot_offset = offset;
        l->snapshot_empty = empty;
    }
    return rc;
}

/* Index entries that the checkpoint counts are on disk before it is. */
static void sync_indexes(struct plog *l, int64_t from_segment)
{
    for (;;) {
        pthread_mutex_lock(&l->mu);
        int i = plog_find_segment(l, from_segment);
        struct segment *s =
            l->segs[i]->base >= from_segment || i + 1 == l->n_segs ? l->segs[i] : l->segs[i + 1];
        bool last = s == plog_active(l);
        segment_ref(s);
        pthread_mutex_unlock(&l->mu);
        segfile_sync(s->index.file);
        segfile_sync(s->time.file);
        segfile_sync(s->text.file);
        from_segment = s->base + 1;
        segment_unref(s);
        if (last)
            return;
    }
}

int plog_write_claims(struct plog *l, int64_t hw)
{
    uint8_t bytes[CHECKPOINT_BYTES];
    struct checkpoint c = { .hw = hw };
    struct checkpoint old;
    bool have_old = checkpoint_decode(slice_of(l->saved, sizeof l->saved), &old);

    pthread_mutex_lock(&l->mu);
    c.start_offset = l->start_offset;
    c.flushed = l->flushed;
    l->flushed_bytes = 0;
    l->dir_checkpointed = l->dir_changes;
    pthread_mutex_unlock(&l->mu);
    int rc = write_snapshot(l);
    if (rc < 0)
        return plog_disk_error(l, rc, l->name);
    c.producers_offset = l->snapshot_offset;
    c.producers_empty = l->snapshot_empty;
    checkpoint_encode(bytes, &c);
    rc = plog_write_epochs(l);
    if (rc == 0 && memcmp(bytes, l->saved, sizeof bytes) != 0) {
        sync_indexes(l, have_old ? old.flushed.segment : c.flushed.segment);
        rc = replace(l, CHECKPOINT_FILE, bytes, sizeof bytes);
        if (rc == 0)
            memcpy(l->saved, bytes, sizeof bytes);
    }
    return plog_disk_error(l, rc, l->name);
}

int plog_write_checkpoint(struct plog *l, int64_t hw)
{
    pthread_mutex_lock(&l->append_mu);
    segment_write_tails(plog_active(l), &l->mu); /* an error makes the index sparser, no more */
    pthread_mutex_unlock(&l->append_mu);
    return plog_write_claims(l, hw);
}

int plog_checkpoint(struct plog *l, int64_t hw, bool force)
{
    pthread_mutex_lock(&l->slow_mu);
    pthread_mutex_lock(&l->mu);
    bool due = force || l->flushed_bytes >= CHECKPOINT_EVERY_BYTES ||
               l->dir_changes - l->dir_checkpointed >= CHECKPOINT_EVERY_SEGMENTS;
    pthread_mutex_unlock(&l->mu);
    int rc = due ? plog_write_checkpoint(l, hw) : 0;
    pthread_mutex_unlock(&l->slow_mu);
    return rc;
}

int plog_mark_start(struct plog *l, int64_t offset)
{
    char path[PATH_MAX];

    if (offset <= l->start_marker)
        return 0;
    segment_path(path, sizeof path, l->name, offset, ".start");
    int rc = io_touch(l->io, l->dirfd, path);
    if (datadir_spend_reserve(l->dd, rc))
        rc = io_touch(l->io, l->dirfd, path);
    if (rc == 0)
        rc = io_sync_dir(l->io, l->dirfd, l->name);
    if (rc < 0)
        return plog_disk_error(l, rc, l->name);
    if (l->start_marker >= 0) {
        segment_path(path, sizeof path, l->name, l->start_marker, ".start");
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
    pthread_mutex_lock(&l->mu);
    if (epochs_assign(&l->epochs, epoch, l->end_offset))
        l->epoch_is_new = true;
    pthread_mutex_unlock(&l->mu);
}

int32_t plog_epoch_latest(struct plog *l)
{
    pthread_mutex_lock(&l->mu);
    int32_t epoch = epochs_latest(&l->epochs);
    pthread_mutex_unlock(&l->mu);
    return epoch;
}

void plog_epoch_end(struct plog *l, int32_t epoch, int32_t *ret_epoch, int64_t *ret_end)
{
    pthread_mutex_lock(&l->mu);
    epochs_end(&l->epochs, epoch, l->end_offset, ret_epoch, ret_end);
    pthread_mutex_unlock(&l->mu);
}

int32_t plog_epoch_at(struct plog *l, int64_t offset)
{
    pthread_mutex_lock(&l->mu);
    int32_t epoch = epochs_at(&l->epochs, offset);
    pthread_mutex_unlock(&l->mu);
    return epoch;
}

void plog_expire_producers(struct plog *l, int64_t now_ms)
{
    pthread_mutex_lock(&l->mu);
    if (l->cfg.producer_expiry_ms >= 0)
        producers_expire(&l->producers, now_ms - l->cfg.producer_expiry_ms);
    pthread_mutex_unlock(&l->mu);
}
