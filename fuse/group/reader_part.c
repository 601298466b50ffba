/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition that is read as a group: where it goes on, fetching records as lines into the reader's buffer, and
 * committing what was acknowledged. What stands before damage in the log is handed out first, then the read says EIO; a
 * position that the log no longer has is moved (A8). Rules: reader.h. Loop's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/group/reader.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/record/batch.h"
#include "lib/record/iter.h"

#define PART_FETCH_BYTES (1024 * 1024)
#define COMMIT_EVERY_MS  1000

/* ---- where it stands ---- */

/* A8: the log ends at `to` for who has read on to p->next; the last record before that is of `epoch`. What was
 * handed out of the rest says nothing any more. */
static void part_lost_end(struct reader_part *p, int64_t to, int32_t epoch)
{
    struct reader *g = p->reader;
    log_warn("%s/as/%s/p%d: the log lost its end: offsets %" PRId64 " to %" PRId64
             " are gone, reading goes on at %" PRId64,
             pfile_topic(p->file), g->node->view.group, pfile_partition(p->file), to, p->next - 1, to);
    for (size_t i = g->first; i < g->n_lines; i++) {
        if (g->lines[i].part == p && g->lines[i].next > to)
            g->lines[i].part = NULL;
    }
    p->next = p->acked = to;
    p->epoch = p->acked_epoch = epoch;
    p->sent = p->committed = to - 1; /* whatever is stored, it is not this */
}

/* The log's start may have passed the position, or its end been lost. */
static void part_settle(struct reader_part *p, const struct ends *e)
{
    if (p->next < e->start_offset) {
        p->next = e->start_offset;
        p->epoch = -1;
    } else if (p->beyond && p->next > e->end_offset) {
        part_lost_end(p, e->end_offset, -1);
    } else if (p->beyond) { /* it is there, but of its epoch the leader knows nothing */
        p->epoch = -1;
    }
    p->beyond = false;
}

void parts_topic_gone(struct reader *g)
{
    struct reader_part *p;
    g->topic_gone = true;
    for (size_t i = g->first; i < g->n_lines; i++)
        g->lines[i].part = NULL;
    LIST_FOREACH (p, &g->parts, link)
        part_stop(p);
    topic_vanish(g->node->topic); /* others who wait for it are told, too */
}

static void part_failed(struct reader_part *p, int rc)
{
    if (rc == -ENOENT)
        parts_topic_gone(p->reader);
    else
        p->reader->error = request_errno(rc);
}

/* A9. found: the first record as young as its RANGE begins; -1: none, or it does not begin by time. */
static void part_range(struct reader_part *p, int64_t now_ms, int64_t found)
{
    const struct ends *e = &p->file->ends;
    range_resolve(&p->reader->node->view.range, now_ms, e->start_offset, e->end_offset, found, &p->extent);
    p->ranged = true;
    int64_t from = MIN(p->extent.from, e->end_offset); /* the log may not have come to it */
    if (p->next >= from)
        return;
    p->next = from;
    p->epoch = -1;
}

static void on_part_time(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct reader_part *p = container_of(f, struct reader_part, time);
    (void)err;
    p->asking = false;
    if (rc == 0 && !p->gone)
        part_range(p, p->now_ms, offset);
    else if (!p->gone)
        part_failed(p, rc);
    reader_go(p->reader);
}

/* True: the time at which its RANGE begins is asked for. */
static bool part_asks_time(struct reader_part *p)
{
    const struct view *v = &p->reader->node->view;
    int64_t at;
    if ((v->parts & VIEW_RANGE) == 0 || p->ranged)
        return false;
    p->now_ms = clock_wall_ms();
    if (!range_time(&v->range, p->now_ms, &at)) {
        part_range(p, p->now_ms, -1);
        return false;
    }
    p->asking = true;
    p->time = (struct position_find){ .topic = pfile_topic(p->file),
                                      .topic_id = p->file->key.topic->id,
                                      .partition = pfile_partition(p->file),
                                      .at = at,
                                      .deadline_ms = mount_deadline_ms(p->reader->mount),
                                      .cb = on_part_time };
    position_find(p->reader->mount->client, &p->time);
    return true;
}

static void on_part_ends(struct ends_wait *w, int rc)
{
    struct reader_part *p = container_of(w, struct reader_part, ends);
    p->asking = false;
    if (p->gone) {
        reader_go(p->reader);
        return;
    }
    if (rc != 0) {
        part_failed(p, rc);
    } else {
        part_settle(p, &p->file->ends);
        if (part_asks_time(p))
            return;
    }
    reader_go(p->reader);
}

static void on_part_news(struct pfile_waker *w)
{
    struct reader_part *p = container_of(w, struct reader_part, waker);
    p->empty = false;
    reader_go(p->reader);
}

static void part_ask(struct reader_part *p)
{
    p->asking = true;
    ends_ask(p->file, &p->ends);
}

struct reader_part *part_new(struct reader *g, int32_t partition, const struct position *committed)
{
    struct reader_part *p = xcalloc(1, sizeof *p);
    p->reader = g;
    p->file = pfile_get(g->mount, g->node->topic, partition);
    p->extent = EXTENT_ALL;
    p->next = MAX(committed->offset, 0);
    p->epoch = p->acked_epoch = committed->offset < 0 ? -1 : committed->leader_epoch;
    p->acked = p->sent = p->committed = committed->offset;
    p->ends.cb = on_part_ends;
    p->waker.cb = on_part_news;
    LIST_INSERT_HEAD(&g->parts, p, link);
    part_ask(p);
    return p;
}

void part_free(struct reader_part *p)
{
    KCHECK(part_is_idle(p));
    if (p->fetching)
        client_fetch_cancel(p->reader->mount->client, &p->fetch);
    pfile_unwake(&p->waker);
    LIST_REMOVE(p, link);
    pfile_unref(p->file);
    free(p);
}

void part_stop(struct reader_part *p)
{
    p->gone = p->empty = true;
    if (p->fetching)
        client_fetch_cancel(p->reader->mount->client, &p->fetch);
    p->fetching = false;
    pfile_unwake(&p->waker);
}

void parts_gone(struct reader *g)
{
    struct reader_part *p;
    for (size_t i = g->first; i < g->n_lines; i++)
        g->lines[i].part = NULL;
    g->orphaned = true;
    LIST_FOREACH (p, &g->parts, link)
        part_stop(p);
    parts_reap(g);
}

void parts_reap(struct reader *g)
{
    struct reader_part *p, *next;
    for (p = LIST_FIRST(&g->parts); p != NULL; p = next) {
        next = LIST_NEXT(p, link);
        if (p->gone && part_is_idle(p))
            part_free(p);
    }
}

/* ---- records ---- */

static void line_add(struct reader *g, struct reader_part *p, const struct record *r, int32_t epoch)
{
    if (g->n_lines == g->cap_lines) {
        g->cap_lines = g->cap_lines == 0 ? 256 : 2 * g->cap_lines;
        g->lines = xreallocarray(g->lines, g->cap_lines, sizeof *g->lines);
    }
    line_render(view_form(&g->node->view), pfile_partition(p->file), r, &g->text);
    g->lines[g->n_lines++] =
        (struct reader_line){ g->start + (int64_t)(g->text.n - g->head), p, r->offset + 1, epoch };
}

static int part_add_batch(struct reader_part *p, struct slice batch, int64_t limit)
{
    struct record_iter *it = &p->reader->mount->texts.iter;
    struct record r;
    int rc = record_iter_start(it, batch, TEXT_BATCH_MAX);
    if (rc != 0)
        return -EBADMSG;
    while ((rc = record_iter_next(it, &r)) == 1) {
        if (r.offset >= p->next && r.offset < limit && extent_has(&p->extent, &r))
            line_add(p->reader, p, &r, it->h.leader_epoch);
    }
    return rc;
}

/* Offsets without a record (markers, what compaction took) go with the record before them. */
static void part_moved(struct reader_part *p, int64_t next, int32_t epoch)
{
    struct reader *g = p->reader;
    p->next = next;
    p->epoch = epoch;
    if (extent_has_times(&p->extent)) /* it may have been the last record of the range (A9) */
        return;
    for (size_t i = g->n_lines; i > g->first; i--) {
        if (g->lines[i - 1].part == p) {
            g->lines[i - 1].next = next;
            g->lines[i - 1].epoch = epoch;
            return;
        }
    }
    if (p->acked >= 0) {
        p->acked = next;
        p->acked_epoch = epoch;
    }
}

static int part_add(struct reader_part *p, struct slice in, int64_t limit)
{
    int64_t next = p->next;
    int32_t epoch = p->epoch;
    int rc = 0;
    while (in.n > 0 && rc == 0) {
        struct batch_header h;
        if ((rc = batch_check(in, INT32_MAX, &h)) != 0 || h.base_offset >= limit)
            break;
        size_t size = (size_t)batch_size(&h);
        if (!batch_is_control(&h))
            rc = part_add_batch(p, slice_of(in.p, size), limit);
        next = MAX(next, MIN(batch_last_offset(&h) + 1, limit));
        epoch = h.leader_epoch;
        in = slice_of(in.p + size, in.n - size);
    }
    if (next > p->next)
        part_moved(p, next, epoch);
    return rc == -EAGAIN ? 0 : rc; /* a part of a batch at the end is for the next fetch */
}

static void part_fetched(struct reader_part *p, const struct client_fetched *got)
{
    int64_t limit = got->last_stable_offset >= 0 ? got->last_stable_offset : got->high_watermark;
    int64_t before = p->next;
    limit = MIN(limit, p->extent.to);
    /* What stands before damage comes first; the next fetch begins at it, and tells. */
    if (part_add(p, got->batches, limit) != 0 && p->next == before)
        p->reader->error = EIO;
    else
        p->empty = p->next == before && !p->stale;
}

static void on_part_fetched(struct client_fetch *f, int rc, const struct client_fetched *got)
{
    struct reader_part *p = f->user;
    p->fetching = false;
    if (rc == 0 && got->err == KERR_OFFSET_OUT_OF_RANGE) {
        p->beyond = true;
        part_ask(p);
        return;
    }
    if (rc == 0 && got->err != KERR_NONE)
        rc = -kerr_errno(got->err);
    if (rc != 0)
        part_failed(p, rc);
    else if (got->diverged)
        part_lost_end(p, MIN(got->diverging_end, p->next), got->diverging_epoch);
    else
        part_fetched(p, got);
    p->stale = false;
    reader_go(p->reader);
}

void part_fetch(struct reader_part *p)
{
    struct mount *m = p->reader->mount;
    p->fetching = true;
    p->stale = false;
    p->fetch = (struct client_fetch){ .topic = pfile_topic(p->file),
                                      .topic_id = p->file->key.topic->id,
                                      .partition = pfile_partition(p->file),
                                      .offset = p->next,
                                      .has_last_epoch = p->epoch >= 0,
                                      .last_epoch = p->epoch,
                                      .max_bytes = PART_FETCH_BYTES,
                                      .deadline_ms = mount_deadline_ms(m),
                                      .cb = on_part_fetched,
                                      .user = p };
    client_fetch(m->client, &p->fetch);
}

/* ---- commits ---- */

static void part_refused(struct reader_part *p, int err)
{
    struct reader *g = p->reader;
    g->error = err;
    if (err == EBUSY && g->member == NULL)
        reader_lose(g);
}

static void part_committed(struct reader_part *p, int rc, enum kerr err)
{
    struct reader *g = p->reader;
    p->committing = false;
    p->committed = p->sent;
    p->committed_ms = loop_now_ms(g->mount->loop);
    if (rc == 0)
        g->alone_ms = MAX(g->alone_ms, p->sent_ms);
    else if (rc == -ECANCELED) /* the mount is gone */
        p->acked = p->committed;
    else if (err == KERR_UNKNOWN_TOPIC_ID || err == KERR_UNKNOWN_TOPIC_OR_PARTITION)
        parts_topic_gone(g);
    else if (!p->gone) /* what another member got comes again there */
        part_refused(p, group_errno(rc, err));
    reader_go(g);
}

static void on_part_committed(struct positions_commit *pc, int rc, enum kerr err)
{
    part_committed(container_of(pc, struct reader_part, commit), rc, err);
}

static void on_member_committed(struct member_commit *mc, int rc, enum kerr err)
{
    part_committed(container_of(mc, struct reader_part, mcommit), rc, err);
}

static void part_send_commit(struct reader_part *p)
{
    struct reader *g = p->reader;
    KINVARIANT("A2", p->acked > p->committed);
    p->committing = true;
    p->sent = p->acked;
    p->sent_ms = loop_now_ms(g->mount->loop);
    p->position = (struct position){ .topic = pfile_topic(p->file),
                                     .topic_id = p->file->key.topic->id,
                                     .partition = pfile_partition(p->file),
                                     .offset = p->sent,
                                     .leader_epoch = p->acked_epoch };
    if (g->member != NULL) {
        p->mcommit = (struct member_commit){ .position = p->position, .cb = on_member_committed };
        member_commit(g->member, &p->mcommit);
        return;
    }
    p->commit = (struct positions_commit){ .group = g->node->view.group,
                                           .member_id = "",
                                           .generation = -1,
                                           .positions = &p->position,
                                           .n = 1,
                                           .deadline_ms = mount_deadline_ms(g->mount),
                                           .cb = on_part_committed };
    positions_commit(g->mount->writer, &p->commit);
}

bool part_commit(struct reader_part *p, bool now)
{
    struct reader *g = p->reader;
    int64_t due = p->committed_ms == 0 ? 0 : p->committed_ms + COMMIT_EVERY_MS;
    if (p->gone)
        return true;
    if (p->committing || p->acked <= p->committed)
        return !p->committing;
    if (now || due <= loop_now_ms(g->mount->loop))
        part_send_commit(p);
    else if (!timer_is_set(&g->timer) || g->timer.due_ms > due)
        timer_set(g->mount->loop, &g->timer, due);
    return false;
}
