/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections, links, and the faults of both; see simnet.h. What a process sees of it is in simnic.c.
 *
 * An end holds what was sent to it: the first `arrived` of `n` bytes can be read. One step an end brings whatever comes next:
 * bytes, then the other side's end, or an error. An end lives until its owner has closed it.
 */
#include "tests/sim/simnet_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

enum {
    WINDOW_MIN = 1024,
    WINDOW_MAX = 1024 * 1024,
    CONNECT_PATIENCE_S = 127, /* of TCP, for a host that does not answer */
    SYN_AGAIN_S = 1,
};

struct simnet *simnet_new(struct sim *s)
{
    struct simnet *nw = xcalloc(1, sizeof *nw);
    nw->sim = s;
    nw->rnd = rnd_of(sim_seed(s), RND_SOCKETS, 0);
    for (int a = 0; a < SIM_HOSTS; a++)
        for (int b = 0; b < SIM_HOSTS; b++)
            nw->links[a][b].rnd = rnd_of(sim_seed(s), RND_LINK, (uint64_t)(a * SIM_HOSTS + b));
    TAILQ_INIT(&nw->ends);
    TAILQ_INIT(&nw->listeners);
    return nw;
}

void simnet_free(struct simnet *nw)
{
    for (struct simend *e; (e = TAILQ_FIRST(&nw->ends)) != NULL;)
        end_free(e);
    free(nw);
}

/* ---- links ---- */
static int64_t delay(struct simnet *nw, int from, int to)
{
    struct link *l = &nw->links[from][to];
    int64_t ns = rnd_range(&l->rnd, 20 * SIM_US, 200 * SIM_US);
    if (rnd_one_in(&l->rnd, 1000))
        ns = rnd_log(&l->rnd, SIM_MS, 500 * SIM_MS);
    return ns;
}

void simnet_clog(struct simnet *nw, int from, int to, int64_t for_ns)
{
    sim_note(nw->sim, "link clogged", from, to, for_ns / SIM_MS);
    nw->links[from][to].clogged_until_ns = sim_now(nw->sim) + for_ns;
}

void simnet_refuse(struct simnet *nw, int host, int64_t for_ns)
{
    sim_note(nw->sim, "connections refused", host, for_ns / SIM_MS, 0);
    nw->refuses_until_ns[host] = sim_now(nw->sim) + for_ns;
}

/* ---- ends ---- */
static void end_on_step(struct sim_step *st);

struct simend *end_new(struct simnet *nw, int host)
{
    struct simend *e = xcalloc(1, sizeof *e);
    e->nw = nw;
    e->host = host;
    e->step.run = end_on_step;
    e->number = ++nw->n_ends_ever;
    e->window = (size_t)rnd_log(&nw->rnd, WINDOW_MIN, WINDOW_MAX);
    TAILQ_INSERT_TAIL(&nw->ends, e, link);
    return e;
}

void end_free(struct simend *e)
{
    struct simnet *nw = e->nw;
    if (e->peer != NULL)
        e->peer->peer = NULL;
    sim_cancel(nw->sim, &e->step);
    TAILQ_REMOVE(&nw->ends, e, link);
    free(e->buf);
    free(e);
}

static void end_expect(struct simend *e, int64_t in_ns)
{
    if (!sim_step_is_set(&e->step))
        sim_in(e->nw->sim, &e->step, in_ns);
}

static void end_changed(struct simend *e)
{
    if (e->changed != NULL)
        e->changed(e);
}

static void end_error(struct simend *e, int err)
{
    e->err = err;
    e->n = e->arrived = 0;
    e->connecting = false;
    end_changed(e);
}

void end_pair(struct simend *a, struct simend *b)
{
    a->peer = b;
    b->peer = a;
    a->peer_host = b->host;
    b->peer_host = a->host;
    a->connecting = b->connecting = false;
}

/* A connection asks at the other host. */
static void end_try_connect(struct simend *e)
{
    struct simnet *nw = e->nw;
    int64_t now = sim_now(nw->sim);
    if (nw->links[e->host][e->peer_host].clogged_until_ns > now || nw->links[e->peer_host][e->host].clogged_until_ns > now ||
        nw->is_down[e->peer_host]) {
        if (now - e->began_ns > CONNECT_PATIENCE_S * SIM_S)
            end_error(e, ETIMEDOUT);
        else
            end_expect(e, SYN_AGAIN_S * SIM_S);
        return;
    }
    struct listener_sock *l, *found = NULL;
    TAILQ_FOREACH (l, &nw->listeners, link)
        if (l->listens && l->host == e->peer_host && l->port == e->peer_port)
            found = l;
    if (found == NULL || nw->refuses_until_ns[e->peer_host] > now) {
        end_error(e, ECONNREFUSED);
        return;
    }
    if (found->n_queue == ACCEPT_QUEUE) {
        end_expect(e, SYN_AGAIN_S * SIM_S);
        return;
    }
    struct simend *other = end_new(nw, e->peer_host);
    other->port = found->port;
    other->peer_port = e->port;
    end_pair(e, other);
    found->queue[found->n_queue++] = other;
    sim_note(nw->sim, "connected", e->host, e->peer_host, (int64_t)e->number);
    end_changed(e);
    found->changed(found);
}

static void end_arrival(struct simend *e)
{
    struct simnet *nw = e->nw;
    struct link *l = &nw->links[e->peer_host][e->host];
    if (l->clogged_until_ns > sim_now(nw->sim)) {
        sim_at(nw->sim, &e->step, l->clogged_until_ns + rnd_range(&l->rnd, 0, 200 * SIM_MS));
        return;
    }
    if (e->err_coming != 0) {
        sim_note(nw->sim, "reset arrives", e->host, (int64_t)e->number, e->err_coming);
        end_error(e, e->err_coming);
        return;
    }
    size_t left = e->n - e->arrived;
    size_t k = left > 1 && rnd_one_in(&l->rnd, 6) ? (size_t)rnd_range(&l->rnd, 1, (int64_t)left) : left;
    e->arrived += k;
    if (e->arrived == e->n && e->fin_sent)
        e->fin_arrived = true;
    else if (e->arrived < e->n)
        end_expect(e, rnd_range(&l->rnd, SIM_US, 100 * SIM_US));
    sim_note(nw->sim, "bytes arrive", e->host, (int64_t)e->number, (int64_t)k);
    end_changed(e);
}

static void end_on_step(struct sim_step *st)
{
    struct simend *e = container_of(st, struct simend, step);
    if (e->connecting)
        end_try_connect(e);
    else if (e->err == 0 && !e->deaf)
        end_arrival(e);
}

/* An error is on its way to e. */
static void end_send_error(struct simend *e, int err, int64_t in_ns)
{
    if (e->err != 0 || e->err_coming != 0)
        return;
    e->err_coming = err;
    e->deaf = false;
    sim_in(e->nw->sim, &e->step, in_ns);
}

size_t end_room(const struct simend *e)
{
    const struct simend *to = e->peer;
    if (to == NULL || e->shut)
        return SIZE_MAX; /* bytes into nothing, and an error comes back */
    return to->n < to->window ? to->window - to->n : 0;
}

static void buf_add(struct simend *e, const void *p, size_t n)
{
    if (e->head > 0 && e->head + e->n + n > e->cap) {
        memmove(e->buf, e->buf + e->head, e->n);
        e->head = 0;
    }
    if (e->n + n > e->cap) {
        e->cap = MAX(2 * e->cap, e->n + n);
        e->buf = xrealloc(e->buf, e->cap);
    }
    memcpy(e->buf + e->head + e->n, p, n);
    e->n += n;
}

int64_t end_write(struct simend *e, const void *p, size_t n)
{
    struct simnet *nw = e->nw;
    if (e->err != 0)
        return -(e->err == ECONNRESET ? ECONNRESET : EPIPE);
    if (e->shut)
        return -EPIPE;
    size_t room = end_room(e);
    if (room == 0) {
        e->wants_room = true;
        return -EAGAIN;
    }
    n = MIN(n, room);
    if (n > 1 && rnd_one_in(&nw->rnd, 12))
        n = (size_t)rnd_range(&nw->rnd, 1, (int64_t)n);
    struct simend *to = e->peer;
    if (to == NULL) { /* closed there, or its host was cut off */
        if (!nw->is_down[e->peer_host])
            end_send_error(e, ECONNRESET, delay(nw, e->host, e->peer_host) + delay(nw, e->peer_host, e->host));
        else
            e->owes_answer = true;
        return (int64_t)n;
    }
    if (to->written_to != NULL)
        to->written_to(to->user, p, n);
    if (to->deaf || to->err_coming != 0 || to->err != 0)
        return (int64_t)n; /* lost */
    buf_add(to, p, n);
    end_expect(to, delay(nw, e->host, to->host));
    return (int64_t)n;
}

int64_t end_read(struct simend *e, void *p, size_t n)
{
    if (e->arrived == 0) {
        if (e->err != 0)
            return -e->err;
        return e->fin_arrived ? 0 : -EAGAIN;
    }
    n = MIN(n, e->arrived);
    memcpy(p, e->buf + e->head, n);
    e->head += n;
    e->n -= n;
    e->arrived -= n;
    if (e->n == 0)
        e->head = 0;
    if (e->peer != NULL && e->peer->wants_room) {
        e->peer->wants_room = false;
        end_changed(e->peer);
    }
    return (int64_t)n;
}

uint32_t end_events(const struct simend *e)
{
    uint32_t events = 0;
    if (e->err != 0)
        return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
    if (e->connecting)
        return 0;
    if (e->arrived > 0 || e->fin_arrived)
        events |= EPOLLIN;
    if (end_room(e) > 0)
        events |= EPOLLOUT;
    if (e->fin_arrived && e->shut)
        events |= EPOLLHUP;
    return events;
}

void end_shut(struct simend *e)
{
    struct simend *to = e->peer;
    if (e->shut)
        return;
    e->shut = true;
    if (to == NULL || to->deaf)
        return;
    to->fin_sent = true;
    end_expect(to, delay(e->nw, e->host, to->host));
}

void end_close(struct simend *e)
{
    struct simend *to = e->peer;
    if (to != NULL && to->err == 0 && !to->deaf) {
        if (e->n > 0) /* somebody wrote what nobody has read */
            end_send_error(to, ECONNRESET, delay(e->nw, e->host, to->host));
        else
            end_shut(e);
    }
    end_free(e);
}

/* ---- hosts ---- */
void end_lost_power(struct simend *e)
{
    struct simend *to = e->peer;
    if (to != NULL && to->n > to->arrived && !rnd_one_in(&e->nw->rnd, 2))
        to->n = to->arrived; /* what was under way may have left the host, or not */
    end_free(e);
}

void simnet_host_up(struct simnet *nw, int host)
{
    struct simend *e;
    nw->is_down[host] = false;
    TAILQ_FOREACH (e, &nw->ends, link)
        if (e->peer == NULL && e->peer_host == host && e->owes_answer)
            end_send_error(e, ECONNRESET, rnd_range(&nw->rnd, 200 * SIM_MS, 3 * SIM_S));
}

int simnet_connections(const struct simnet *nw, int host)
{
    const struct simend *e;
    int n = 0;
    TAILQ_FOREACH (e, &nw->ends, link)
        n += e->host == host && e->peer != NULL;
    return n;
}

/* What one side of a cut connection hears. */
static void end_cut(struct simend *e)
{
    struct simnet *nw = e->nw;
    size_t lost = e->n - e->arrived;
    if (lost > 0)
        e->n -= (size_t)rnd_range(&nw->rnd, 0, (int64_t)lost);
    e->deaf = true;
    sim_cancel(nw->sim, &e->step);
    e->arrived = e->n;
    int64_t when = rnd_log(&nw->rnd, SIM_MS, 20 * SIM_S);
    if (!rnd_one_in(&nw->rnd, 4))
        end_send_error(e, rnd_one_in(&nw->rnd, 4) ? ETIMEDOUT : ECONNRESET, when);
    end_changed(e);
}

bool simnet_cut_one(struct simnet *nw, int host)
{
    struct simend *e;
    int n = simnet_connections(nw, host);
    if (n == 0)
        return false;
    int which = (int)rnd_below(&nw->rnd, (uint64_t)n);
    TAILQ_FOREACH (e, &nw->ends, link)
        if (e->host == host && e->peer != NULL && which-- == 0)
            break;
    sim_note(nw->sim, "connection cut", host, (int64_t)e->number, 0);
    struct simend *other = e->peer;
    end_cut(e);
    end_cut(other);
    return true;
}

/* ---- raw clients ---- */
static void client_changed(struct simend *e)
{
    if (e->err != 0 || (e->fin_arrived && e->arrived == 0)) {
        int err = e->err;
        void *user = e->user;
        const struct simend_ops *ops = e->ops;
        e->changed = NULL;
        end_close(e);
        ops->gone(user, err);
        return;
    }
    if (e->connecting)
        return;
    if (!e->told_open) {
        e->told_open = true;
        e->ops->opened(e->user);
        return;
    }
    if (e->short_of_room && end_room(e) > 0) {
        e->short_of_room = false;
        e->ops->writable(e->user);
        return; /* it may be closed */
    }
    if (e->arrived > 0)
        e->ops->readable(e->user);
}

struct simend *simend_connect(struct simnet *nw, int from_host, int to_host, int port, const struct simend_ops *ops, void *user)
{
    struct simend *e = end_new(nw, from_host);
    e->port = (int)(10000 + e->number % 50000);
    e->peer_host = to_host;
    e->peer_port = port;
    e->ops = ops;
    e->user = user;
    e->written_to = ops->written_to;
    e->changed = client_changed;
    end_connect(e);
    return e;
}

void end_connect(struct simend *e)
{
    e->connecting = true;
    e->began_ns = sim_now(e->nw->sim);
    end_expect(e, delay(e->nw, e->host, e->peer_host) + delay(e->nw, e->peer_host, e->host));
}

size_t simend_read(struct simend *e, void *p, size_t n)
{
    int64_t k = end_read(e, p, n);
    if (k > 0 && e->arrived == 0 && e->fin_arrived)
        end_expect(e, 0);
    return k > 0 ? (size_t)k : 0;
}

size_t simend_write(struct simend *e, const void *p, size_t n)
{
    int64_t k = end_write(e, p, n);
    if (k < (int64_t)n)
        e->short_of_room = true;
    if (k > 0 && k < (int64_t)n && end_room(e) > 0)
        end_expect(e, SIM_US); /* it was short although there is room */
    return k > 0 ? (size_t)k : 0;
}

void simend_close(struct simend *e)
{
    e->changed = NULL;
    end_close(e);
}
