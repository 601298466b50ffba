/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling good batches from everything else. A batch counts when header, checksum and offset are right (S1); where one is
 * not, the file is searched for the next magic byte from which a good one begins, and what lies between is damage; when none
 * comes, it is a tail. Checksums that are tried behind damage are bounded, so that no file takes hours. Only a window of the
 * file is in memory. One thread a scan.
 */
#include "lib/store/logscan.h"

#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"

#define WINDOW_BYTES     (256 * 1024)
#define HEADERS_BYTES    (8 * 1024)    /* when only headers are looked at: large batches are stepped over */
#define RESYNC_CRC_BYTES (256LL << 20) /* checksums tried behind damage before giving up */
#define OFFSET_SPAN_MAX  INT32_MAX

void logscan_init(struct logscan *s, const struct store_io *io, int fd, int64_t at, int64_t end,
                  int64_t next_offset)
{
    *s = (struct logscan){
        .io = io,
        .fd = fd,
        .at = at,
        .end = end,
        .next_offset = next_offset,
        .limit_offset = INT64_MAX,
        .epoch = -1,
        .check_crc = true,
    };
}

void logscan_done(struct logscan *s)
{
    bytebuf_done(&s->window);
}

bool batch_header_plausible(const struct batch_header *h, int64_t room)
{
    int64_t size = batch_size(h);

    return h->magic == 2 && size >= BATCH_OVERHEAD && size <= room && size <= BATCH_BYTES_MAX &&
           h->base_offset >= 0 && h->last_offset_delta >= 0 && h->count >= 0 &&
           h->count - 1 <= h->last_offset_delta;
}

/* Makes n bytes at `at` available in the window; *ret points to them. The caller has checked that they exist.
 */
static int window_get(struct logscan *s, int64_t at, int64_t n, const uint8_t **ret)
{
    if (at < s->window_at || at + n > s->window_at + s->window_n) {
        int64_t window = s->check_crc ? WINDOW_BYTES : HEADERS_BYTES;
        int64_t want = MIN(MAX(n, window), s->end - at);
        s->window.n = 0;
        s->window_n = 0;
        int64_t got = io_pread_full(s->io, s->fd, bytebuf_room(&s->window, (size_t)want), (size_t)want, at);
        if (got < 0)
            return (int)got;
        s->window_at = at;
        s->window_n = got;
        if (got < n)
            return -EBADMSG; /* the file is shorter than it was */
    }
    *ret = s->window.p + (at - s->window_at);
    return 0;
}

/* Checksum of [at, at + n), piece by piece. */
static int crc_of(struct logscan *s, int64_t at, int64_t n, uint32_t *ret)
{
    uint32_t crc = 0;

    while (n > 0) {
        int64_t piece = MIN(n, (int64_t)WINDOW_BYTES);
        const uint8_t *p;
        int rc = window_get(s, at, piece, &p);
        if (rc < 0)
            return rc;
        crc = crc32c(crc, p, (size_t)piece);
        at += piece;
        n -= piece;
    }
    *ret = crc;
    return 0;
}

/* Is there a good batch at `at`, in its place? 1 yes, 0 no, -errno. *header_ok: its header at least can be
 * used. */
static int judge(struct logscan *s, int64_t at, int64_t min_offset, struct batch_header *h, bool *header_ok)
{
    const uint8_t *p;
    uint32_t crc;

    *header_ok = false;
    if (s->end - at < BATCH_OVERHEAD)
        return 0;
    int rc = window_get(s, at, BATCH_OVERHEAD, &p);
    if (rc < 0)
        return rc;
    batch_header_read(p, h);
    if (!batch_header_plausible(h, s->end - at) || h->base_offset < min_offset ||
        h->base_offset - min_offset > OFFSET_SPAN_MAX || batch_last_offset(h) >= s->limit_offset ||
        h->leader_epoch < s->epoch)
        return 0;
    *header_ok = true;
    if (!s->check_crc)
        return 1;
    rc = crc_of(s, at + BATCH_ATTRIBUTES, batch_size(h) - BATCH_ATTRIBUTES, &crc);
    return rc < 0 ? rc : crc == h->crc;
}

/* The next place at or behind `at` that has the magic where a header has it; s->end when there is none. */
static int next_magic(struct logscan *s, int64_t at, int64_t *ret)
{
    while (s->end - at >= BATCH_OVERHEAD) {
        const uint8_t *p;
        int rc = window_get(s, at, BATCH_OVERHEAD, &p);
        if (rc < 0)
            return rc;
        int64_t n = s->window_at + s->window_n - at - BATCH_OVERHEAD + 1; /* headers that begin in the window */
        const uint8_t *found = memchr(p + BATCH_MAGIC, 2, (size_t)n);
        if (found != NULL) {
            *ret = at + (found - p) - BATCH_MAGIC;
            return 0;
        }
        at += n;
    }
    *ret = s->end;
    return 0;
}

/* Looks for the next good batch after `at`, byte by byte. 1 and *ret, 0 when there is none, -errno. What it steps over was a
 * batch, of one offset at least: one that says it begins at the offset expected has lost its own, which no checksum covers (a
 * sector of zeros that ends within its first eight bytes makes it 0). */
static int resync(struct logscan *s, int64_t at, int64_t *ret)
{
    int64_t tried = 0;

    for (; tried < RESYNC_CRC_BYTES; at++) {
        struct batch_header h;
        bool header_ok, check = s->check_crc;
        int rc = next_magic(s, at, &at);
        if (rc < 0 || at >= s->end)
            return rc;
        s->check_crc = true;
        rc = judge(s, at, s->next_offset + 1, &h, &header_ok);
        s->check_crc = check;
        if (rc != 0) {
            *ret = at;
            return rc;
        }
        tried += header_ok ? batch_size(&h) : 0;
    }
    return 0;
}

/* What to make of bytes that are not a good batch. */
static int judge_damage(struct logscan *s, struct scan_item *ret)
{
    bool plausible = ret->header_ok, ok;
    int64_t next = plausible ? s->at + batch_size(&ret->h) : s->end;
    struct batch_header follower;
    int rc = 0;

    if (plausible)
        rc = judge(s, next, batch_last_offset(&ret->h) + 1, &follower, &ok);
    if (rc == 0) {
        ret->header_ok = plausible && next == s->end;
        rc = resync(s, s->at + 1, &next);
        if (rc == 1)
            ret->header_ok = false;
    }
    if (rc < 0)
        return rc;
    ret->what = rc == 1 ? SCAN_DAMAGED : SCAN_TAIL;
    ret->n = (rc == 1 ? next : s->end) - s->at;
    s->at += ret->n;
    s->after_damage = true;
    s->next_offset = ret->header_ok ? batch_last_offset(&ret->h) + 1 : s->next_offset + 1;
    return 0;
}

/* Offset and leader epoch lie outside the checksum. A batch that jumps ahead in either is believed when what
 * follows goes on from there; the last one of an active segment only when it does not leave a gap, or is known to have
 * been flushed as it is: a leader's own segment has none, that of a follower those which compaction had left. */
static int judge_jump(struct logscan *s, const struct batch_header *h)
{
    struct batch_header follower;
    bool ok;

    if (h->base_offset == s->next_offset && h->leader_epoch == s->epoch)
        return 1;
    int rc = judge(s, s->at + batch_size(h), s->next_offset, &follower, &ok);
    if (rc == 1) { /* one whose offset is the one expected is right, whatever the next one says of itself */
        bool in_place = h->base_offset == s->next_offset || follower.base_offset > batch_last_offset(h);
        return in_place && follower.leader_epoch >= h->leader_epoch;
    }
    if (rc < 0)
        return rc;
    return h->base_offset == s->next_offset || s->limit_offset != INT64_MAX || s->after_damage ||
           batch_last_offset(h) < s->gaps_below;
}

int logscan_next(struct logscan *s, struct scan_item *ret)
{
    *ret = (struct scan_item){ .what = SCAN_END, .at = s->at };
    if (s->at >= s->end)
        return 0;
    int rc = judge(s, s->at, s->next_offset, &ret->h, &ret->header_ok);
    if (rc == 1)
        rc = judge_jump(s, &ret->h);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return judge_damage(s, ret);
    ret->what = SCAN_BATCH;
    ret->n = batch_size(&ret->h);
    s->at += ret->n;
    s->next_offset = batch_last_offset(&ret->h) + 1;
    s->epoch = ret->h.leader_epoch;
    s->after_damage = false;
    return 0;
}

int logscan_bytes(struct logscan *s, const struct scan_item *it, struct slice *ret)
{
    const uint8_t *p = NULL;

    KCHECK(it->what == SCAN_BATCH);
    int rc = window_get(s, it->at, it->n, &p);
    if (rc == 0)
        *ret = slice_of(p, (size_t)it->n);
    return rc;
}
