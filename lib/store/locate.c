/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an offset to a batch: the greatest index entry not above it, checked against the batch it names, then
 * a walk over the few headers in between. An index that contradicts its log is rebuilt once. No lock is held
 * over a read.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/store/plog_int.h"

int header_window_get(struct header_window *w, struct segment *s, int64_t position, int64_t end,
                      struct batch_header *ret)
{
    if (end - position < BATCH_OVERHEAD)
        return -EBADMSG;
    if (position < w->at || position + BATCH_OVERHEAD > w->at + w->n) {
        /* A step over the whole window: the batches are large, and only the header is wanted. */
        int64_t want =
            w->n > 0 && position - w->at > (int64_t)sizeof w->p ? BATCH_OVERHEAD : (int64_t)sizeof w->p;
        w->at = position;
        w->n = segfile_read(s->log, w->p, (size_t)MIN(want, end - position), position);
        if (w->n < BATCH_OVERHEAD)
            return w->n < 0 ? (int)w->n : -EBADMSG;
    }
    batch_header_read(w->p + (position - w->at), ret);
    return batch_header_plausible(ret, end - position) && ret->base_offset >= s->base ? 0 : -EBADMSG;
}

int plog_header_at(struct plog *l, struct segment *s, int64_t position, int64_t end, struct batch_header *ret)
{
    uint8_t p[BATCH_OVERHEAD];
    (void)l;

    if (end - position < BATCH_OVERHEAD)
        return -EBADMSG;
    int64_t got = segfile_read(s->log, p, sizeof p, position);
    if (got < (int64_t)sizeof p)
        return got < 0 ? (int)got : -EBADMSG;
    batch_header_read(p, ret);
    return batch_header_plausible(ret, end - position) && ret->base_offset >= s->base ? 0 : -EBADMSG;
}

/* Where to begin to walk: the batch of an index entry, or the front. 0, or -EBADMSG when the index lies. */
static int start_of_walk(struct plog *l, struct segment *s, int64_t offset, int64_t end,
                         struct header_window *w, struct place *ret, int32_t *ret_i)
{
    uint8_t e[ENTRY_BYTES_MAX];
    int rc = entries_floor(&s->index, &l->mu, INDEX_OFFSET, MAX(offset - s->base, 0), e, ret_i);

    if (rc < 0)
        return rc == -ENODATA ? -EBADMSG : rc;
    ret->position = rc == 0 ? 0 : entry_key_get(e, INDEX_POSITION);
    int found = header_window_get(w, s, ret->position, end, &ret->h);
    if (found < 0)
        return found;
    return rc == 0 || batch_last_offset(&ret->h) == s->base + entry_key_get(e, INDEX_OFFSET) ? 0 : -EBADMSG;
}

/* Damage stands between entry i - 1 and the offset: does the batch of entry i hold it? */
static bool is_behind_damage(struct plog *l, struct segment *s, int64_t offset, int64_t end,
                             struct header_window *w, int32_t i, struct place *ret)
{
    uint8_t e[ENTRY_BYTES_MAX];

    if (entries_at(&s->index, &l->mu, i, e) != 1)
        return false;
    struct place at = { .position = entry_key_get(e, INDEX_POSITION) };
    if (header_window_get(w, s, at.position, end, &at.h) < 0 || at.h.base_offset > offset ||
        batch_last_offset(&at.h) != s->base + entry_key_get(e, INDEX_OFFSET) || batch_last_offset(&at.h) < offset)
        return false;
    *ret = at;
    return true;
}

/* The offset lies outside a batch's checksum. A batch that jumps ahead of the one before is in its place only
 * when the one behind goes on from there. */
static bool jumps(struct header_window *w, struct segment *s, int64_t end, const struct place *at,
                  int64_t next_offset)
{
    struct batch_header behind;
    int64_t position = at->position + batch_size(&at->h);

    return at->h.base_offset > next_offset && position < end &&
           header_window_get(w, s, position, end, &behind) == 0 &&
           behind.base_offset <= batch_last_offset(&at->h);
}

static int walk_to(struct plog *l, struct segment *s, int64_t offset, int64_t end, struct place *ret)
{
    struct header_window w;
    int32_t i = -1;
    w.at = w.n = 0;
    int rc = start_of_walk(l, s, offset, end, &w, ret, &i);

    while (rc == 0 && batch_last_offset(&ret->h) < offset) {
        int64_t next = batch_last_offset(&ret->h) + 1;
        ret->position += batch_size(&ret->h);
        if (ret->position >= end)
            return 0;
        rc = header_window_get(&w, s, ret->position, end, &ret->h);
        if (rc == 0 && (ret->h.base_offset < next || jumps(&w, s, end, ret, next)))
            rc = -EBADMSG;
    }
    if (rc == -EBADMSG && is_behind_damage(l, s, offset, end, &w, i + 1, ret))
        return 1;
    return rc < 0 ? rc : 1;
}

int plog_locate_as_is(struct plog *l, struct segment *s, int64_t offset, int64_t end, struct place *ret)
{
    if (end == 0)
        return 0;
    if (s->foreign)
        return -EBADMSG;
    int rc = plog_load_segment(l, s);
    return rc < 0 ? rc : walk_to(l, s, offset, end, ret);
}

int plog_locate(struct plog *l, struct segment *s, int64_t offset, int64_t end, struct place *ret)
{
    int rc = plog_locate_as_is(l, s, offset, end, ret);

    if (rc != -EBADMSG)
        return rc;
    rc = plog_repair_segment(l, s); /* -EBADMSG: made anew before, so the log is damaged */
    return rc < 0 && rc != -EBADMSG ? rc : s->foreign ? -EBADMSG : walk_to(l, s, offset, end, ret);
}

struct stamp plog_stamp(struct plog *l)
{
    lock_take(&l->mu);
    struct stamp st = { .start_offset = l->start_offset, .generation = l->generation, .swaps = l->swaps };
    lock_release(&l->mu);
    return st;
}

bool plog_moved_since(struct plog *l, const struct stamp *st)
{
    struct stamp now = plog_stamp(l);
    return now.start_offset != st->start_offset || now.generation != st->generation ||
           now.swaps != st->swaps;
}

int plog_load_batch(struct plog *l, struct segment *s, const struct place *at, struct bytebuf *b)
{
    (void)l;
    size_t n = (size_t)batch_size(&at->h);

    b->n = 0;
    int64_t got = segfile_read(s->log, bytebuf_room(b, n), n, at->position);
    if (got < 0)
        return (int)got;
    b->n = (size_t)got;
    return b->n == n ? 0 : -EBADMSG;
}
