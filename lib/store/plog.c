/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing, appending, rolling. Threads and locks: plog_int.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/uuid.h"
#include "lib/base/world.h"
#include "lib/store/metafiles.h"
#include "lib/store/plog_check.h"
#include "lib/store/plog_int.h"

void plog_path(const struct plog *l, const char *file, char *ret, size_t size)
{
    int n = snprintf(ret, size, "%s/%s", l->name, file);
    KCHECK(n > 0 && (size_t)n < size);
}

struct segment *plog_active(const struct plog *l)
{
    return l->segs[l->n_segs - 1];
}

struct log_point plog_point(const struct plog *l)
{
    const struct segment *s = plog_active(l);
    return (struct log_point){ .segment = s->base, .text_base = s->text_base, .sum = segment_sum(s) };
}

void plog_push_segment(struct plog *l, struct segment *s)
{
    KCHECK(l->n_segs == 0 || plog_active(l)->base < s->base);
    if (l->n_segs == l->cap_segs) {
        l->cap_segs = l->cap_segs == 0 ? 4 : l->cap_segs * 2;
        l->segs = xreallocarray(l->segs, (size_t)l->cap_segs, sizeof(struct segment *));
    }
    l->segs[l->n_segs++] = s;
}

int plog_find_segment(const struct plog *l, int64_t offset)
{
    int low = 0, high = l->n_segs; /* the answer is in [low, high) */

    while (high - low > 1) {
        int mid = low + (high - low) / 2;
        if (l->segs[mid]->base <= offset)
            low = mid;
        else
            high = mid;
    }
    return low;
}

int64_t plog_segment_end(const struct plog *l, int i)
{
    lock_assert_held(&l->mu);
    return i + 1 < l->n_segs ? l->segs[i + 1]->base : l->end_offset;
}

void plog_note_border(struct plog *l)
{
    const struct segment *s = plog_active(l);

    l->borders[l->n_borders++ % BORDERS] = (struct border){
        .offset = l->end_offset,
        .segment = s->base,
        .position = s->sum.size,
        .text = s->text_base + s->sum.text_bytes,
    };
}

/* Offsets rise along the ring, so the newest few are looked at first: that is where readers are. */
bool plog_get_border(const struct plog *l, int64_t offset, const struct segment *s, struct border *ret)
{
    lock_assert_held(&l->mu);
    uint32_t n = MIN(l->n_borders, (uint32_t)BORDERS);

    for (uint32_t i = 1; i <= n; i++) {
        const struct border *b = &l->borders[(l->n_borders - i) % BORDERS];
        if (b->offset == offset && b->segment == s->base) {
            *ret = *b;
            return true;
        }
        if (b->offset < offset)
            return false;
    }
    return false;
}

int plog_disk_error(struct plog *l, int rc, const char *what)
{
    if (rc < 0 && rc != -ENOSPC && rc != -EDQUOT && !io_is_shortage(rc) && rc != -ENOENT)
        datadir_fail(l->dd, -rc, what);
    return rc;
}

/* ---- opening and closing ---- */

static struct plog *plog_new(struct datadir *dd, const char *topic, int32_t partition,
                             const struct uuid *topic_id, const struct plog_config *cfg)
{
    struct plog *l = xcalloc(1, sizeof *l);
    char path[PATH_MAX];
    struct uuid by_chance;
    int n = snprintf(l->name, sizeof l->name, "%s-%" PRId32, topic, partition);

    KCHECK(n > 0 && (size_t)n < sizeof l->name);
    l->dd = dd;
    l->io = datadir_io(dd);
    l->files = datadir_files(dd);
    l->dirfd = datadir_fd(dd);
    l->cfg = *cfg;
    l->newest_ms = -1;
    l->active_since_ms = -1;
    l->snapshot_offset = -1;
    l->start_marker = -1;
    l->restart_base = -1;
    l->gap_end = -1;
    l->pending.offset = -1;
    l->identity = partition_identity(topic_id, partition);
    plog_path(l, MARK_FILE, path, sizeof path);
    l->mark = segfile_new(l->files, path);
    uuid_random(datadir_world(dd)->random, &by_chance);
    memcpy(&l->opening, by_chance.b, sizeof l->opening);
    lock_init(&l->slow_mu, LOCK_RANK_SLOW, "slow_mu");
    lock_init(&l->append_mu, LOCK_RANK_APPEND, "append_mu");
    lock_init(&l->mark_mu, LOCK_RANK_MARK, "mark_mu");
    lock_init(&l->fix_mu, LOCK_RANK_FIX, "fix_mu");
    lock_init(&l->mu, LOCK_RANK_PLOG, "mu of a log");
    return l;
}

static void plog_free(struct plog *l)
{
    for (int i = 0; i < l->n_segs; i++)
        segment_unref(l->segs[i]);
    free(l->segs);
    segfile_unref(l->mark);
    bytebuf_done(&l->pending.bytes);
    producers_clear(&l->producers);
    epochs_done(&l->epochs);
    lock_done(&l->slow_mu);
    lock_done(&l->append_mu);
    lock_done(&l->mark_mu);
    lock_done(&l->fix_mu);
    lock_done(&l->mu);
    free(l);
}

/* A new directory and its parent's entry are durable before anything is in it (S5), also when an earlier start made the
 * directory and was killed before it could sync that. */
static int make_directory(struct plog *l, const struct uuid *topic_id, bool sync_later)
{
    struct uuid found;
    int rc = l->io->mkdirat(l->io, l->dirfd, l->name, 0755);

    l->made = rc == 0;
    l->unsynced = l->made && sync_later;
    if (rc < 0 && rc != -EEXIST)
        return rc;
    if (l->unsynced)
        return partition_metadata_write(l->io, l->dirfd, l->name, topic_id, false);
    rc = partition_metadata_read(l->io, l->dirfd, l->name, &found);
    if (rc == -ENOENT || rc == -EBADMSG) { /* who asks for it knows whose it is */
        rc = io_sync_dir(l->io, l->dirfd, ".");
        return rc < 0 ? rc : partition_metadata_write(l->io, l->dirfd, l->name, topic_id, true);
    }
    if (rc < 0)
        return rc;
    return uuid_eq(&found, topic_id) ? 0 : -ESTALE;
}

static int open_log(struct datadir *dd, const char *topic, int32_t partition, const struct uuid *topic_id,
                    const struct plog_config *cfg, int64_t now_ms, bool sync_later, struct plog **ret,
                    struct plog_recovery *rec)
{
    struct plog *l = plog_new(dd, topic, partition, topic_id, cfg);

    *rec = (struct plog_recovery){ 0 };
    int rc = make_directory(l, topic_id, sync_later);
    if (rc == 0)
        rc = plog_recover(l, datadir_was_clean(dd), !l->made, now_ms, rec);
    if (l->made && (rc == -ENOSPC || rc == -EDQUOT)) { /* nothing of a log that there is no room for stays */
        datadir_remove_tree(l->io, l->dirfd, l->name);
        io_sync_dir(l->io, l->dirfd, ".");
    }
    if (rc < 0) {
        plog_free(l);
        return rc;
    }
    *ret = l;
    plog_call_done(l);
    return 0;
}

int plog_open(struct datadir *dd, const char *topic, int32_t partition, const struct uuid *topic_id,
              const struct plog_config *cfg, int64_t now_ms, struct plog **ret, struct plog_recovery *rec)
{
    return open_log(dd, topic, partition, topic_id, cfg, now_ms, false, ret, rec);
}

int plog_open_unsynced(struct datadir *dd, const char *topic, int32_t partition, const struct uuid *topic_id,
                       const struct plog_config *cfg, int64_t now_ms, struct plog **ret, struct plog_recovery *rec)
{
    return open_log(dd, topic, partition, topic_id, cfg, now_ms, true, ret, rec);
}

static int sync_new_in(struct datadir *dd, struct plog *const *logs, size_t n)
{
    const struct store_io *io = datadir_io(dd);
    int rc = io->syncfs(io, datadir_fd(dd));

    for (size_t i = 0; i < n && rc == 0; i++)
        if (logs[i]->dd == dd)
            logs[i]->unsynced = false;
    if (rc < 0 && rc != -ENOSPC && rc != -EDQUOT)
        datadir_fail(dd, -rc, "new logs");
    return rc;
}

int plog_sync_new(struct plog *const *logs, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        if (logs[i]->unsynced)
            rc = sync_new_in(logs[i]->dd, logs, n);
    return rc;
}

bool plog_is_unsynced(const struct plog *l)
{
    return l->unsynced;
}

int plog_flush_all(struct plog *l)
{
    struct plog_flush *t;

    lock_take(&l->mark_mu);
    bool half = l->half_cut.seg != NULL;
    lock_release(&l->mark_mu);
    if (half)
        return -EAGAIN;
    while ((t = plog_flush_begin(l)) != NULL) {
        int rc = plog_flush_run(t);
        plog_flush_end(l, t, rc);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int plog_close(struct plog *l, bool clean, int64_t hw)
{
    int rc = 0;

    if (clean) {
        rc = plog_flush_all(l);
        if (rc == 0)
            rc = plog_checkpoint(l, hw, true);
    }
    plog_free(l);
    return rc;
}

int plog_remove(struct plog *l)
{
    int rc = datadir_remove(l->dd, l->name);

    plog_free(l);
    return rc;
}

void plog_set_config(struct plog *l, const struct plog_config *cfg)
{
    lock_take(&l->mu);
    l->cfg = *cfg;
    lock_release(&l->mu);
}

const char *plog_name(const struct plog *l)
{
    return l->name;
}

void plog_ends(struct plog *l, struct plog_ends *ret)
{
    lock_take(&l->mu);
    *ret = (struct plog_ends){
        .start_offset = l->start_offset,
        .end_offset = l->end_offset,
        .flushed_offset = l->flushed.sum.end_offset,
        .size_bytes = l->size_bytes,
        .newest_timestamp = l->newest_ms,
        .checkpoint_hw = l->checkpoint_hw,
        .text_era = ((int64_t)(l->opening >> 1) << 32) + (uint32_t)(l->generation + l->swaps),
    };
    lock_release(&l->mu);
}

/* ---- rolling ---- */

/* All four at once, as Kafka's tools expect them. The header of .text says where the segment's text begins.
 */
int plog_create_files(struct plog *l, struct segment *s)
{
    struct segfile *files[] = { s->log, s->index.file, s->time.file };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int rc = segfile_pin(files[i], true);
        if (rc < 0)
            return rc;
        segfile_unpin(files[i]);
    }
    lock_take(&l->mu);
    l->dir_changes++;
    lock_release(&l->mu);
    return segment_write_header(s, false);
}

/* What is known of the segment goes into its files, so that nobody need read its log for it. They are caches:
 * an error here costs a rebuild later and nothing else. */
static void seal(struct plog *l, struct segment *s)
{
    if (segment_write_tails(s, &l->mu) < 0)
        return;
    lock_take(&l->mu);
    segment_add_last_time(s);
    lock_release(&l->mu);
    if (segment_write_tails(s, &l->mu) == 0)
        segment_write_header(s, true);
}

int plog_roll(struct plog *l, int64_t base)
{
    lock_assert_held(&l->append_mu);
    struct segment *old = plog_active(l);
    struct segment *s = segment_new(l->files, l->name, l->identity, base);

    KCHECK(old->sum.size > 0 || base > old->base);
    KINVARIANT("S12", old->sum.end_offset == l->end_offset && base >= l->end_offset);
    s->text_base = old->text_base + old->sum.text_bytes;
    s->known = true;
    int rc = plog_create_files(l, s);
    if (rc < 0) {
        segment_unlink(s);
        segment_unref(s);
        return rc;
    }
    seal(l, old);
    lock_take(&l->mu);
    plog_push_segment(l, s);
    bool leaves_out = base > l->end_offset;
    l->end_offset = base;
    if (leaves_out)
        plog_note_border(l);
    l->active_since_ms = -1;
    l->written_back = 0;
    lock_release(&l->mu);
    return 0;
}

/* ---- appending ---- */

struct filling plog_filling(const struct plog *l)
{
    const struct segment *s = plog_active(l);
    return (struct filling){ s->base, s->sum.size, s->sum.first_timestamp };
}

/* Kafka's reasons to start a new segment, and that relative offsets and positions must fit 31 bits. */
bool plog_roll_is_due(const struct plog *l, const struct filling *f, const struct batch_header *h,
                      int64_t base_offset, int64_t now_ms)
{
    if (f->size == 0)
        return false;
    int64_t since = f->first_timestamp >= 0 && h->max_timestamp >= 0 ? h->max_timestamp - f->first_timestamp
                    : l->active_since_ms >= 0                        ? now_ms - l->active_since_ms
                                                                     : 0;
    return f->size + batch_size(h) > MIN(l->cfg.segment_bytes, (int64_t)INT32_MAX) || since > l->cfg.segment_ms ||
           base_offset + h->last_offset_delta - f->base > INT32_MAX;
}

/* Whether the batch goes in at all; fills ret when not. Under mu. */
static bool admit(struct plog *l, const struct batch_header *h, int32_t leader_epoch,
                  struct plog_appended *ret)
{
    struct producer_batch old;

    if (leader_epoch < epochs_latest(&l->epochs)) {
        ret->err = KERR_FENCED_LEADER_EPOCH;
        return false;
    }
    switch (producers_check(&l->producers, h, &ret->err, &old)) {
    case PRODUCER_APPEND:
        return true;
    case PRODUCER_DUPLICATE:
        ret->duplicate = true;
        ret->base_offset = old.base_offset;
        ret->last_offset = old.last_offset;
        ret->log_append_time = old.timestamp;
        return false;
    case PRODUCER_REFUSED:
        break;
    }
    return false;
}

/* S2: either all of it is behind the last one, or nothing of it. S8: the file stays pinned for who then takes the batches in, which makes
 * it dirty: closed before that, it would not tell of a failed write. */
int plog_write_batches(struct plog *l, struct segment *s, const uint8_t *batch, size_t n, int64_t writeback_bytes)
{
    int rc = segfile_pin(s->log, false);
    if (rc < 0)
        return plog_disk_error(l, rc, segfile_path(s->log));
    int fd = segfile_fd(s->log);
    rc = io_pwrite_all(l->io, fd, batch, n, s->sum.size);
    if (rc < 0) {
        plog_disk_error(l, rc, segfile_path(s->log));
        int undo = l->io->ftruncate(l->io, fd, s->sum.size);
        if (undo < 0)
            datadir_fail(l->dd, -undo, segfile_path(s->log));
    } else if (writeback_bytes > 0 && s->sum.size + (int64_t)n - l->written_back >= writeback_bytes) {
        int64_t end = s->sum.size + (int64_t)n;
        l->io->sync_file_range(l->io, fd, l->written_back, end - l->written_back, SYNC_FILE_RANGE_WRITE);
        l->written_back = end;
    }
    if (rc < 0)
        segfile_unpin(s->log);
    return rc;
}

void plog_take_in(struct plog *l, const struct batch_header *h, int64_t text_bytes, int64_t now_ms)
{
    struct segment *s = plog_active(l);

    KINVARIANT("S1", h->base_offset >= l->end_offset && l->end_offset == s->sum.end_offset);
    if (s->flushed == s->sum.size)
        segfile_set_dirty(s->log, true);
    if (s->sum.size == 0)
        l->active_since_ms = now_ms;
    if (h->base_offset > l->end_offset || l->end_is_apart)
        l->gap_end = batch_last_offset(h) + 1;
    l->end_is_apart = false;
    segment_add(s, h, text_bytes, l->cfg.index_interval_bytes);
    producers_add(&l->producers, h, now_ms);
    if (epochs_assign(&l->epochs, h->leader_epoch, h->base_offset) || l->epoch_is_new)
        l->epochs_dirty = true;
    l->epoch_is_new = false;
    l->end_offset = s->sum.end_offset;
    KINVARIANT("S1", l->end_offset == batch_last_offset(h) + 1);
    l->size_bytes += batch_size(h);
    l->newest_ms = now_ms;
    plog_note_border(l);
}

static void storage_error(struct plog_appended *ret, int rc)
{
    ret->err = KERR_KAFKA_STORAGE_ERROR;
    ret->eno = -rc;
}

static bool must_roll(const struct plog *l, const struct batch_header *h, int64_t now_ms)
{
    const struct filling f = plog_filling(l);
    return plog_roll_is_due(l, &f, h, l->end_offset, now_ms);
}

struct append_how {
    bool roll;
    int32_t leader_epoch;
    int64_t text_bytes;
    int64_t now_ms;
    int64_t writeback_bytes;
};

/* Under append_mu. */
static void append_admitted(struct plog *l, uint8_t *batch, size_t n, const struct append_how *how,
                            struct plog_appended *ret)
{
    struct batch_header h;
    int rc = how->roll ? plog_roll(l, l->end_offset) : 0;

    if (rc < 0) {
        storage_error(ret, plog_disk_error(l, rc, l->name));
        return;
    }
    ret->rolled = how->roll;
    struct segment *s = plog_active(l);
    if (segment_tails_full(s))
        segment_write_tails(s, &l->mu); /* an error makes the index sparser, no more */
    batch_set_base_offset(batch, l->end_offset);
    batch_set_leader_epoch(batch, how->leader_epoch);
    rc = plog_write_batches(l, s, batch, n, how->writeback_bytes);
    if (rc < 0) {
        storage_error(ret, rc);
        return;
    }
    batch_header_read(batch, &h);
    lock_take(&l->mu);
    plog_take_in(l, &h, how->text_bytes, how->now_ms);
    lock_release(&l->mu);
    segfile_unpin(s->log);
    ret->base_offset = h.base_offset;
    ret->last_offset = batch_last_offset(&h);
}

void plog_append(struct plog *l, uint8_t *batch, size_t n, const struct batch_info *info,
                 int32_t leader_epoch, int64_t now_ms, int64_t log_append_time, struct plog_appended *ret)
{
    struct batch_header h;

    KCHECK(n >= BATCH_OVERHEAD && n <= INT32_MAX);
    batch_header_read(batch, &h);
    KCHECK(batch_size(&h) == (int64_t)n);
    *ret = (struct plog_appended){ .base_offset = -1, .last_offset = -1, .log_append_time = log_append_time };
    if (datadir_failed(l->dd)) {
        storage_error(ret, -EROFS);
        return;
    }
    lock_take(&l->append_mu);
    lock_take(&l->mu);
    bool go = admit(l, &h, leader_epoch, ret);
    struct append_how how = {
        .roll = go && must_roll(l, &h, now_ms),
        .leader_epoch = leader_epoch,
        .text_bytes = info->text_bytes,
        .now_ms = now_ms,
        .writeback_bytes = l->cfg.writeback_bytes,
    };
    lock_release(&l->mu);
    if (go && (l->half_cut.seg != NULL || l->restart_base >= 0))
        storage_error(ret, -EAGAIN); /* a truncation has to be tried again first */
    else if (go && datadir_is_full(l->dd))
        storage_error(ret, -ENOSPC);
    else if (go)
        append_admitted(l, batch, n, &how, ret);
    lock_release(&l->append_mu);
    plog_call_done(l);
}
