/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection from inside, for conn.c (life, time-outs), conn_in.c (frames) and conn_out.c
 * (output). On its loop's thread.
 */
#ifndef KLOG_LOOP_CONN_INT_H
#define KLOG_LOOP_CONN_INT_H

#include <netinet/in.h>

#include "lib/loop/conn.h"
#include "lib/loop/loop_int.h"

enum conn_state {
    CONN_CONNECTING,
    CONN_OPEN,
    CONN_FINISHING, /* closes when its output is out; reads no more, calls no ops */
    CONN_FAILED,    /* descriptor closed; ops->closed is called at the end of the round */
    CONN_CLOSED,    /* freed at the end of the round */
};

struct conn_piece {
    struct rcbuf *b; /* memory; NULL: a piece of a file */
    int fd;
    int64_t at, n; /* what is left of it: position in b or in the file, bytes */
    void (*release)(void *owner);
    void *owner;
};

/* An idle connection is this struct and nothing more: 10,000 of them must cost less than 10 MB. */
struct conn {
    struct loop_fd w;
    struct loop *lp;
    const struct conn_ops *ops;
    void *user;
    struct conn_limits limits;
    enum conn_state state; /* written by conn_move alone */
    bool paused;
    bool starved; /* may_take said no: as if paused, until conn_retry */
    bool busy;    /* see conn_set_busy */
    bool blocked; /* the socket took less than it was given: wait for EPOLLOUT */

    /* input: the size prefix, then the frame in `in` (cap is enough) or in `part` (grows as bytes come) */
    uint8_t head_n;
    uint8_t head[4];
    int32_t want; /* size of the frame begun, 0 = none */
    int32_t got;
    struct rcbuf *in;
    struct bytebuf part;
    struct bytebuf held; /* read, but not delivered because of conn_pause */

    struct conn_piece *out; /* ring of out_cap, a power of two */
    uint32_t out_head, out_n, out_cap;
    size_t out_bytes;  /* of all pieces */
    size_t out_memory; /* of those that are memory */

    struct timer timer; /* the next moment at which a time-out may have passed */
    int64_t active_ms;  /* last frame begun or bytes sent */
    int64_t begun_ms;   /* when the frame in hand began */
    int64_t read_ms;    /* when bytes came last */
    int64_t sent_ms;    /* when bytes went out last, or output began to wait */

    struct deferred deferred;
    char *why;
    char peer[INET6_ADDRSTRLEN + sizeof "[]:65535"];
};

static inline bool conn_is_open(const struct conn *c)
{
    return c->state == CONN_OPEN;
}

/* May bytes be taken from the socket now? */
static inline bool conn_reads(const struct conn *c)
{
    return c->state == CONN_OPEN && !c->paused && !c->starved;
}

void conn_fail(struct conn *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void conn_update_events(struct conn *c);
void conn_arm_timer(struct conn *c);

/* conn_in.c */
void conn_read(struct conn *c);
void conn_feed_held(struct conn *c); /* after conn_resume */
void conn_drop_input(struct conn *c);

/* conn_out.c */
void conn_write(struct conn *c); /* sends what the socket takes, at most a round's share */
void conn_drop_output(struct conn *c);

#endif
