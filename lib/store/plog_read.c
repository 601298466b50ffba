/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets to spans of a file, for sendfile: no batch is read. Readers at the tail start and stop where recent
 * batches ended, which is remembered; others go through the index. What is read never depends on the log's
 * size.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/store/plog_check.h"
#include "lib/store/plog_int.h"

#define WALK_BATCHES 16  /* as many headers are cheaper than a search in the index */
#define EMPTIED_MAX  256 /* segments without records that one read steps over */

struct read_view {          /* what was true under mu */
    struct segment *seg;    /* a reference */
    int64_t start_position; /* -1: to be located */
    int64_t end_position;   /* -1: of the batch that holds the limit, to be located */
    int64_t size;           /* bytes of the segment */
    int64_t trusted;        /* as in struct segment */
};

/* Where the batch at `offset` begins, if that is remembered; -1. Under mu. */
static int64_t remembered(const struct plog *l, int64_t offset, const struct segment *s)
{
    struct border b;

    if (plog_get_border(l, offset, s, &b))
        return b.position;
    for (uint32_t i = 0; i < MIN(l->n_read_ends, (uint32_t)READ_ENDS); i++) {
        if (l->read_ends[i].offset == offset && l->read_ends[i].segment == s->base)
            return l->read_ends[i].position;
    }
    return -1;
}

/* Picks the segment; false when there is nothing to read in [offset, limit). Under mu. */
static bool view_take(struct plog *l, int64_t offset, int64_t limit, struct read_view *ret)
{
    int i = plog_find_segment(l, offset);

    if (offset >= limit)
        return false;
    struct segment *s = l->segs[i];
    ret->seg = segment_ref(s);
    ret->size = s->sum.size;
    ret->trusted = s->known ? s->trusted : INT64_MAX;
    ret->start_position = offset <= s->base ? 0 : remembered(l, offset, s);
    ret->end_position = limit >= plog_segment_end(l, i) ? s->sum.size : remembered(l, limit, s);
    return true;
}

/* Position of the first batch that reaches `limit` or above, which is where a read stops. */
static int find_end(struct plog *l, struct read_view *v, int64_t limit)
{
    struct place at;

    if (v->end_position >= 0)
        return 0;
    int rc = plog_locate(l, v->seg, limit, v->size, &at);
    if (rc >= 0)
        v->end_position = rc == 1 ? at.position : v->size;
    return rc < 0 ? rc : 0;
}

static int find_start(struct plog *l, struct read_view *v, int64_t offset, struct place *ret)
{
    if (v->start_position >= 0) {
        ret->position = v->start_position;
        int rc = plog_header_at(l, v->seg, ret->position, v->size, &ret->h);
        if (rc == 0 && batch_last_offset(&ret->h) >= offset)
            return 1;
        if (rc < 0 && rc != -EBADMSG)
            return rc;
    }
    return plog_locate(l, v->seg, offset, v->size, ret);
}

/* On from a position behind damage to the batch that holds the offset; false when there is none. */
static bool walk_behind_damage(const struct read_view *v, int64_t position, int64_t offset, struct place *ret)
{
    struct header_window w;
    struct place at = { .position = position };

    w.at = w.n = 0;
    for (;; at.position += batch_size(&at.h)) {
        if (at.position >= v->size || header_window_get(&w, v->seg, at.position, v->size, &at.h) < 0 ||
            at.h.base_offset > offset)
            return false;
        if (batch_last_offset(&at.h) >= offset)
            break;
    }
    *ret = at;
    return true;
}

/* Only batches that are what was written leave. A wrong offset may have led to the wrong batch: then those behind it
 * are looked at. */
static int check_span(struct plog *l, const struct read_view *v, int64_t offset, struct place *start, int64_t *end)
{
    int64_t to = *end;
    int rc = plog_check_range(l, v->seg, start->position, &to);

    for (int tries = 0; rc == -EBADMSG && tries < CHECKED_RANGES; tries++) {
        if (!walk_behind_damage(v, to, offset, start))
            return rc;
        to = MAX(*end, start->position + batch_size(&start->h));
        rc = plog_check_range(l, v->seg, start->position, &to);
    }
    *end = to;
    return rc;
}

static void remember_end(struct plog *l, const struct segment *s, const struct place *next)
{
    lock_take(&l->mu);
    if (!s->gone)
        l->read_ends[l->n_read_ends++ % READ_ENDS] = (struct border){
            .offset = next->h.base_offset,
            .segment = s->base,
            .position = next->position,
        };
    lock_release(&l->mu);
}

/* Through the index to a batch at or below position `want`, unless it is only a few batches from here. */
static void skip_towards(struct plog *l, struct segment *s, struct header_window *w, int64_t want,
                         int64_t end, struct place *at)
{
    uint8_t e[ENTRY_BYTES_MAX];
    struct place there;
    int32_t i;

    if (want - at->position <= WALK_BATCHES * batch_size(&at->h) ||
        entries_floor(&s->index, &l->mu, INDEX_POSITION, want, e, &i) != 1)
        return;
    there.position = entry_key_get(e, INDEX_POSITION);
    /* When the index lies, walking from here is only slower. */
    if (there.position > at->position && header_window_get(w, s, there.position, end, &there.h) == 0 &&
        batch_last_offset(&there.h) == s->base + entry_key_get(e, INDEX_OFFSET))
        *at = there;
}

/* Largest batch border in (start, want], or `start` when the first batch is larger already. */
static int find_border_below(struct plog *l, struct segment *s, const struct place *start, int64_t want,
                             int64_t end, int64_t *ret)
{
    struct header_window w;
    struct place at = *start;
    int rc = 0;

    w.at = w.n = 0;
    skip_towards(l, s, &w, want, end, &at);
    while (at.position + batch_size(&at.h) <= want) {
        at.position += batch_size(&at.h);
        if (at.position >= end)
            break;
        rc = header_window_get(&w, s, at.position, end, &at.h);
        if (rc == -EBADMSG)
            break; /* damage: what is before it can be had */
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && at.position < end)
        remember_end(l, s, &at);
    *ret = at.position;
    return 0;
}

static int make_span(struct plog *l, struct read_view *v, int64_t offset, int64_t limit, int64_t max_bytes,
                     bool at_least_one, struct plog_span *ret)
{
    struct place start;
    int rc = v->seg->foreign ? -EBADMSG : find_end(l, v, limit);
    if (rc < 0)
        return rc;
    rc = find_start(l, v, offset, &start);
    if (rc == 0) /* every segment ends where the next begins: what is not there is lost */
        rc = -EBADMSG;
    if (rc < 0)
        return rc;
    int64_t end = v->end_position;
    if (start.position >= end) {
        if (start.h.base_offset < limit)
            return 0; /* the limit is inside of it */
        /* Compaction took what there was up to the limit, which is older than that. What it has been through is
         * committed, and an answer without a batch would lead nobody on. */
        v->end_position = end = start.position + batch_size(&start.h);
    }
    if (end - start.position > max_bytes) {
        rc = find_border_below(l, v->seg, &start, start.position + MAX(max_bytes, 0), end, &end);
        if (rc < 0)
            return rc;
        if (end == start.position && at_least_one)
            end = MIN(start.position + batch_size(&start.h), v->end_position);
    }
    if (end == start.position)
        return 0;
    if (start.position < v->trusted) {
        rc = check_span(l, v, offset, &start, &end);
        if (rc < 0)
            return rc;
    }
    rc = segfile_pin(v->seg->log, false);
    if (rc < 0)
        return rc;
    *ret = (struct plog_span){
        .file = segfile_ref(v->seg->log),
        .at = start.position,
        .n = end - start.position,
        .base_offset = start.h.base_offset,
    };
    return 0;
}

/* Has compaction left only empty batches in the segment? *ret_end: the offset after them. Looks at one small read,
 * and only at segments that have the size for it. */
static bool is_emptied(const struct read_view *v, int64_t *ret_end)
{
    struct header_window w;
    struct batch_header h;

    w.at = w.n = 0;
    if (v->size == 0 || v->size % BATCH_OVERHEAD != 0 || v->size > (int64_t)sizeof w.p)
        return false;
    for (int64_t at = 0; at < v->size; at += BATCH_OVERHEAD) {
        if (header_window_get(&w, v->seg, at, v->size, &h) < 0 || h.count != 0 ||
            batch_size(&h) != BATCH_OVERHEAD)
            return false;
        *ret_end = batch_last_offset(&h) + 1;
    }
    return true;
}

/* On to the next segment with records, or else to the last one without: clients take answers without a record for
 * records that are larger than what they asked for, and librdkafka gives up after a dozen. */
static void skip_emptied(struct plog *l, int64_t limit, struct read_view *v)
{
    struct read_view next;
    int64_t end;

    for (int i = 0; i < EMPTIED_MAX && is_emptied(v, &end); i++) {
        lock_take(&l->mu);
        bool some = view_take(l, end, limit, &next);
        lock_release(&l->mu);
        if (!some)
            return;
        segment_unref(v->seg);
        *v = next;
    }
}

static int read_once(struct plog *l, int64_t offset, int64_t limit, int64_t max_bytes, bool at_least_one, bool all,
                     struct plog_span *ret)
{
    struct read_view v;
    bool some = false;
    int rc = 0;

    lock_take(&l->mu);
    limit = MIN(limit, l->end_offset);
    if (offset < l->start_offset || offset > l->end_offset)
        rc = -ERANGE;
    else
        some = view_take(l, offset, limit, &v);
    lock_release(&l->mu);
    if (!some)
        return rc;
    if (!all)
        skip_emptied(l, limit, &v);
    rc = make_span(l, &v, MAX(offset, v.seg->base), limit, max_bytes, at_least_one, ret);
    segment_unref(v.seg);
    return rc;
}

static int read_span(struct plog *l, int64_t offset, int64_t limit, int64_t max_bytes, bool at_least_one, bool all,
                     struct plog_span *ret)
{
    for (;;) {
        struct stamp st = plog_stamp(l);
        *ret = (struct plog_span){ .base_offset = -1 };
        int rc = read_once(l, offset, limit, max_bytes, at_least_one, all, ret);
        if (rc == -ERANGE || !plog_moved_since(l, &st)) {
            plog_call_done(l);
            return rc;
        }
        plog_span_release(ret);
    }
}

int plog_read(struct plog *l, int64_t offset, int64_t limit, int64_t max_bytes, bool at_least_one,
              struct plog_span *ret)
{
    return read_span(l, offset, limit, max_bytes, at_least_one, false, ret);
}

int plog_read_to_copy(struct plog *l, int64_t offset, int64_t limit, int64_t max_bytes, bool at_least_one,
                      struct plog_span *ret)
{
    return read_span(l, offset, limit, max_bytes, at_least_one, true, ret);
}

void plog_span_release(struct plog_span *s)
{
    if (s->file == NULL)
        return;
    segfile_unpin(s->file);
    segfile_unref(s->file);
    *s = (struct plog_span){ .base_offset = -1 };
}

int plog_span_read(const struct plog_span *s, uint8_t *ret)
{
    int64_t got = io_pread_full(segfile_io(s->file), segfile_fd(s->file), ret, (size_t)s->n, s->at);
    return got < 0 ? (int)got : got < s->n ? -EIO : 0;
}
