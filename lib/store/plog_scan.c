/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log from one offset to another, batch by batch, for who must not miss or misread any: every batch is checked as
 * a start checks it (S1), what is damaged is stepped over and told. One thread a scan; it sees segments as they are
 * when it comes to them.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/plog_int.h"

struct plog_scan {
    struct plog *log;
    int64_t next, to;        /* offsets: what comes next, where to end */
    struct segment *seg;     /* the one at hand, a reference with its file pinned; NULL: find the one of `next` */
    int64_t seg_end;         /* offset where the next segment begins; INT64_MAX for the active one */
    struct logscan scan;
    int64_t bad_at, bad_end; /* bytes of the segment that are not in their place, not looked at yet */
    struct bytebuf bytes;    /* the batch out of them */
};

struct plog_scan *plog_scan_new(struct plog *l, int64_t from, int64_t to)
{
    struct plog_scan *s = xcalloc(1, sizeof *s);

    s->log = l;
    s->next = from;
    s->to = to;
    return s;
}

static void leave_segment(struct plog_scan *s)
{
    if (s->seg == NULL)
        return;
    logscan_done(&s->scan);
    segfile_unpin(s->seg->log);
    segment_unref(s->seg);
    s->seg = NULL;
    s->bad_at = s->bad_end = 0;
}

void plog_scan_free(struct plog_scan *s)
{
    leave_segment(s);
    bytebuf_done(&s->bytes);
    free(s);
}

/* 0 or -errno; -ENOENT when the cleaner has just exchanged it. */
static int enter_segment(struct plog_scan *s)
{
    struct plog *l = s->log;

    lock_take(&l->mu);
    int i = plog_find_segment(l, s->next);
    struct segment *seg = segment_ref(l->segs[i]);
    int64_t size = seg->sum.size, end = i + 1 < l->n_segs ? l->segs[i + 1]->base : INT64_MAX;
    int64_t limit = MIN(end, l->end_offset);
    lock_release(&l->mu);

    int rc = segfile_pin(seg->log, false);
    if (rc < 0) {
        segment_unref(seg);
        return rc;
    }
    s->seg = seg;
    s->seg_end = end;
    logscan_init(&s->scan, segfile_io(seg->log), segfile_fd(seg->log), 0, size, seg->base);
    s->scan.limit_offset = limit;
    return 0;
}

/* A file that is missing although the log still has its segment does not come back: trying again is for exchanges only. */
static int find_segment(struct plog_scan *s)
{
    for (;;) {
        struct stamp st = plog_stamp(s->log);
        int rc = enter_segment(s);
        if (rc != -ENOENT || !plog_moved_since(s->log, &st))
            return rc;
    }
}

static void take_batch(struct plog_scan *s, struct slice batch, int64_t base_offset, int64_t at,
                       struct plog_scan_item *ret)
{
    struct batch_header h;

    batch_header_read(batch.p, &h);
    *ret = (struct plog_scan_item){ .batch = batch, .base_offset = base_offset, .segment = s->seg->base, .at = at,
                                    .n = (int64_t)batch.n };
    s->next = base_offset + h.last_offset_delta + 1;
}

/* A batch whose checksum is right, but not its offset or epoch, which lie outside: its place is behind the one before
 * it. 1 and the batch, 0 when there is none at s->bad_at, -errno. */
static int take_misplaced(struct plog_scan *s, struct plog_scan_item *ret)
{
    uint8_t head[BATCH_OVERHEAD];
    struct batch_header h;
    int64_t room = s->bad_end - s->bad_at;

    if (room < BATCH_OVERHEAD)
        return 0;
    int64_t got = segfile_read(s->seg->log, head, sizeof head, s->bad_at);
    if (got < (int64_t)sizeof head)
        return got < 0 ? (int)got : -EIO;
    batch_header_read(head, &h);
    if (h.magic != 2 || batch_size(&h) < BATCH_OVERHEAD || batch_size(&h) > room || h.last_offset_delta < 0)
        return 0;
    s->bytes.n = 0;
    got = segfile_read(s->seg->log, bytebuf_room(&s->bytes, (size_t)batch_size(&h)), (size_t)batch_size(&h),
                       s->bad_at);
    if (got < batch_size(&h))
        return got < 0 ? (int)got : -EIO;
    struct slice batch = slice_of(s->bytes.p, (size_t)got);
    if (batch_crc(batch.p, batch.n) != h.crc)
        return 0;
    take_batch(s, batch, s->next, s->bad_at, ret);
    ret->misplaced = true;
    s->bad_at += got;
    return 1;
}

/* What comes next where bytes are not in their place. 1 and an item, -errno. */
static int next_bad(struct plog_scan *s, struct plog_scan_item *ret)
{
    int rc = take_misplaced(s, ret);

    if (rc != 0)
        return rc;
    *ret = (struct plog_scan_item){ .lost = true, .base_offset = s->next, .segment = s->seg->base, .at = s->bad_at,
                                    .n = s->bad_end - s->bad_at };
    s->bad_at = s->bad_end;
    return 1;
}

/* 1 and an item, 0 at the end of the segment (or of all), -errno. */
static int next_in_segment(struct plog_scan *s, struct plog_scan_item *ret)
{
    struct scan_item it;
    struct slice batch;

    for (;;) {
        if (s->next >= s->to)
            return 0;
        if (s->bad_at < s->bad_end)
            return next_bad(s, ret);
        int rc = logscan_next(&s->scan, &it);
        if (rc < 0 || it.what == SCAN_END)
            return rc;
        if (it.what != SCAN_BATCH) {
            s->bad_at = it.at;
            s->bad_end = it.at + it.n;
            continue;
        }
        if (batch_last_offset(&it.h) < s->next) /* before where the scan began */
            continue;
        if (it.h.base_offset >= s->to)
            return 0;
        rc = logscan_bytes(&s->scan, &it, &batch);
        if (rc < 0)
            return rc;
        take_batch(s, batch, it.h.base_offset, it.at, ret);
        return 1;
    }
}

int plog_scan_next(struct plog_scan *s, struct plog_scan_item *ret)
{
    while (s->next < s->to) {
        int rc = s->seg == NULL ? find_segment(s) : 0;
        if (rc == 0)
            rc = next_in_segment(s, ret);
        if (rc != 0)
            return rc;
        if (s->seg_end == INT64_MAX)
            return 0;
        s->next = MAX(s->next, s->seg_end);
        leave_segment(s);
    }
    return 0;
}
