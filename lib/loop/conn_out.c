/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out: a ring of pieces of memory and of files, sent in order. On the loop's thread.
 *
 * Sends are queued and go out at the end of the round, many small ones in one sendmsg. EPOLLOUT
 * is asked for only while the socket is full. One connection sends at most a share a round.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/loop/conn_int.h"
#include "lib/loop/net.h"

enum {
    WRITE_A_ROUND_BYTES = 2 * 1024 * 1024,
    IOV_A_CALL = 64,
    RING_MIN = 4,
    RING_KEPT = 8, /* a ring not larger than this stays with an idle connection */
};

static struct conn_piece *piece_at(const struct conn *c, uint32_t i)
{
    return &c->out[(c->out_head + i) & (c->out_cap - 1)];
}

static void ring_grow(struct conn *c)
{
    uint32_t cap = MAX((uint32_t)RING_MIN, c->out_cap * 2);
    struct conn_piece *ring = xcalloc(cap, sizeof *ring);
    for (uint32_t i = 0; i < c->out_n; i++)
        ring[i] = *piece_at(c, i);
    free(c->out);
    c->out = ring;
    c->out_cap = cap;
    c->out_head = 0;
}

static void piece_push(struct conn *c, struct conn_piece piece)
{
    if (c->out_n == c->out_cap)
        ring_grow(c);
    c->out_n++;
    *piece_at(c, c->out_n - 1) = piece;
    c->out_bytes += (size_t)piece.n;
    c->out_memory += piece.b != NULL ? (size_t)piece.n : 0;
    if (c->out_n == 1)
        c->sent_ms = loop_now_ms(c->lp);
    if (c->state != CONN_CONNECTING)
        loop_defer(c->lp, &c->deferred);
}

static void piece_pop(struct conn *c)
{
    struct conn_piece piece = *piece_at(c, 0);
    c->out_head = (c->out_head + 1) & (c->out_cap - 1);
    c->out_n--;
    c->out_bytes -= (size_t)piece.n;
    c->out_memory -= piece.b != NULL ? (size_t)piece.n : 0;
    rcbuf_unref(piece.b);
    if (piece.release != NULL)
        piece.release(piece.owner);
}

static void ring_shrink(struct conn *c)
{
    if (c->out_n > 0 || c->out_cap <= RING_KEPT)
        return;
    free(c->out);
    c->out = NULL;
    c->out_cap = c->out_head = 0;
}

void conn_drop_output(struct conn *c)
{
    while (c->out_n > 0)
        piece_pop(c);
    KCHECK(c->out_bytes == 0 && c->out_memory == 0);
}

static bool takes_output(const struct conn *c)
{
    return c->state == CONN_OPEN || c->state == CONN_CONNECTING;
}

void conn_send(struct conn *c, struct rcbuf *b, size_t from, size_t n)
{
    KCHECK(from <= b->n && n <= b->n - from);
    if (n == 0 || !takes_output(c))
        return;
    piece_push(c, (struct conn_piece){ .b = rcbuf_ref(b), .fd = -1, .at = (int64_t)from, .n = (int64_t)n });
}

void conn_send_file(struct conn *c, int fd, int64_t at, int64_t n, void (*release)(void *owner), void *owner)
{
    KCHECK(fd >= 0 && at >= 0 && n >= 0);
    if (n == 0 || !takes_output(c)) {
        if (release != NULL)
            release(owner);
        return;
    }
    piece_push(c, (struct conn_piece){ .fd = fd, .at = at, .n = n, .release = release, .owner = owner });
}

size_t conn_output_bytes(const struct conn *c)
{
    return c->out_bytes;
}

size_t conn_output_memory(const struct conn *c)
{
    return c->out_memory;
}

/* ---- sending ---- */
static void pieces_advance(struct conn *c, size_t n)
{
    while (n > 0 && c->out_n > 0) {
        struct conn_piece *piece = piece_at(c, 0);
        size_t k = MIN(n, (size_t)piece->n);
        piece->at += (int64_t)k;
        piece->n -= (int64_t)k;
        c->out_bytes -= k;
        c->out_memory -= piece->b != NULL ? k : 0;
        n -= k;
        if (piece->n == 0)
            piece_pop(c);
    }
}

static int64_t send_memory(struct conn *c, size_t max)
{
    struct iovec iov[IOV_A_CALL];
    int n = 0;
    size_t total = 0;
    for (; (uint32_t)n < c->out_n && n < IOV_A_CALL && total < max; n++) {
        const struct conn_piece *piece = piece_at(c, (uint32_t)n);
        if (piece->b == NULL)
            break;
        iov[n].iov_base = piece->b->p + piece->at;
        iov[n].iov_len = MIN((size_t)piece->n, max - total);
        total += iov[n].iov_len;
    }
    return loop_net(c->lp)->writev(loop_net(c->lp), c->w.fd, iov, n, (uint32_t)n < c->out_n);
}

static int64_t send_file(struct conn *c, size_t max)
{
    const struct conn_piece *piece = piece_at(c, 0);
    return loop_net(c->lp)->sendfile(loop_net(c->lp), c->w.fd, piece->fd, piece->at, MIN((size_t)piece->n, max));
}

/* One system call. Returns the bytes that went out; 0: no more now. */
static size_t conn_write_some(struct conn *c, size_t max)
{
    bool memory = piece_at(c, 0)->b != NULL;
    int64_t n = memory ? send_memory(c, max) : send_file(c, max);
    if (n > 0) {
        pieces_advance(c, (size_t)n);
        return (size_t)n;
    }
    if (n == 0)
        conn_fail(c, "a file to send is shorter than it was");
    else if (n == -EAGAIN)
        c->blocked = true;
    else
        conn_fail(c, "%s: %s", memory ? "send" : "sendfile", strerror((int)-n));
    return 0;
}

static void conn_on_drained(struct conn *c)
{
    ring_shrink(c);
    if (c->state == CONN_FINISHING) {
        loop_net(c->lp)->shut(loop_net(c->lp), c->w.fd);
        conn_close(c);
    } else if (c->ops->drained != NULL) {
        c->ops->drained(c);
    }
}

void conn_write(struct conn *c)
{
    if (c->out_n == 0 && !c->blocked)
        return;
    c->blocked = false;
    size_t done = 0, n = 1;
    while (c->out_n > 0 && done < WRITE_A_ROUND_BYTES && n > 0) {
        n = conn_write_some(c, WRITE_A_ROUND_BYTES - done);
        done += n;
    }
    if (c->w.fd < 0)
        return; /* it failed */
    if (done > 0)
        c->active_ms = c->sent_ms = loop_now_ms(c->lp);
    conn_update_events(c);
    if (c->blocked)
        conn_arm_timer(c);
    if (c->out_n == 0)
        conn_on_drained(c);
    else if (!c->blocked)
        loop_defer(c->lp, &c->deferred); /* the share of this round is used up */
}

void conn_flush(struct conn *c)
{
    if ((c->state == CONN_OPEN || c->state == CONN_FINISHING) && !c->blocked)
        conn_write(c);
}
