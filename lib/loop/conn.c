/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: their life, time-outs and events. On the loop's thread.
 *
 * A conn is freed at the end of a round only, so every callback may close it, and whoever called
 * the callback still finds it in CONN_CLOSED. A failure closes the descriptor at once, but
 * ops->closed is told at the end of the round: never from inside a call of the user's.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/loop/conn_int.h"
#include "lib/loop/net.h"

enum { FINISH_MS = 10000 }; /* a peer that takes nothing for so long does not get the rest of its replies */

/* - connecting -> open: the connection stands
 * - open -> finishing -> closed: conn_close_after_output; the output is out, or the peer is gone
 * - connecting, open -> failed -> closed: conn_fail; the end of the round
 * - any -> closed: conn_close */
#define B(state) (1u << CONN_##state)
static const uint8_t conn_next[] = {
    [CONN_CONNECTING] = B(OPEN) | B(FAILED) | B(CLOSED),
    [CONN_OPEN] = B(FINISHING) | B(FAILED) | B(CLOSED),
    [CONN_FINISHING] = B(CLOSED),
    [CONN_FAILED] = B(CLOSED),
    [CONN_CLOSED] = 0,
};
#undef B

static void conn_move(struct conn *c, enum conn_state to)
{
    KCHECK(conn_next[c->state] & (1u << to));
    c->state = to;
}

static bool conn_is_alive(const struct conn *c)
{
    return c->state < CONN_FAILED;
}

void conn_update_events(struct conn *c)
{
    uint32_t events = 0;
    if (c->state == CONN_CONNECTING || c->blocked)
        events |= EPOLLOUT;
    if (conn_reads(c))
        events |= EPOLLIN;
    loop_fd_mod(c->lp, &c->w, events);
}

/* ---- ends ---- */
static void conn_shut(struct conn *c, enum conn_state to)
{
    conn_move(c, to);
    timer_clear(c->lp, &c->timer);
    if (c->w.fd >= 0) {
        loop_fd_del(c->lp, &c->w);
        loop_net(c->lp)->close(loop_net(c->lp), c->w.fd);
        c->w.fd = -1;
    }
    conn_drop_input(c);
    conn_drop_output(c);
    loop_defer(c->lp, &c->deferred);
}

void conn_fail(struct conn *c, const char *fmt, ...)
{
    if (!conn_is_alive(c))
        return;
    if (c->state == CONN_FINISHING) {
        conn_close(c); /* the user has let go of it already */
        return;
    }
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    c->why = xstrdup(why);
    conn_shut(c, CONN_FAILED);
}

void conn_close(struct conn *c)
{
    if (conn_is_alive(c))
        conn_shut(c, CONN_CLOSED);
    else if (c->state == CONN_FAILED)
        conn_move(c, CONN_CLOSED); /* nobody wants to hear why any more */
}

void conn_close_after_output(struct conn *c)
{
    if (!conn_is_open(c) || c->out_n == 0) {
        conn_close(c);
        return;
    }
    conn_move(c, CONN_FINISHING);
    conn_drop_input(c);
    c->active_ms = loop_now_ms(c->lp);
    conn_update_events(c);
    conn_arm_timer(c);
    loop_defer(c->lp, &c->deferred);
}

static void conn_free(struct conn *c)
{
    KCHECK(c->state == CONN_CLOSED && c->out_n == 0 && !timer_is_set(&c->timer));
    free(c->out);
    free(c->why);
    free(c);
}

static void conn_end_of_round(struct deferred *d)
{
    struct conn *c = container_of(d, struct conn, deferred);
    if (c->state == CONN_FAILED) {
        conn_move(c, CONN_CLOSED);
        c->ops->closed(c, c->why);
    }
    if (c->state == CONN_CLOSED) {
        loop_defer_cancel(c->lp, d);
        conn_free(c);
        return;
    }
    if (conn_reads(c) && c->held.n > 0)
        conn_feed_held(c);
    if (conn_is_alive(c) && c->state != CONN_CONNECTING && !c->blocked)
        conn_write(c);
}

/* ---- time-outs ---- */
enum conn_wait { WAIT_IDLE, WAIT_FRAME, WAIT_OUTPUT, WAIT_FINISH };

/* The moment when the peer will have let us wait for too long, and for what; -1 never. While we let it wait (work under
 * way, reading stopped) only the output that it does not take counts. */
static int64_t conn_deadline(const struct conn *c, enum conn_wait *ret_what)
{
    int64_t idle = c->limits.idle_ms, half = c->limits.half_frame_ms;
    *ret_what = WAIT_FINISH;
    if (c->state == CONN_FINISHING)
        return time_add(c->active_ms, FINISH_MS);
    *ret_what = WAIT_IDLE;
    if (c->state == CONN_CONNECTING)
        return idle > 0 ? time_add(c->active_ms, idle) : -1;

    int64_t due = -1;
    if (c->out_n > 0 && idle > 0) {
        *ret_what = WAIT_OUTPUT;
        due = time_add(c->sent_ms, idle);
    }
    if (conn_reads(c) && half > 0 && (c->want != 0 || c->head_n > 0)) {
        int64_t frame_due = time_add(c->begun_ms, half);
        if (due < 0 || frame_due < due) {
            *ret_what = WAIT_FRAME;
            due = frame_due;
        }
        return due;
    }
    if (due >= 0 || c->busy || !conn_reads(c) || idle <= 0)
        return due;
    return time_add(c->active_ms, idle);
}

/* The timer is moved only when it would come too late; when it comes too early it is set anew. So a busy
 * connection does not touch the heap for each frame. */
void conn_arm_timer(struct conn *c)
{
    if (!conn_is_alive(c))
        return;
    enum conn_wait what;
    int64_t due = conn_deadline(c, &what);
    if (due >= 0 && (!timer_is_set(&c->timer) || c->timer.due_ms > due))
        timer_set(c->lp, &c->timer, due);
}

static void conn_on_timer(struct timer *t)
{
    struct conn *c = container_of(t, struct conn, timer);
    enum conn_wait what;
    int64_t due = conn_deadline(c, &what);
    if (due < 0)
        return;
    if (due > loop_now_ms(c->lp))
        timer_set(c->lp, t, due);
    else if (what == WAIT_FRAME)
        conn_fail(c, "a frame begun was not whole after %lld ms", (long long)c->limits.half_frame_ms);
    else if (what == WAIT_OUTPUT)
        conn_fail(c, "the peer took nothing of what waits for it for %lld ms", (long long)c->limits.idle_ms);
    else
        conn_fail(c, "idle for %lld ms", (long long)c->limits.idle_ms);
}

/* ---- events ---- */
static int socket_error(const struct conn *c)
{
    return -loop_net(c->lp)->error(loop_net(c->lp), c->w.fd);
}

static void conn_on_connected(struct conn *c)
{
    int err = socket_error(c);
    if (err != 0) {
        conn_fail(c, "connect to %s: %s", c->peer, strerror(err));
        return;
    }
    conn_move(c, CONN_OPEN);
    c->active_ms = loop_now_ms(c->lp);
    conn_update_events(c);
    conn_arm_timer(c);
    if (c->ops->connected != NULL)
        c->ops->connected(c);
    if (c->out_n > 0)
        loop_defer(c->lp, &c->deferred);
}

static void conn_on_event(struct loop_fd *w, uint32_t events)
{
    struct conn *c = container_of(w, struct conn, w);
    if (c->state == CONN_CONNECTING) {
        conn_on_connected(c);
        return;
    }
    bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
    if (conn_reads(c) && (broken || (events & EPOLLIN)))
        conn_read(c);
    else if (broken)
        conn_fail(c, "the connection broke: %s", strerror(socket_error(c)));
    if (conn_is_alive(c) && (events & EPOLLOUT))
        conn_write(c);
}

/* ---- births ---- */
static void peer_text(struct conn *c, const struct sockaddr_storage *ss)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (ss->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)ss;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(c->peer, sizeof c->peer, "%s:%u", host, ntohs(in->sin_port));
    } else if (ss->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)ss;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(c->peer, sizeof c->peer, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        snprintf(c->peer, sizeof c->peer, "local");
    }
}

static struct conn *conn_make(struct loop *lp, int fd, const struct conn_ops *ops,
                              const struct conn_limits *limits, void *user)
{
    KCHECK(limits->frame_max > 0);
    struct conn *c = xcalloc(1, sizeof *c);
    c->lp = lp;
    c->ops = ops;
    c->user = user;
    c->limits = *limits;
    c->active_ms = loop_now_ms(lp);
    c->w = (struct loop_fd){ .fd = fd, .cb = conn_on_event };
    c->timer.cb = conn_on_timer;
    c->deferred.cb = conn_end_of_round;
    return c;
}

static void conn_watch(struct conn *c, uint32_t events)
{
    c->w.events = events;
    int rc = loop_fd_add(c->lp, &c->w);
    if (rc < 0)
        conn_fail(c, "cannot watch the socket: %s", strerror(-rc));
}

struct conn *conn_new(struct loop *lp, int fd, const struct conn_ops *ops, const struct conn_limits *limits,
                      void *user)
{
    KCHECK(fd >= 0);
    struct conn *c = conn_make(lp, fd, ops, limits, user);
    const struct net *net = loop_net(lp);
    struct sockaddr_storage ss = { 0 };
    if (net->names(net, fd, NULL, &ss) == 0)
        peer_text(c, &ss);
    net->options(net, fd, limits->sndbuf, limits->rcvbuf);
    conn_move(c, CONN_OPEN);
    conn_watch(c, EPOLLIN);
    conn_arm_timer(c);
    return c;
}

struct conn *conn_connect(struct loop *lp, const struct sockaddr *sa, unsigned sa_len,
                          const struct conn_ops *ops, const struct conn_limits *limits, void *user)
{
    const struct net *net = loop_net(lp);
    struct sockaddr_storage ss = { 0 };
    KCHECK(sa_len <= sizeof ss);
    memcpy(&ss, sa, sa_len);
    int fd = net->connect(net, sa, sa_len, limits->sndbuf, limits->rcvbuf);
    struct conn *c = conn_make(lp, MAX(fd, -1), ops, limits, user);
    peer_text(c, &ss);
    if (fd < 0)
        conn_fail(c, "connect to %s: %s", c->peer, strerror(-fd));
    else
        conn_watch(c, EPOLLOUT);
    return c;
}

/* ---- small things ---- */
void *conn_user(const struct conn *c)
{
    return c->user;
}

struct loop *conn_loop(const struct conn *c)
{
    return c->lp;
}

const char *conn_peer(const struct conn *c)
{
    return c->peer;
}

int conn_local_address(const struct conn *c, char *host, size_t host_size)
{
    struct sockaddr_storage ss = { 0 };
    snprintf(host, host_size, "%s", "");
    if (c->w.fd < 0 || loop_net(c->lp)->names(loop_net(c->lp), c->w.fd, &ss, NULL) < 0)
        return 0;
    if (ss.ss_family == AF_INET) {
        inet_ntop(AF_INET, &((struct sockaddr_in *)&ss)->sin_addr, host, (socklen_t)host_size);
        return ntohs(((struct sockaddr_in *)&ss)->sin_port);
    }
    if (ss.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&ss)->sin6_addr, host, (socklen_t)host_size);
        return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
    }
    return 0;
}

void conn_pause(struct conn *c)
{
    c->paused = true;
    if (conn_is_open(c))
        conn_update_events(c);
}

/* Reading may go on: the peer's time begins anew. */
static void conn_go_on(struct conn *c)
{
    if (!conn_reads(c))
        return;
    c->active_ms = c->begun_ms = c->read_ms = loop_now_ms(c->lp);
    if (c->held.n > 0)
        loop_defer(c->lp, &c->deferred); /* what was read comes before what is in the socket */
    else
        conn_update_events(c);
    conn_arm_timer(c);
}

void conn_resume(struct conn *c)
{
    if (!c->paused)
        return;
    c->paused = false;
    conn_go_on(c);
}

void conn_retry(struct conn *c)
{
    if (!c->starved)
        return;
    c->starved = false;
    conn_go_on(c);
}

void conn_set_busy(struct conn *c, bool busy)
{
    if (c->busy == busy)
        return;
    c->busy = busy;
    if (busy || !conn_is_open(c))
        return;
    c->active_ms = loop_now_ms(c->lp);
    conn_arm_timer(c);
}

int64_t conn_stalled_ms(const struct conn *c)
{
    int64_t now = loop_now_ms(c->lp);
    if (c->state == CONN_OPEN && c->blocked)
        return now - c->sent_ms;
    return conn_reads(c) && c->want != 0 ? now - c->read_ms : 0;
}
