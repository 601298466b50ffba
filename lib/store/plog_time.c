/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets by timestamp. Timestamps need not rise: the answer is the smallest offset whose timestamp reaches
 * the target. Segments whose greatest timestamp is too small are passed over; in the one that has it,
 * .timeindex says where to begin, and the records of the candidate batches decide.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/store/plog_int.h"

#define PLAIN_BYTES_MAX (1LL << 30)

struct time_view {       /* a segment as it was under mu, loaded */
    struct segment *seg; /* a reference */
    int64_t size, end_offset;
    int64_t max_timestamp, max_timestamp_offset;
};

/* The segment that holds offset. */
static int view_segment(struct plog *l, int64_t offset, struct time_view *ret)
{
    lock_take(&l->mu);
    int i = plog_find_segment(l, offset);
    ret->seg = segment_ref(l->segs[i]);
    ret->size = ret->seg->sum.size;
    ret->end_offset = plog_segment_end(l, i);
    lock_release(&l->mu);
    int rc = plog_load_segment(l, ret->seg);
    if (rc < 0) {
        segment_unref(ret->seg);
        return rc;
    }
    lock_take(&l->mu);
    ret->max_timestamp = ret->seg->sum.max_timestamp;
    ret->max_timestamp_offset = ret->seg->sum.max_timestamp_offset;
    lock_release(&l->mu);
    return 0;
}

/* First record of a batch in [from, limit) with timestamp >= ts: 1 or 0, -errno. */
static int find_in_batch(struct plog *l, struct segment *s, const struct place *at, int64_t ts, int64_t from,
                         int64_t limit, struct record *ret)
{
    struct bytebuf b = { 0 };
    struct record_iter it;
    int rc = plog_load_batch(l, s, at, &b);

    record_iter_init(&it);
    if (rc == 0)
        rc = record_iter_start(&it, slice_of(b.p, b.n), PLAIN_BYTES_MAX);
    if (rc == 0)
        while ((rc = record_iter_next(&it, ret)) == 1 && (ret->timestamp < ts || ret->offset < from)) {
        }
    record_iter_done(&it);
    bytebuf_done(&b);
    return rc == 1 && ret->offset >= limit ? 0 : rc;
}

/* The offset at which looking for ts begins: everything before it is older. 0, or -EBADMSG when the index
 * lies. */
static int time_floor(struct plog *l, const struct time_view *v, int64_t ts, int64_t *ret)
{
    uint8_t e[ENTRY_BYTES_MAX];
    struct place at;
    int32_t i;
    int rc = entries_floor(&v->seg->time, &l->mu, TIME_TIMESTAMP, ts, e, &i);

    if (rc <= 0) {
        *ret = v->seg->base;
        return rc == -ENODATA ? -EBADMSG : rc;
    }
    *ret = v->seg->base + entry_key_get(e, TIME_OFFSET);
    rc = plog_locate(l, v->seg, *ret, v->size, &at);
    if (rc < 0)
        return rc;
    return rc == 1 && batch_last_offset(&at.h) == *ret &&
                   at.h.max_timestamp == entry_key_get(e, TIME_TIMESTAMP)
               ? 0
               : -EBADMSG;
}

static int find_in_segment(struct plog *l, const struct time_view *v, int64_t ts, int64_t from, int64_t limit,
                           struct record *ret)
{
    struct header_window w;
    struct place at;
    int64_t begin;
    int rc = time_floor(l, v, ts, &begin);

    w.at = w.n = 0;
    if (rc == -EBADMSG) {
        rc = plog_repair_segment(l, v->seg);
        if (rc == 0)
            rc = time_floor(l, v, ts, &begin);
    }
    if (rc == 0)
        rc = plog_locate(l, v->seg, MAX(begin, from), v->size, &at);
    while (rc == 1 && at.h.base_offset < limit) {
        if (at.h.max_timestamp >= ts && !batch_is_control(&at.h)) {
            rc = find_in_batch(l, v->seg, &at, ts, from, limit, ret);
            if (rc != 0)
                return rc;
        }
        at.position += batch_size(&at.h);
        if (at.position >= v->size)
            return 0;
        rc = header_window_get(&w, v->seg, at.position, v->size, &at.h);
        rc = rc < 0 ? rc : 1;
    }
    return rc < 0 ? rc : 0;
}

static void get_range(struct plog *l, int64_t *ret_start, int64_t *limit)
{
    lock_take(&l->mu);
    *ret_start = l->start_offset;
    *limit = MIN(*limit, l->end_offset);
    lock_release(&l->mu);
}

static int find_time(struct plog *l, int64_t ts, int64_t limit, int64_t *ret_offset, int64_t *ret_ts)
{
    struct record r;
    int64_t start;
    int rc = 0;

    *ret_offset = *ret_ts = -1;
    get_range(l, &start, &limit);
    for (int64_t from = start; from < limit && rc == 0;) {
        struct time_view v;
        rc = view_segment(l, from, &v);
        if (rc < 0)
            return rc;
        if (v.max_timestamp >= ts)
            rc = find_in_segment(l, &v, ts, start, limit, &r);
        from = v.end_offset;
        segment_unref(v.seg);
    }
    if (rc < 0)
        return rc;
    if (rc == 1) {
        *ret_offset = r.offset;
        *ret_ts = r.timestamp;
    }
    return 0;
}

/* Greatest timestamp of the batches in [from, limit), by their headers; only for a segment that lies partly
 * outside and whose greatest one is in that part. */
static int max_by_headers(struct plog *l, const struct time_view *v, int64_t from, int64_t limit,
                          int64_t *ret_ts, int64_t *ret_offset)
{
    struct header_window w;
    struct place at;
    int rc = plog_locate(l, v->seg, from, v->size, &at);

    w.at = w.n = 0;
    *ret_ts = *ret_offset = -1;
    while (rc == 1 && at.h.base_offset < limit) {
        if (at.h.max_timestamp > *ret_ts && !batch_is_control(&at.h)) {
            *ret_ts = at.h.max_timestamp;
            *ret_offset = batch_last_offset(&at.h);
        }
        at.position += batch_size(&at.h);
        if (at.position >= v->size)
            break;
        rc = header_window_get(&w, v->seg, at.position, v->size, &at.h);
        rc = rc < 0 ? rc : 1;
    }
    return rc < 0 ? rc : 0;
}

static int max_of_segment(struct plog *l, const struct time_view *v, int64_t start, int64_t limit,
                          int64_t *ret_ts, int64_t *ret_offset)
{
    *ret_ts = v->max_timestamp;
    *ret_offset = v->max_timestamp_offset;
    if (*ret_offset < 0 || (*ret_offset >= start && *ret_offset < limit))
        return 0;
    return max_by_headers(l, v, MAX(start, v->seg->base), limit, ret_ts, ret_offset);
}

/* The first record of the batch that ends with `last` and has that timestamp. */
static int exact_record(struct plog *l, int64_t last, int64_t ts, int64_t start, int64_t limit,
                        int64_t *ret_offset)
{
    struct time_view v;
    struct place at;
    struct record r;
    int rc = view_segment(l, last, &v);

    if (rc < 0)
        return rc;
    rc = plog_locate(l, v.seg, last, v.size, &at);
    if (rc == 1)
        rc = find_in_batch(l, v.seg, &at, ts, start, limit, &r);
    segment_unref(v.seg);
    if (rc == 1)
        *ret_offset = r.offset;
    return rc < 0 ? rc : 0;
}

static int max_timestamp(struct plog *l, int64_t limit, int64_t *ret_offset, int64_t *ret_ts)
{
    int64_t start, best = -1, best_offset = -1;

    *ret_offset = *ret_ts = -1;
    get_range(l, &start, &limit);
    for (int64_t from = start; from < limit;) {
        struct time_view v;
        int64_t ts, offset;
        int rc = view_segment(l, from, &v);
        if (rc < 0)
            return rc;
        rc = max_of_segment(l, &v, start, limit, &ts, &offset);
        from = v.end_offset;
        segment_unref(v.seg);
        if (rc < 0)
            return rc;
        if (ts > best) {
            best = ts;
            best_offset = offset;
        }
    }
    if (best < 0)
        return 0;
    int rc = exact_record(l, best_offset, best, start, limit, ret_offset);
    *ret_ts = *ret_offset >= 0 ? best : -1;
    return rc;
}

int plog_find_time(struct plog *l, int64_t ts, int64_t limit, int64_t *ret_offset, int64_t *ret_ts)
{
    for (;;) {
        struct stamp st = plog_stamp(l);
        int rc = find_time(l, ts, limit, ret_offset, ret_ts);
        if (rc == 0 || !plog_moved_since(l, &st))
            return rc;
    }
}

int plog_max_timestamp(struct plog *l, int64_t limit, int64_t *ret_offset, int64_t *ret_ts)
{
    for (;;) {
        struct stamp st = plog_stamp(l);
        int rc = max_timestamp(l, limit, ret_offset, ret_ts);
        if (rc == 0 || !plog_moved_since(l, &st))
            return rc;
    }
}
