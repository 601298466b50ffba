/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the batches of a .log are those that were written there. A batch's own checksum does not cover its offset
 * and its length, and says nothing of which log it belongs to; so every entry of .text has a checksum over the headers
 * of the batches since the entry before (heads), and the summary one over the rest. What this process wrote or scanned
 * needs no look; what it found is looked at when it is first read, headers only, from entry to entry, and remembered.
 *
 * When heads do not match, the batches between the two entries are read: those that fail their own checksum are bad;
 * when none does, what joins either entry without a gap in the offsets is good. When nothing in the whole segment
 * matches, neither this nor the other indexes, the file is not the one that was written there, and none of it is read.
 * A line tells of each bad place once.
 *
 * Any thread; the ranges are guarded by mu.
 */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/store/plog_int.h"

/* Batches between two entries of .text, or between one and the segment's end. */
struct stretch {
    int64_t from, to;     /* positions */
    int64_t first, limit; /* offset of the first batch; where the next stretch begins */
    bool at_front;        /* the first batch's offset is not known exactly */
    uint32_t heads;
};

/* ---- what is remembered; under mu ---- */

static const struct checked *range_of(const struct checked *v, int n, int64_t position)
{
    for (int i = 0; i < n; i++) {
        if (v[i].from <= position && position < v[i].to)
            return &v[i];
    }
    return NULL;
}

/* Joined with a neighbour if there is one; a full list forgets one: it costs a second look. */
static void range_add(struct checked *v, int *n, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    for (int i = 0; i < *n;) {
        if (v[i].to < from || to < v[i].from) {
            i++;
            continue;
        }
        from = MIN(from, v[i].from);
        to = MAX(to, v[i].to);
        v[i] = v[--*n];
    }
    if (*n == CHECKED_RANGES)
        v[0] = v[--*n];
    v[(*n)++] = (struct checked){ from, to };
}

/* ---- a stretch ---- */

static int entry_get(struct plog *l, struct segment *s, int32_t i, uint8_t *ret)
{
    lock_take(&l->mu);
    bool in_tail = i >= s->text.n_file && i < s->text.n;
    int rc = in_tail ? entries_get(&s->text, i, ret) : 0;
    lock_release(&l->mu);
    if (!in_tail)
        rc = entries_get(&s->text, i, ret);
    return rc < 0 ? rc : text_entry_ok(ret) ? 0 : -EBADMSG;
}

/* The stretch that holds `position`. -EBADMSG or -ENODATA: .text cannot be used. */
static int find_stretch(struct plog *l, struct segment *s, int64_t position, struct stretch *ret)
{
    uint8_t e[ENTRY_BYTES_MAX];
    int32_t i = -1;

    lock_take(&l->mu);
    struct segment_sum sum = segment_sum(s);
    int at = plog_find_segment(l, s->base);
    int64_t end = at + 1 < l->n_segs ? l->segs[at + 1]->base : sum.end_offset;
    lock_release(&l->mu);
    int rc = entries_floor(&s->text, &l->mu, TEXT_POSITION, position, e, &i);
    if (rc < 0 || (rc == 1 && !text_entry_ok(e)))
        return rc < 0 ? rc : -EBADMSG;
    *ret = (struct stretch){ .first = s->base, .at_front = rc == 0 };
    if (rc == 1) {
        ret->from = entry_key_get(e, TEXT_POSITION);
        ret->first = s->base + entry_key_get(e, TEXT_OFFSET);
    }
    i = rc == 1 ? i + 1 : 0;
    ret->to = sum.size;
    ret->limit = end;
    ret->heads = sum.heads;
    if (i >= sum.text_n)
        return 0;
    rc = entry_get(l, s, i, e);
    ret->to = entry_key_get(e, TEXT_POSITION);
    ret->limit = s->base + entry_key_get(e, TEXT_OFFSET);
    ret->heads = text_entry_heads(e);
    return rc < 0 ? rc : ret->from < ret->to && ret->to <= sum.size && position < ret->to ? 0 : -EBADMSG;
}

static bool begins_right(const struct stretch *st, const struct batch_header *h)
{
    return st->at_front ? h->base_offset >= st->first : h->base_offset == st->first;
}

/* By the headers alone: 1 they are what was written, 0 not, 2 they fit in between but are others, -errno. */
static int headers_match(struct segment *s, const struct stretch *st)
{
    struct header_window w;
    struct batch_header h;
    uint32_t heads = 0;
    int64_t next = st->first;

    if (st->heads == HEADS_UNKNOWN)
        return 0;

    w.at = w.n = 0;
    for (int64_t at = st->from; at < st->to; at += batch_size(&h)) {
        int rc = header_window_get(&w, s, at, st->to, &h);
        if (rc < 0)
            return rc == -EBADMSG ? 0 : rc;
        if (h.base_offset < next || (at == st->from && !begins_right(st, &h)))
            return 0;
        next = batch_last_offset(&h) + 1;
        heads = heads_add(heads, &h);
    }
    return next > st->limit ? 0 : heads == st->heads ? 1 : 2;
}

/* What a stretch that does not match is made of. */
struct verdict {
    bool failed;              /* some batch failed its own checksum, or is none */
    int64_t prefix, suffix;   /* positions: what joins the ends without a gap */
    int64_t prefix_to, suffix_from; /* offsets */
};

static void judge_item(struct verdict *v, const struct stretch *st, const struct scan_item *it)
{
    if (it->what != SCAN_BATCH) {
        v->failed = true;
        v->suffix = it->at + it->n;
        v->suffix_from = -1;
        return;
    }
    int64_t next = batch_last_offset(&it->h) + 1;
    if (v->prefix == it->at &&
        (it->at == st->from ? begins_right(st, &it->h) : it->h.base_offset == v->prefix_to)) {
        v->prefix = it->at + it->n;
        v->prefix_to = next;
    }
    if (v->suffix_from != it->h.base_offset)
        v->suffix = it->at;
    v->suffix_from = next;
}

/* ---- is it this log's file at all? ---- */

#define STRETCHES_TRIED 64

/* Do the entries of .index name batches that are there? 1, 0, or -1 when it has none. */
static int index_agrees(struct segment *s, int64_t size)
{
    uint8_t e[INDEX_ENTRY_BYTES];
    struct header_window w;
    struct batch_header h;
    int ret = -1;

    w.at = w.n = 0;
    for (int64_t at = 0; segfile_read(s->index.file, e, sizeof e, at) == sizeof e; at += sizeof e) {
        int64_t position = entry_key_get(e, INDEX_POSITION);
        if (position >= size || header_window_get(&w, s, position, size, &h) < 0 ||
            batch_last_offset(&h) != s->base + entry_key_get(e, INDEX_OFFSET))
            return 0;
        ret = 1;
    }
    return ret;
}

/* Is the batch of the last entry of .timeindex there? */
static bool timeindex_agrees(struct segment *s, int64_t size)
{
    uint8_t e[TIME_ENTRY_BYTES];
    struct header_window w;
    struct batch_header h;
    int64_t bytes = segfile_size(s->time.file) / TIME_ENTRY_BYTES * TIME_ENTRY_BYTES;

    if (bytes < TIME_ENTRY_BYTES ||
        segfile_read(s->time.file, e, sizeof e, bytes - TIME_ENTRY_BYTES) != sizeof e)
        return false; /* it says nothing for the file */
    w.at = w.n = 0;
    for (int64_t at = 0; at < size && header_window_get(&w, s, at, size, &h) == 0; at += batch_size(&h)) {
        if (batch_last_offset(&h) == s->base + entry_key_get(e, TIME_OFFSET))
            return h.max_timestamp == entry_key_get(e, TIME_TIMESTAMP);
    }
    return false;
}

/* Good batches, one after the other, from where the stretch begins to where it ends or beyond. Torn or damaged bytes
 * are not. */
static bool are_whole(struct plog *l, struct segment *s, const struct stretch *st, int64_t size)
{
    struct logscan scan;
    struct scan_item it = { .what = SCAN_BATCH };

    if (segfile_pin(s->log, false) < 0)
        return false;
    logscan_init(&scan, l->io, segfile_fd(s->log), st->from, size, 0); /* whatever their offsets */
    while (it.what == SCAN_BATCH && scan.at < st->to) {
        if (logscan_next(&scan, &it) < 0)
            it.what = SCAN_DAMAGED;
    }
    logscan_done(&scan);
    segfile_unpin(s->log);
    return it.what == SCAN_BATCH;
}

bool plog_is_foreign(struct plog *l, struct segment *s, int64_t size)
{
    int32_t step = MAX(s->text.n / STRETCHES_TRIED, 1);
    uint8_t e[ENTRY_BYTES_MAX];
    struct stretch st;
    bool whole = false, fits = false; /* some stretch is of good batches; and just as long */

    for (int32_t i = -1; i < s->text.n; i += step) {
        if (i >= 0 && entry_get(l, s, i, e) < 0)
            return false; /* the witness is damaged itself */
        if (find_stretch(l, s, i < 0 ? 0 : entry_key_get(e, TEXT_POSITION), &st) < 0)
            return false;
        if (st.to > size || st.heads == HEADS_UNKNOWN)
            continue;
        int rc = headers_match(s, &st);
        if (rc == 1 || rc < 0)
            return false;
        bool good = are_whole(l, s, &st, size);
        whole = whole || good;
        fits = fits || (good && rc == 2);
    }
    if (fits || !whole)
        return fits;
    int agrees = index_agrees(s, size);
    return agrees == 0 || (agrees < 0 && !timeindex_agrees(s, size));
}

/* Adds what of the stretch is good and what is bad. With a batch that failed, that is what did not match, and the
 * others are as they were. */
static int judge_batches(struct plog *l, struct segment *s, const struct stretch *st, int64_t size)
{
    struct logscan scan;
    struct scan_item it;
    struct verdict v = { .failed = st->heads == HEADS_UNKNOWN, .prefix = st->from, .prefix_to = st->first, .suffix = st->from, .suffix_from = -1 };
    int64_t end = MAX(MIN(st->to, size), st->from);
    int rc = 0;

    for (int pass = 0; rc == 0 && pass < 2; pass++) {
        logscan_init(&scan, l->io, segfile_fd(s->log), st->from, end, st->first);
        scan.limit_offset = st->limit;
        while ((rc = logscan_next(&scan, &it)) == 0 && it.what != SCAN_END) {
            if (pass == 0) {
                judge_item(&v, st, &it);
                continue;
            }
            bool good = it.what == SCAN_BATCH && (v.failed || it.at < v.prefix || it.at >= v.suffix);
            lock_take(&l->mu);
            if (good)
                range_add(s->good, &s->n_good, it.at, it.at + it.n);
            else
                range_add(s->bad, &s->n_bad, it.at, it.at + it.n);
            lock_release(&l->mu);
        }
        logscan_done(&scan);
        if (v.suffix_from != st->limit)
            v.suffix = st->to;
        if (!v.failed && v.prefix == end) { /* whole, in order, and not what was written */
            v.prefix = st->from;
            v.suffix = st->to;
        }
    }
    lock_take(&l->mu);
    if (rc == 0) /* the file is shorter than it was */
        range_add(s->bad, &s->n_bad, end, st->to);
    lock_release(&l->mu);
    return rc;
}

static int judge_stretch(struct plog *l, struct segment *s, const struct stretch *st)
{
    int64_t size = segfile_size(s->log);

    if (size < 0)
        return (int)size;
    if (plog_is_foreign(l, s, size)) {
        plog_set_foreign(l, s);
        log_warn("%s is not the file that was written there: its records cannot be read", segfile_path(s->log));
        return -EBADMSG;
    }
    int rc = segfile_pin(s->log, false);
    if (rc < 0)
        return rc;
    rc = judge_batches(l, s, st, size);
    segfile_unpin(s->log);
    if (rc == 0)
        log_warn("%s: damage between positions %" PRId64 " and %" PRId64 ": of the records with offsets %" PRId64
                 "..%" PRId64 " some cannot be read",
                 segfile_path(s->log), st->from, st->to, st->first, st->limit - 1);
    return rc;
}

void plog_set_foreign(struct plog *l, struct segment *s)
{
    lock_take(&l->mu);
    s->foreign = true;
    lock_release(&l->mu);
}

static int look_at_stretch(struct plog *l, struct segment *s, int64_t position)
{
    struct text_header h;
    struct stretch st;

    if (!segment_read_header(s, &h) || h.version == 1) /* another log's, or none: it is made anew */
        return -EBADMSG;
    int rc = find_stretch(l, s, position, &st);
    if (rc < 0)
        return rc;
    rc = headers_match(s, &st);
    if (rc == 1) {
        lock_take(&l->mu);
        range_add(s->good, &s->n_good, st.from, st.to);
        lock_release(&l->mu);
    }
    return rc == 0 || rc == 2 ? judge_stretch(l, s, &st) : MIN(rc, 0);
}

/* The first position at or behind `position` that is good; *good: `position` is, and up to where. 0 when it has not
 * been looked at. */
static int64_t remembered(struct plog *l, const struct segment *s, int64_t position, bool *ret_good)
{
    int64_t to = 0;

    lock_take(&l->mu);
    const struct checked *bad = range_of(s->bad, s->n_bad, position);
    const struct checked *good = range_of(s->good, s->n_good, position);
    *ret_good = bad == NULL;
    if (bad != NULL)
        to = bad->to;
    else if (position >= s->trusted)
        to = INT64_MAX;
    else if (good != NULL)
        to = good->to;
    lock_release(&l->mu);
    return to;
}

int plog_check_range(struct plog *l, struct segment *s, int64_t from, int64_t *to)
{
    bool repaired = false;
    int loaded = plog_load_segment(l, s);

    if (loaded < 0)
        return loaded;
    for (int64_t at = from; at < *to;) {
        bool good;
        int64_t known = remembered(l, s, at, &good);
        if (known > 0 && good) {
            at = known;
            continue;
        }
        if (known > 0) {
            *to = at == from ? known : at;
            return at == from ? -EBADMSG : 0;
        }
        int rc = look_at_stretch(l, s, at);
        if ((rc == -EBADMSG || rc == -ENODATA) && !s->foreign && !repaired) {
            repaired = true;
            rc = plog_repair_segment(l, s);
        }
        if (rc == -EAGAIN && at > from) { /* what is good so far can be had without waiting */
            *to = at;
            return 0;
        }
        if (rc < 0)
            return rc == -ENODATA ? -EBADMSG : rc;
    }
    return 0;
}
