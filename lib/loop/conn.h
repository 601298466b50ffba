/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A non-blocking stream connection that carries size-prefixed frames both ways. Owned by one
 * loop; all calls on its thread. Reading takes memory only as bytes really arrive, so a claimed
 * size reserves nothing. Writing takes memory and pieces of files (sendfile), in order.
 */
#ifndef KLOG_LOOP_CONN_H
#define KLOG_LOOP_CONN_H

#include "lib/base/buf.h"
#include "lib/loop/loop.h"

struct conn;
struct sockaddr;

struct conn_ops {
    /* A whole frame without its size prefix. The callee owns one reference. */
    void (*frame)(struct conn *c, struct rcbuf *frame);
    /* The connection is gone (peer, error, bad size, idle): why is one line. Called once, then the conn is
     * freed by the loop; not called after conn_close(). */
    void (*closed)(struct conn *c, const char *why);
    /* All queued output went out. May be NULL. */
    void (*drained)(struct conn *c);
    /* Outgoing connections: established. May be NULL. */
    void (*connected)(struct conn *c);
    /* A frame of more than some kilobytes is being received and needs n more bytes of memory. False: not now; c reads
     * no further until conn_retry(). Must not close c. NULL: always. */
    bool (*may_take)(struct conn *c, size_t n);
};

struct conn_limits {
    int32_t frame_max;     /* a larger or a negative or zero size closes the connection */
    int64_t half_frame_ms; /* a frame begun must be whole within this time; 0 = no limit */
    /* No frame begun for this long closes it, unless it is busy (connections.max.idle.ms); so does a peer that takes
     * nothing of what waits for it for this long. 0 = never */
    int64_t idle_ms;
    int sndbuf, rcvbuf;    /* -1 = the kernel's */
};

/* Takes over a connected socket. */
struct conn *conn_new(struct loop *lp, int fd, const struct conn_ops *ops, const struct conn_limits *limits,
                      void *user);
/* Starts to connect to a numeric address (use resolve.h for names); result by connected or closed. */
struct conn *conn_connect(struct loop *lp, const struct sockaddr *sa, unsigned sa_len,
                          const struct conn_ops *ops, const struct conn_limits *limits, void *user);
/* Neither of these is followed by any callback of ops; the conn is freed when it is safe (after this round at
 * the earliest). */
void conn_close(struct conn *c);              /* drops queued output */
void conn_close_after_output(struct conn *c); /* or when the peer takes nothing for 10 s */
void *conn_user(const struct conn *c);
struct loop *conn_loop(const struct conn *c);
const char *conn_peer(const struct conn *c);                                /* "127.0.0.1:4711" */
int conn_local_address(const struct conn *c, char *host, size_t host_size); /* numeric; returns the port */

/* Output is queued and sent at the end of the round (or by conn_flush): many small replies share a writev. */
void conn_send(struct conn *c, struct rcbuf *b, size_t from, size_t n); /* takes its own reference */
/* release(owner) is called once, when the piece has gone out or the connection died; it must not touch c. */
void conn_send_file(struct conn *c, int fd, int64_t at, int64_t n, void (*release)(void *owner), void *owner);
void conn_flush(struct conn *c);
size_t conn_output_bytes(const struct conn *c);  /* queued, not yet sent */
size_t conn_output_memory(const struct conn *c); /* those of them that are memory, not files */
size_t conn_input_bytes(const struct conn *c);   /* memory of what was received and not delivered */
size_t conn_input_wanted(const struct conn *c);  /* what is left of the frame that was begun */
/* For how long bytes could have moved and did not: a frame begun does not go on, output is not taken. 0: it waits for
 * us, or for nothing. */
int64_t conn_stalled_ms(const struct conn *c);

/* Stops and restarts reading, for back-pressure. Frames already read may still be delivered after resume
 * only. */
void conn_pause(struct conn *c);
void conn_resume(struct conn *c);
void conn_retry(struct conn *c); /* ask may_take again, soon */
/* What came from the peer is being worked on: it is not idle, however long that takes. */
void conn_set_busy(struct conn *c, bool busy);

#endif
