/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets and text positions, both ways. A segment's .text says where its text begins and has an entry every
 * few KiB; from there on the few batches in between are decoded. Positions of a sealed segment's end are the
 * next one's beginning, so a question costs one segment's entries and one short walk, whatever the size of
 * the log.
 *
 * Bounds: text is known up to the log's end. A reader's own bound (high watermark) is an offset it asks
 * about.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/store/plog_int.h"

#define PLAIN_BYTES_MAX (1LL << 30)

struct text_walk {
    struct plog *l;
    struct segment *seg;
    int64_t end;     /* position where the walk ends */
    int64_t size, text_bytes; /* of the segment */
    int32_t next_entry; /* the one behind the place where the walk began */
    struct place at; /* batch at hand */
    int64_t text;    /* its text position, relative to the segment */
    struct bytebuf bytes;
    struct record_iter iter;
};

/* The segment is known. */
static void walk_init(struct text_walk *w, struct plog *l, struct segment *seg)
{
    *w = (struct text_walk){ .l = l, .seg = seg };
    lock_take(&l->mu);
    w->end = w->size = seg->sum.size;
    w->text_bytes = seg->sum.text_bytes;
    lock_release(&l->mu);
    record_iter_init(&w->iter);
}

static void walk_done(struct text_walk *w)
{
    bytebuf_done(&w->bytes);
    record_iter_done(&w->iter);
}

/* What is known to follow the batch at hand: the next entry, or the segment's end when there is none, or it lies. */
static void walk_bound(struct text_walk *w, int64_t *ret_position, int64_t *ret_text)
{
    uint8_t e[ENTRY_BYTES_MAX];

    *ret_position = w->size;
    *ret_text = w->text_bytes;
    if (entries_at(&w->seg->text, &w->l->mu, w->next_entry, e) != 1 || !text_entry_ok(e) ||
        entry_key_get(e, TEXT_POSITION) > w->size || entry_key_get(e, TEXT_POSITION) <= w->at.position ||
        entry_key_get(e, TEXT_TEXT) < w->text)
        return;
    *ret_position = entry_key_get(e, TEXT_POSITION);
    *ret_text = entry_key_get(e, TEXT_TEXT);
}

/* Puts the walk on the batch of the greatest entry with key <= target, or on the first batch of the segment.
 */
static int walk_start(struct text_walk *w, struct entry_key key, int64_t target)
{
    uint8_t e[ENTRY_BYTES_MAX];
    int32_t i;
    if (w->seg->foreign)
        return -EBADMSG;
    int rc = entries_floor(&w->seg->text, &w->l->mu, key, target, e, &i);

    if (rc == 1 && text_entry_ok(e)) {
        w->at.position = entry_key_get(e, TEXT_POSITION);
        w->text = entry_key_get(e, TEXT_TEXT);
        w->next_entry = i + 1;
        rc = plog_header_at(w->l, w->seg, w->at.position, w->end, &w->at.h);
        if (rc == 0 && w->at.h.base_offset == w->seg->base + entry_key_get(e, TEXT_OFFSET))
            return 0;
        return rc < 0 ? rc : -EBADMSG;
    }
    if (rc == 1 || rc == -ENODATA)
        return -EBADMSG;
    if (rc < 0)
        return rc;
    w->at.position = 0;
    w->text = 0;
    w->next_entry = 0;
    return plog_header_at(w->l, w->seg, 0, w->end, &w->at.h);
}

/* Text of a batch whose checksum is right; -EBADMSG when it is not. */
static int good_batch_text(struct text_walk *w, const struct place *at, int64_t *ret)
{
    struct batch_header h;
    int rc = plog_load_batch(w->l, w->seg, at, &w->bytes);

    if (rc == 0)
        rc = batch_check(slice_of(w->bytes.p, w->bytes.n), INT32_MAX, &h) == 0 ? 0 : -EBADMSG;
    if (rc == 0)
        *ret = batch_text_bytes(&w->iter, slice_of(w->bytes.p, w->bytes.n));
    return rc;
}

/* Text of a damaged batch: what the good ones behind it leave of the text up to the bound. When those cannot be found
 * either, or more batches than this one are damaged, it gets all that is left. */
static int damaged_batch_text(struct text_walk *w, int64_t *ret)
{
    struct place at = w->at;
    int64_t position, left, text;
    int rc = 0;

    walk_bound(w, &position, &left);
    left -= w->text;
    while ((at.position += batch_size(&at.h)) < position) {
        rc = plog_header_at(w->l, w->seg, at.position, w->size, &at.h);
        if (rc == 0)
            rc = good_batch_text(w, &at, &text);
        if (rc == 0)
            left -= text;
        if (rc < 0 && rc != -EBADMSG)
            return rc;
        if (rc < 0)
            break;
    }
    *ret = MAX(left, 0);
    return 0;
}

/* Text of the batch at hand. */
static int walk_batch_text(struct text_walk *w, int64_t *ret)
{
    int rc = good_batch_text(w, &w->at, ret);
    return rc == -EBADMSG ? damaged_batch_text(w, ret) : rc;
}

/* To the next batch; 1, 0 at the end. text: of the batch at hand. */
static int walk_next(struct text_walk *w, int64_t text)
{
    w->text += text;
    w->at.position += batch_size(&w->at.h);
    if (w->at.position >= w->end)
        return 0;
    int rc = plog_header_at(w->l, w->seg, w->at.position, w->end, &w->at.h);
    return rc < 0 ? rc : 1;
}

int plog_text_before(struct plog *l, struct segment *s, int64_t position, int64_t *ret)
{
    struct text_walk w;
    int64_t text = 0;

    walk_init(&w, l, s);
    w.end = position;
    int rc = walk_start(&w, TEXT_POSITION, position - 1);
    do {
        if (rc >= 0)
            rc = walk_batch_text(&w, &text);
        if (rc >= 0)
            rc = walk_next(&w, text);
    } while (rc == 1);
    *ret = w.text;
    walk_done(&w);
    return rc;
}

/* Text of the records of the batch at hand that lie below offset. A batch that cannot be decoded has none, as
 * in batch_text_bytes. */
static int text_below(struct text_walk *w, int64_t offset, int64_t *ret)
{
    struct record r;
    int64_t text = 0;
    int rc = plog_load_batch(w->l, w->seg, &w->at, &w->bytes);

    if (rc < 0)
        return rc;
    rc = record_iter_start(&w->iter, slice_of(w->bytes.p, w->bytes.n), PLAIN_BYTES_MAX);
    if (rc == 0 && !batch_is_control(&w->iter.h)) {
        while ((rc = record_iter_next(&w->iter, &r)) == 1 && r.offset < offset)
            text += (r.value.n > 0 ? r.value.n : 0) + 1;
    }
    *ret = rc < 0 ? 0 : text;
    return 0;
}

static int walk_to_offset(struct text_walk *w, int64_t offset, int64_t *ret)
{
    int64_t text;
    int rc = walk_start(w, TEXT_OFFSET, offset - w->seg->base);

    while (rc >= 0 && batch_last_offset(&w->at.h) < offset) {
        int64_t next = batch_last_offset(&w->at.h) + 1;
        rc = walk_batch_text(w, &text);
        if (rc == 0)
            rc = walk_next(w, text);
        if (rc == 0 || (rc == -EBADMSG && next == offset)) { /* the end of what stands before damage is known */
            *ret = w->text;
            return 0;
        }
    }
    if (rc < 0)
        return rc;
    text = 0;
    if (w->at.h.base_offset < offset)
        rc = text_below(w, offset, &text);
    *ret = w->text + text;
    return rc < 0 ? rc : 0;
}

/* What can be said without reading: the end, and places where a recent batch ended. Under mu. */
static bool text_at_border(const struct plog *l, const struct segment *s, int64_t offset, int64_t *ret)
{
    struct border b;

    if (s->known && offset == s->base)
        *ret = s->text_base;
    else if (s->known && offset >= s->sum.end_offset)
        *ret = s->text_base + s->sum.text_bytes;
    else if (plog_get_border(l, offset, s, &b))
        *ret = b.text;
    else
        return false;
    return true;
}

/* The cleaner may move it at any time; who has used it asks plog_moved_since afterwards. */
static int64_t text_base_of(struct plog *l, const struct segment *s)
{
    lock_take(&l->mu);
    int64_t base = s->text_base;
    lock_release(&l->mu);
    return base;
}

/* The entries contradict the log, or it is damaged, and what follows is found from entries only. */
static bool walk_repair(struct text_walk *w)
{
    struct text_walk old = *w;

    if (plog_repair_segment(w->l, w->seg) < 0)
        return false;
    walk_init(w, old.l, old.seg);
    walk_done(&old);
    return true;
}

static int text_of_offset(struct plog *l, int64_t offset, int64_t *ret)
{
    struct text_walk w;
    int64_t text = 0;

    lock_take(&l->mu);
    if (offset < l->start_offset || offset > l->end_offset) {
        lock_release(&l->mu);
        return -ERANGE;
    }
    struct segment *s = l->segs[plog_find_segment(l, offset)];
    bool done = text_at_border(l, s, offset, ret), empty = s->sum.size == 0;
    if (!done)
        segment_ref(s);
    lock_release(&l->mu);
    if (done)
        return 0;
    int rc = plog_load_segment(l, s);
    if (rc == 0 && !empty) {
        walk_init(&w, l, s);
        rc = walk_to_offset(&w, offset, &text);
        if (rc == -EBADMSG && walk_repair(&w))
            rc = walk_to_offset(&w, offset, &text);
        walk_done(&w);
    }
    if (rc == 0)
        *ret = text_base_of(l, s) + text;
    segment_unref(s);
    return rc;
}

int plog_text_of_offset(struct plog *l, int64_t offset, int64_t *ret)
{
    for (;;) {
        struct stamp st = plog_stamp(l);
        int rc = text_of_offset(l, offset, ret);
        if (rc == -ERANGE || !plog_moved_since(l, &st))
            return rc;
    }
}

/* The segment whose text holds pos: a binary search over the segments, of which each one looked at is loaded.
 */
static int find_text_segment(struct plog *l, int64_t pos, struct segment **ret)
{
    int64_t low = 0, high = INT64_MAX; /* base offsets: the answer's is in [low, high) */
    int rc = 0;

    for (;;) {
        lock_take(&l->mu);
        int first = plog_find_segment(l, low),
            last = plog_find_segment(l, high == INT64_MAX ? high : high - 1);
        bool at_end = pos >= plog_active(l)->text_base && high == INT64_MAX;
        int i = at_end || first == last ? last : first + (last - first + 1) / 2;
        struct segment *s = segment_ref(l->segs[i]);
        lock_release(&l->mu);
        rc = plog_load_segment(l, s);
        if (rc < 0 || first == last || at_end) {
            *ret = s;
            break;
        }
        if (text_base_of(l, s) <= pos)
            low = s->base;
        else
            high = s->base;
        segment_unref(s);
    }
    return rc;
}

static int walk_to_text(struct text_walk *w, int64_t rel)
{
    int64_t text = 0;
    int rc = walk_start(w, TEXT_TEXT, rel);

    while (rc >= 0) {
        rc = walk_batch_text(w, &text);
        if (rc < 0 || w->text + text > rel)
            return rc;
        rc = walk_next(w, text);
        if (rc == 0)
            return -ERANGE;
    }
    return rc;
}

static int offset_of_text(struct plog *l, int64_t pos, int64_t *ret_base, int64_t *ret_pos)
{
    struct segment *s;
    struct text_walk w;

    lock_take(&l->mu);
    const struct segment *active = plog_active(l);
    int64_t text_end = active->text_base + active->sum.text_bytes;
    int64_t end_offset = l->end_offset, start_offset = l->start_offset;
    lock_release(&l->mu);
    if (pos < 0 || pos > text_end)
        return -ERANGE;
    if (pos == text_end) {
        *ret_base = end_offset;
        *ret_pos = pos;
        return 0;
    }
    int rc = find_text_segment(l, pos, &s);
    int64_t base = text_base_of(l, s);
    if (rc == 0 && pos < base)
        rc = -ERANGE;
    if (rc == 0) {
        walk_init(&w, l, s);
        rc = walk_to_text(&w, pos - base);
        if (rc == -EBADMSG && walk_repair(&w)) {
            base = text_base_of(l, s);
            rc = pos < base ? -ERANGE : walk_to_text(&w, pos - base);
        }
        if (rc == 0 && batch_last_offset(&w.at.h) < start_offset)
            rc = -ERANGE;
        if (rc == 0) {
            *ret_base = w.at.h.base_offset;
            *ret_pos = base + w.text;
        }
        walk_done(&w);
    }
    segment_unref(s);
    return rc;
}

int plog_offset_of_text(struct plog *l, int64_t pos, int64_t *ret_base, int64_t *ret_pos)
{
    for (;;) {
        struct stamp st = plog_stamp(l);
        int rc = offset_of_text(l, pos, ret_base, ret_pos);
        if (!plog_moved_since(l, &st))
            return rc;
    }
}
