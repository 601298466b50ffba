/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a segment's index files anew from its log, which is the truth. Bytes that are no batch keep their place in the log
 * and in the text. Where the text comes out shorter or longer than was known before, the first damage gets the difference,
 * in a second pass, so that positions behind it stay what they were. Blocks; whoever calls keeps others away from the
 * segment.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/store/segment.h"

#define PLAIN_BYTES_MAX (1LL << 30) /* decompressed size of one batch that is walked at all */

int64_t batch_text_bytes(struct record_iter *it, struct slice batch)
{
    struct record r;
    int64_t sum = 0;
    int rc = record_iter_start(it, batch, PLAIN_BYTES_MAX);

    if (rc < 0 || batch_is_control(&it->h))
        return 0;
    while ((rc = record_iter_next(it, &r)) == 1)
        sum += (r.value.n > 0 ? r.value.n : 0) + 1;
    return rc < 0 ? 0 : sum;
}

#define DAMAGE_DECODED_MAX (16 * 1024 * 1024) /* of a damaged place so much is looked at */

int64_t damage_text_bytes(struct record_iter *iter, const struct logscan *scan, const struct scan_item *it)
{
    struct bytebuf b = { 0 };
    size_t n = (size_t)MIN(it->n, (int64_t)DAMAGE_DECODED_MAX);
    int64_t text = 0, got = io_pread_full(scan->io, scan->fd, bytebuf_room(&b, n), n, it->at);
    struct batch_header h;

    for (int64_t at = 0; got - at >= BATCH_OVERHEAD; at += batch_size(&h)) {
        batch_header_read(b.p + at, &h);
        if (!batch_header_plausible(&h, got - at))
            break;
        text += batch_text_bytes(iter, slice_of(b.p + at, (size_t)batch_size(&h)));
    }
    bytebuf_done(&b);
    return MAX(text, 1);
}

/* Bytes that are no batch keep their place; the next batch gets index entries, so that it is found without
 * walking over them. At the segment's end they stand for all offsets up to the next one. */
static void add_damage(struct segment *s, const struct logscan *scan, const struct scan_item *it, int64_t text)
{
    s->sum.size += it->n;
    s->sum.text_bytes += text;
    s->sum.since_index = INT32_MAX + 1LL;
    s->sum.heads = s->sum.all_heads = HEADS_UNKNOWN;
    if (it->what == SCAN_TAIL && scan->limit_offset != INT64_MAX)
        s->sum.end_offset = scan->limit_offset;
}

/* The first damage has `correction` bytes of text more than it seems to have. */
static int rebuild_scan(struct segment *s, struct logscan *scan, int32_t index_interval_bytes, int64_t correction,
                        bool *ret_damaged)
{
    struct record_iter iter;
    struct scan_item it;
    struct slice bytes;
    int rc;

    record_iter_init(&iter);
    while ((rc = logscan_next(scan, &it)) == 0 && it.what != SCAN_END) {
        if (it.what != SCAN_BATCH) {
            add_damage(s, scan, &it, MAX(damage_text_bytes(&iter, scan, &it) + correction, 1));
            correction = 0;
            *ret_damaged = true;
            continue;
        }
        if (it.at + it.n > INT32_MAX || batch_last_offset(&it.h) - s->base > INT32_MAX) {
            rc = -EBADMSG;
            break;
        }
        rc = logscan_bytes(scan, &it, &bytes);
        if (rc == 0 && segment_tails_full(s))
            rc = segment_write_tails(s, NULL);
        if (rc < 0)
            break;
        segment_add(s, &it.h, batch_text_bytes(&iter, bytes), index_interval_bytes);
    }
    record_iter_done(&iter);
    return rc;
}

static int rebuild_with(struct segment *s, int64_t size, int64_t limit_offset, int32_t index_interval_bytes,
                        int64_t correction, bool *ret_damaged)
{
    struct segment_sum empty = segment_sum_empty(s->base);
    struct logscan scan;

    segment_reset(s, &empty);
    int rc = segfile_pin(s->log, false);
    if (rc < 0)
        return rc;
    logscan_init(&scan, segfile_io(s->log), segfile_fd(s->log), 0, size, s->base);
    scan.limit_offset = limit_offset;
    rc = rebuild_scan(s, &scan, index_interval_bytes, correction, ret_damaged);
    logscan_done(&scan);
    segfile_unpin(s->log);
    return rc;
}

int segment_rebuild(struct segment *s, int64_t size, int64_t limit_offset, int32_t index_interval_bytes,
                    int64_t text_bytes)
{
    bool damaged = false;
    int rc = rebuild_with(s, size, limit_offset, index_interval_bytes, 0, &damaged);

    if (rc == 0 && damaged && text_bytes >= 0 && text_bytes != s->sum.text_bytes)
        rc = rebuild_with(s, size, limit_offset, index_interval_bytes, text_bytes - s->sum.text_bytes, &damaged);
    if (rc < 0)
        return rc;
    segment_add_last_time(s);
    rc = segment_write_tails(s, NULL);
    if (rc == 0)
        rc = segment_trim_files(s);
    return rc < 0 ? rc : damaged;
}
