/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader epochs and producer state after opening: from their files where those can be read and fit the log, and the rest
 * from the headers of the batches behind them. A snapshot that claims more than the log has, or is of another partition, is
 * dropped. Part of opening a log: nobody else uses it yet.
 */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/check.h"
#include "lib/store/recover.h"

#define EPOCHS_FILE_MAX (64 << 20)

/* ---- headers of a segment, in order ---- */

typedef void header_fn(struct recovery *r, const struct batch_header *h);

static int walk_headers(struct recovery *r, struct segment *s, const struct place *from, header_fn *f)
{
    struct logscan scan;
    struct scan_item it;
    int next = plog_find_segment(r->l, s->base) + 1;
    int64_t end = s == r->end_segment ? r->end_position : s->sum.size;

    if (s->foreign) /* nothing of it is read */
        return 0;
    int rc = segfile_pin(s->log, false);
    if (rc < 0)
        return rc;
    logscan_init(&scan, r->l->io, segfile_fd(s->log), from->position, end, from->h.base_offset);
    /* Compaction leaves gaps, a follower has them in its active segment, too. */
    scan.limit_offset = next < r->l->n_segs ? r->l->segs[next]->base : r->l->end_offset;
    scan.check_crc = false;
    while ((rc = logscan_next(&scan, &it)) == 0 && it.what != SCAN_END) {
        if (it.what == SCAN_BATCH)
            f(r, &it.h);
    }
    logscan_done(&scan);
    segfile_unpin(s->log);
    return rc;
}

/* ---- leader epochs ---- */

static void note_epoch(struct recovery *r, const struct batch_header *h)
{
    if (epochs_assign(&r->l->epochs, h->leader_epoch, h->base_offset))
        r->l->epochs_dirty = true;
}

static int32_t first_epoch(struct recovery *r, struct segment *s)
{
    struct batch_header h;
    return !s->foreign && plog_header_at(r->l, s, 0, s->sum.size, &h) == 0 ? h.leader_epoch : -1;
}

/* Only segments in which the epoch changes are walked. */
static int epochs_from_log(struct recovery *r)
{
    struct plog *l = r->l;
    int rc = 0;

    for (int i = 0; rc == 0 && i < l->n_segs; i++) {
        struct segment *s = l->segs[i];
        const struct place front = { .h.base_offset = s->base };
        int32_t here = first_epoch(r, s);
        if (i + 1 < l->n_segs && here >= 0 && here == first_epoch(r, l->segs[i + 1])) {
            if (epochs_assign(&l->epochs, here, s->base))
                l->epochs_dirty = true;
        } else {
            rc = walk_headers(r, s, &front, note_epoch);
        }
    }
    return rc;
}

int recovery_read_epochs(struct recovery *r)
{
    struct plog *l = r->l;
    struct bytebuf b = { 0 };
    char path[PATH_MAX];

    plog_path(l, EPOCHS_FILE, path, sizeof path);
    int rc = io_read_file(l->io, l->dirfd, path, EPOCHS_FILE_MAX, &b);
    r->have_epochs = rc == 0 && epochs_decode(slice_of(b.p, b.n), &l->epochs);
    bytebuf_done(&b);
    if (!r->have_epochs && rc != -ENOENT)
        recovery_note(r, "%s is damaged: rebuilt from the log", EPOCHS_FILE);
    return rc == -ENOENT || rc == -EFBIG ? 0 : rc;
}

int recovery_settle_epochs(struct recovery *r)
{
    struct plog *l = r->l;

    /* An epoch may have begun at the very end and have no record yet. */
    if (epochs_truncate_end(&l->epochs, l->end_offset + 1))
        l->epochs_dirty = true;
    if (r->have_epochs || l->size_bytes == 0)
        return 0;
    epochs_done(&l->epochs);
    return epochs_from_log(r);
}

/* ---- producers ---- */

static void note_producer(struct recovery *r, const struct batch_header *h)
{
    if (h->base_offset >= r->snapshot_offset && h->base_offset < r->end_offset)
        producers_add(&r->producers, h, r->now_ms);
}

static bool load_snapshot(struct recovery *r, int64_t offset)
{
    struct plog *l = r->l;
    struct bytebuf b = { 0 };
    char path[PATH_MAX];
    int64_t found = -1;
    uint32_t identity = 0;

    snapshot_path(l, offset, path, sizeof path);
    bool ok = io_read_file(l->io, l->dirfd, path, 64 << 20, &b) == 0 &&
              producers_decode(slice_of(b.p, b.n), &r->producers, &found, &identity);
    bytebuf_done(&b);
    bool ours = identity == l->identity || identity == 0;
    if (ok && found == offset && ours)
        return true;
    producers_clear(&r->producers);
    recovery_note(r, ok && !ours ? "%s is another partition's: not used" : "%s is damaged", path);
    l->io->unlinkat(l->io, l->dirfd, path, 0);
    return false;
}

int recovery_drop_snapshots(struct recovery *r, int64_t limit)
{
    struct plog *l = r->l;
    char path[PATH_MAX];
    int n = r->ls.n_snapshots, rc = 0;

    while (rc == 0 && r->ls.n_snapshots > 0 && r->ls.snapshots[r->ls.n_snapshots - 1] > limit) {
        snapshot_path(l, r->ls.snapshots[--r->ls.n_snapshots], path, sizeof path);
        rc = l->io->unlinkat(l->io, l->dirfd, path, 0);
        if (rc == -ENOENT)
            rc = 0;
    }
    return rc < 0 || n == r->ls.n_snapshots ? rc : io_sync_dir(l->io, l->dirfd, l->name);
}

/* The newest state that can be used. What the checkpoint says of it counts as a snapshot does: not above what had
 * been flushed. */
static void choose_snapshot(struct recovery *r)
{
    const struct checkpoint *c = &r->ckpt;
    bool empty = r->have_ckpt && c->producers_empty && c->producers_offset <= r->end_offset &&
                 c->producers_offset <= c->flushed.sum.end_offset;

    r->snapshot_offset = empty ? c->producers_offset : -1;
    r->snapshot_empty = empty;
    for (int i = r->ls.n_snapshots - 1; i >= 0 && r->ls.snapshots[i] > r->snapshot_offset; i--) {
        if (r->ls.snapshots[i] <= r->end_offset && load_snapshot(r, r->ls.snapshots[i])) {
            r->snapshot_offset = r->ls.snapshots[i];
            r->snapshot_empty = false;
            return;
        }
    }
}

int recovery_load_producers(struct recovery *r)
{
    struct plog *l = r->l;

    choose_snapshot(r);
    r->producers.unsure_below = l->segs[0]->base; /* retention may have been faster than snapshots */
    int64_t from = MAX(r->snapshot_offset, l->segs[0]->base);
    if (from >= r->end_offset)
        return 0;
    int rc = 0;
    for (int i = plog_find_segment(l, from); rc == 0 && i < l->n_segs && l->segs[i]->base < r->end_offset; i++) {
        struct segment *s = l->segs[i];
        struct place at;
        if (s->base >= from || plog_locate_as_is(l, s, from, s == r->end_segment ? r->end_position : s->sum.size, &at) != 1)
            at = (struct place){ .h.base_offset = s->base };
        rc = walk_headers(r, s, &at, note_producer);
    }
    return rc;
}
