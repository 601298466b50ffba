/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way in: bytes from the socket become frames. On the loop's thread.
 *
 * Reading starts in the loop's scratch buffer; small frames are cut from it, many from one read. A frame that is not whole
 * yet gets memory of its own, and the rest of it is read straight into that, with the scratch behind it for what follows.
 *
 * Invariant: the memory reserved for a frame is at most a small constant or twice what has arrived of it, unless it was at
 * hand already. For more than the small constant the user is asked (ops->may_take); until it says yes nothing more is read,
 * and what was read already waits in `held`.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "lib/loop/conn_int.h"
#include "lib/loop/net.h"

enum {
    READ_A_ROUND_BYTES = 2 * 1024 * 1024, /* so that one fast sender does not starve the others */
    SMALL_FRAME_BYTES = 16 * 1024,        /* reserved whole as soon as it is begun */
};

void conn_drop_input(struct conn *c)
{
    rcbuf_unref(c->in);
    c->in = NULL;
    bytebuf_done(&c->part);
    bytebuf_done(&c->held);
    c->want = c->got = 0;
    c->head_n = 0;
}

/* ---- the memory of a frame ---- */
static uint8_t *frame_bytes(struct conn *c)
{
    return c->in != NULL ? c->in->p : c->part.p;
}

static int32_t frame_room(const struct conn *c)
{
    size_t cap = c->in != NULL ? c->in->cap : c->part.cap;
    return (int32_t)MIN(cap, (size_t)c->want) - c->got;
}

size_t conn_input_bytes(const struct conn *c)
{
    return (c->in != NULL ? c->in->cap : c->part.cap) + c->held.cap;
}

size_t conn_input_wanted(const struct conn *c)
{
    return (size_t)(c->want - c->got);
}

/* False: not now. */
static bool frame_may_take(struct conn *c, size_t n)
{
    c->starved = c->ops->may_take != NULL && !c->ops->may_take(c, n);
    return !c->starved;
}

static bool frame_failed(struct conn *c)
{
    conn_fail(c, "there is no memory for a frame of %d bytes", c->want);
    return false;
}

/* at_hand: bytes of the frame that have arrived. False: it must wait, or c failed. */
static bool frame_reserve(struct conn *c, size_t at_hand)
{
    size_t want = (size_t)c->want;
    bool whole = want <= SMALL_FRAME_BYTES || at_hand >= want;
    size_t first = whole ? want : MIN(want, MAX((size_t)SMALL_FRAME_BYTES, 2 * at_hand));
    if (want > SMALL_FRAME_BYTES && !frame_may_take(c, first))
        return false;
    if (want >= LOOP_CACHE_MIN_BYTES)
        c->in = loop_cache_get(c->lp, want);
    if (c->in == NULL && whole)
        c->in = rcbuf_try_new(want);
    return c->in != NULL || (!whole && bytebuf_try_room(&c->part, first)) || frame_failed(c);
}

static bool frame_grow(struct conn *c)
{
    if (c->in != NULL || frame_room(c) > 0 || c->got == c->want)
        return true;
    size_t more = (size_t)MIN(c->want - c->got, c->got);
    if (!frame_may_take(c, more))
        return false;
    c->part.n = (size_t)c->got;
    return bytebuf_try_room(&c->part, more) || frame_failed(c);
}

/* Returns how many of the bytes were taken. */
static size_t frame_add(struct conn *c, const uint8_t *p, size_t n)
{
    size_t left = n;
    while (left > 0 && frame_grow(c)) {
        size_t k = MIN(left, (size_t)frame_room(c));
        memcpy(frame_bytes(c) + c->got, p, k);
        c->got += (int32_t)k;
        p += k;
        left -= k;
    }
    return n - left;
}

static void frame_deliver(struct conn *c)
{
    KCHECK(c->got == c->want);
    if (c->in == NULL) {
        c->part.n = (size_t)c->got;
        c->in = rcbuf_take(&c->part);
    }
    struct rcbuf *frame = take(&c->in);
    frame->n = (size_t)c->want;
    c->want = c->got = 0;
    loop_cache_put(c->lp, frame);
    c->ops->frame(c, frame);
}

/* ---- parsing ---- */
static void frame_begin(struct conn *c)
{
    int32_t size = (int32_t)get_be32(c->head);
    if (size <= 0 || size > c->limits.frame_max) {
        conn_fail(c, "a frame of %d bytes, the limit is 1 to %d: not Kafka's protocol?", size,
                  c->limits.frame_max);
        return;
    }
    c->head_n = 0;
    c->want = size;
    c->got = 0;
}

/* Takes bytes of the size prefix; returns how many. */
static size_t feed_head(struct conn *c, const uint8_t *p, size_t n)
{
    if (c->head_n == 0)
        c->active_ms = c->begun_ms = loop_now_ms(c->lp);
    size_t k = MIN(n, sizeof c->head - c->head_n);
    memcpy(c->head + c->head_n, p, k);
    c->head_n += (uint8_t)k;
    if (c->head_n == sizeof c->head)
        frame_begin(c);
    return k;
}

static size_t feed_body(struct conn *c, const uint8_t *p, size_t n)
{
    size_t k = MIN(n, (size_t)(c->want - c->got));
    if (c->got == 0 && !frame_reserve(c, k))
        return 0;
    k = frame_add(c, p, k);
    if (conn_is_open(c) && c->got == c->want)
        frame_deliver(c);
    return k;
}

static void conn_feed(struct conn *c, const uint8_t *p, size_t n)
{
    while (n > 0 && conn_is_open(c)) {
        if (!conn_reads(c)) {
            bytebuf_add(&c->held, p, n);
            return;
        }
        size_t k = c->want == 0 ? feed_head(c, p, n) : feed_body(c, p, n);
        p += k;
        n -= k;
    }
}

void conn_feed_held(struct conn *c)
{
    CLEANUP(bytebuf_done) struct bytebuf held = c->held;
    c->held = (struct bytebuf){ 0 };
    conn_feed(c, held.p, held.n);
    if (!conn_is_open(c))
        return;
    conn_update_events(c);
    conn_arm_timer(c);
}

/* ---- reading ---- */
static void conn_on_eof(struct conn *c)
{
    if (c->out_n > 0)
        conn_write(c); /* a peer that only closed its half still hears what is ready */
    if (c->want != 0 || c->head_n > 0)
        conn_fail(c, "the peer closed the connection inside a frame");
    else
        conn_fail(c, "the peer closed the connection");
}

/* One readv. Returns the bytes read if there may be more, else 0. */
static size_t conn_read_some(struct conn *c)
{
    uint8_t *scratch = loop_scratch(c->lp);
    struct iovec iov[2];
    int n_iov = 0;
    size_t direct = 0;
    if (c->got > 0) {
        if (!frame_grow(c)) {
            if (c->starved)
                conn_update_events(c);
            return 0;
        }
        direct = (size_t)frame_room(c);
        iov[n_iov++] = (struct iovec){ frame_bytes(c) + c->got, direct };
    }
    if (c->got == 0 || (size_t)c->got + direct == (size_t)c->want)
        iov[n_iov++] = (struct iovec){ scratch, LOOP_SCRATCH_BYTES };

    int64_t n = loop_net(c->lp)->readv(loop_net(c->lp), c->w.fd, iov, n_iov);
    if (n < 0) {
        if (n != -EAGAIN)
            conn_fail(c, "read: %s", strerror((int)-n));
        return 0;
    }
    if (n == 0) {
        conn_on_eof(c);
        return 0;
    }
    c->read_ms = loop_now_ms(c->lp);
    size_t into_frame = MIN((size_t)n, direct);
    c->got += (int32_t)into_frame;
    if (direct > 0 && c->got == c->want)
        frame_deliver(c);
    conn_feed(c, scratch, (size_t)n - into_frame);
    if (c->starved && conn_is_open(c))
        conn_update_events(c);
    size_t asked = direct + (n_iov == 2 || direct == 0 ? LOOP_SCRATCH_BYTES : 0);
    return (size_t)n == asked ? (size_t)n : 0;
}

void conn_read(struct conn *c)
{
    size_t done = 0;
    while (done < READ_A_ROUND_BYTES && conn_reads(c)) {
        size_t n = conn_read_some(c);
        if (n == 0)
            break;
        done += n;
    }
    conn_arm_timer(c);
}
