/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting go of the log's front. The new start is durable under a name of its own (NNN.start) before any file
 * goes, so that neither a crash nor the loss of the checkpoint brings deleted offsets back. Runs on a worker:
 * it waits for the disk.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/store/plog_check.h"
#include "lib/store/plog_int.h"

#define CUT_KEPT_MS (24LL * 3600 * 1000)

/* ---- files *.cut of former recoveries ---- */

static bool is_cut(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".cut") == 0;
}

struct old_cuts {
    struct plog *l;
    int64_t now_ms;
};

/* As old as the cut is, not as what was written to it. */
static int remove_if_old_cut(void *arg, const char *name, enum io_kind kind)
{
    const struct old_cuts *o = arg;
    const struct store_io *io = o->l->io;
    struct io_stat st;
    char path[PATH_MAX];

    (void)kind;
    if (!is_cut(name))
        return 0;
    plog_path(o->l, name, path, sizeof path);
    if (io->statat(io, o->l->dirfd, path, 0, &st) == 0 && st.ctime_ns / 1000000 + CUT_KEPT_MS <= o->now_ms)
        io->unlinkat(io, o->l->dirfd, path, 0);
    return 0;
}

static void remove_old_cuts(struct plog *l, int64_t now_ms)
{
    struct old_cuts o = { .l = l, .now_ms = now_ms };
    l->io->list(l->io, l->dirfd, l->name, remove_if_old_cut, &o);
}

/* ---- deleting the front ---- */

/* Takes the first segment out of the log. */
static struct segment *take_first(struct plog *l)
{
    lock_assert_held(&l->append_mu);
    lock_assert_held(&l->mu);
    struct segment *s = l->segs[0];

    KCHECK(l->n_segs > 1);
    s->gone = true;
    memmove(l->segs, l->segs + 1, (size_t)(l->n_segs - 1) * sizeof(struct segment *));
    l->n_segs--;
    l->size_bytes -= s->sum.size;
    return s;
}

int plog_delete_front(struct plog *l, int64_t start)
{
    lock_assert_held(&l->slow_mu);
    int gone = 0;
    int rc = plog_mark_start(l, start);

    if (rc < 0)
        return rc;
    for (;;) {
        struct segment *s = NULL;
        lock_take(&l->append_mu);
        lock_take(&l->mu);
        KINVARIANT("S13", start <= l->start_marker && start <= l->end_offset);
        l->start_offset = MAX(l->start_offset, start);
        if (l->n_segs > 1 && l->segs[1]->base <= start)
            s = take_first(l);
        else if (epochs_truncate_start(&l->epochs, start))
            l->epochs_dirty = true;
        lock_release(&l->mu);
        lock_release(&l->append_mu);
        if (s == NULL)
            break;
        lock_take(&l->fix_mu);
        segment_unlink(s);
        lock_release(&l->fix_mu);
        segment_unref(s);
        gone++;
    }
    if (gone > 0)
        rc = io_sync_dir(l->io, l->dirfd, l->name);
    return rc < 0 ? plog_disk_error(l, rc, l->name) : gone;
}

int plog_delete_before(struct plog *l, int64_t offset)
{
    int rc = 0;

    lock_take(&l->slow_mu);
    lock_take(&l->mu);
    bool inside = offset >= 0 && offset <= l->end_offset;
    bool news = offset > l->start_offset;
    lock_release(&l->mu);
    if (!inside)
        rc = -ERANGE;
    else if (l->half_cut.seg != NULL)
        rc = -EAGAIN;
    else if (news)
        rc = plog_delete_front(l, offset);
    lock_release(&l->slow_mu);
    plog_call_done(l);
    return rc < 0 ? rc : 0;
}

/* ---- what may go ---- */

/* Wall-clock age of what a segment holds: its greatest timestamp, or the file's when it has none. */
static int64_t newest_of(struct plog *l, struct segment *s)
{
    struct io_stat st;

    lock_take(&l->mu);
    int64_t ts = s->sum.max_timestamp;
    lock_release(&l->mu);
    if (ts >= 0)
        return ts;
    if (l->io->statat(l->io, l->dirfd, segfile_path(s->log), 0, &st) < 0)
        return INT64_MAX;
    return st.mtime_ns / 1000000;
}

static bool is_expired(struct plog *l, struct segment *s, const struct plog_config *cfg, int64_t now_ms)
{
    if (!cfg->delete_policy || cfg->retention_ms < 0)
        return false;
    int64_t newest = newest_of(l, s);
    return newest < now_ms && now_ms - newest > cfg->retention_ms;
}

/* An idle log rolls too, or its last segment would outlive every limit. */
static int roll_if_due(struct plog *l, const struct plog_config *cfg, int64_t now_ms)
{
    int rc = 0;

    lock_take(&l->append_mu);
    struct segment *s = plog_active(l);
    lock_take(&l->mu);
    int64_t since = l->active_since_ms;
    lock_release(&l->mu);
    if (s->sum.size > 0 && !datadir_failed(l->dd) &&
        (is_expired(l, s, cfg, now_ms) || (since >= 0 && now_ms - since > cfg->segment_ms)))
        rc = plog_roll(l, l->end_offset);
    lock_release(&l->append_mu);
    return rc;
}

/* Start offset after everything that may go has gone. Only slow_mu's holder removes segments, so they stay
 * put. */
static int choose_new_start(struct plog *l, const struct plog_config *cfg, int64_t hw, int64_t now_ms,
                            int64_t *ret)
{
    int64_t total;

    lock_take(&l->mu);
    total = l->size_bytes;
    *ret = l->start_offset;
    lock_release(&l->mu);
    for (int i = 0;; i++) {
        lock_take(&l->mu);
        struct segment *s = i + 1 < l->n_segs && l->segs[i + 1]->base <= hw ? segment_ref(l->segs[i]) : NULL;
        int64_t end = s == NULL ? 0 : l->segs[i + 1]->base;
        lock_release(&l->mu);
        if (s == NULL)
            return 0;
        bool by_size =
            cfg->delete_policy && cfg->retention_bytes >= 0 && total - s->sum.size >= cfg->retention_bytes;
        bool go = end <= *ret || by_size;
        int rc = go ? 0 : plog_load_segment(l, s);
        go = go || (rc == 0 && is_expired(l, s, cfg, now_ms));
        total -= s->sum.size;
        segment_unref(s);
        if (rc < 0)
            return rc;
        if (!go)
            return 0;
        *ret = MAX(*ret, end);
    }
}

int plog_retain(struct plog *l, int64_t hw, int64_t now_ms)
{
    struct plog_config cfg;
    int64_t start;

    lock_take(&l->slow_mu);
    if (l->half_cut.seg != NULL) {
        lock_release(&l->slow_mu);
        return 0;
    }
    lock_take(&l->mu);
    cfg = l->cfg;
    lock_release(&l->mu);
    int rolled = roll_if_due(l, &cfg, now_ms);
    if (datadir_spend_reserve(l->dd, rolled))
        rolled = roll_if_due(l, &cfg, now_ms);
    /* Without room for a new segment the older ones may still go. */
    int rc = rolled == -ENOSPC || rolled == -EDQUOT ? 0 : rolled;
    if (rc == 0)
        rc = choose_new_start(l, &cfg, hw, now_ms, &start);
    if (rc == 0) {
        lock_take(&l->mu);
        bool some = l->n_segs > 1 && l->segs[1]->base <= start;
        lock_release(&l->mu);
        rc = some ? plog_delete_front(l, start) : 0;
    }
    remove_old_cuts(l, now_ms);
    lock_release(&l->slow_mu);
    plog_call_done(l);
    return rc == 0 ? rolled : rc;
}
