/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of one simulated process (lib/loop/net.h): descriptors, readiness. See simnet.h. A round of a loop takes a
 * little time, and its poller is where its fiber gives way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"
#include "lib/store/io.h"
#include "tests/sim/simnet_int.h"

enum { FD_BASE = 1 << 21, SENDFILE_MAX = 64 * 1024 };

struct simsock {
    struct simnic *nic;
    int fd;
    struct simend *end;            /* a connection; NULL before connect() and after an abort */
    struct listener_sock *listener;
    struct simpoller *poller;
    struct loop_fd *w;
    TAILQ_ENTRY(simsock) link; /* in the poller */
};

struct simpoller {
    struct poller poller; /* first */
    struct simnic *nic;
    struct rnd rnd;
    TAILQ_HEAD(, simsock) socks;
    int n;
    struct fiber *waiter;
    bool woken;
};

static struct simpoller *poller_of(struct poller *p)
{
    return container_of(p, struct simpoller, poller);
}

static struct simnic *nic_of(const struct net *n)
{
    return container_of((struct net *)(uintptr_t)n, struct simnic, net);
}

static void at_call(struct simnic *nic, const char *what)
{
    if (nic->at_call != NULL)
        nic->at_call(nic->arg, what);
}

/* ---- descriptors ---- */
static struct simsock *sock_of(const struct net *n, int fd)
{
    struct simnic *nic = nic_of(n);
    int i = fd - FD_BASE;
    KCHECK(i >= 0 && i < nic->n_socks && nic->socks[i] != NULL);
    return nic->socks[i];
}

static struct simsock *sock_new(struct simnic *nic)
{
    int i = 0;
    if (nic->may_open != NULL && !nic->may_open(nic->arg))
        return NULL;
    while (i < nic->n_socks && nic->socks[i] != NULL)
        i++;
    if (i == nic->n_socks) {
        nic->socks = xreallocarray(nic->socks, (size_t)i + 1, sizeof(struct simsock *));
        nic->n_socks++;
    }
    struct simsock *so = xcalloc(1, sizeof *so);
    so->nic = nic;
    so->fd = FD_BASE + i;
    nic->socks[i] = so;
    nic->n_open++;
    return so;
}

static void sock_free(struct simsock *so)
{
    struct simnic *nic = so->nic;
    if (so->poller != NULL) {
        TAILQ_REMOVE(&so->poller->socks, so, link);
        so->poller->n--;
    }
    nic->socks[so->fd - FD_BASE] = NULL;
    nic->n_open--;
    if (nic->was_closed != NULL)
        nic->was_closed(nic->arg);
    free(so);
}

/* ---- readiness ---- */
static uint32_t sock_events(const struct simsock *so)
{
    if (so->listener != NULL)
        return so->listener->n_queue > 0 ? EPOLLIN : 0;
    return so->end != NULL ? end_events(so->end) : EPOLLHUP;
}

static uint32_t ready(const struct simsock *so)
{
    return sock_events(so) & (so->w->events | EPOLLERR | EPOLLHUP);
}

static void poller_rouse(struct simpoller *p)
{
    struct fiber *f = p->waiter;
    p->waiter = NULL;
    if (f != NULL)
        fiber_wake(f);
}

static void sock_changed(struct simsock *so)
{
    if (so->poller != NULL && ready(so) != 0)
        poller_rouse(so->poller);
}

static void on_end_changed(struct simend *e)
{
    sock_changed(e->user);
}

static void on_listener_changed(struct listener_sock *l)
{
    sock_changed(l->user);
}

static struct poller *nic_poller_new(const struct net *n)
{
    struct simnic *nic = nic_of(n);
    struct simpoller *p = xcalloc(1, sizeof *p);
    p->poller.net = n;
    p->nic = nic;
    p->rnd = rnd_of(rnd_u64(&nic->fibers->rnd), RND_SOCKETS, 1);
    TAILQ_INIT(&p->socks);
    return &p->poller;
}

static void nic_poller_free(struct poller *poller)
{
    struct simsock *so;
    if (poller == NULL)
        return;
    struct simpoller *p = poller_of(poller);
    while ((so = TAILQ_FIRST(&p->socks)) != NULL) {
        TAILQ_REMOVE(&p->socks, so, link);
        so->poller = NULL;
    }
    free(p);
}

static int nic_poller_add(struct poller *poller, struct loop_fd *w)
{
    struct simpoller *p = poller_of(poller);
    struct simsock *so = sock_of(&p->nic->net, w->fd);
    KCHECK(so->poller == NULL);
    so->poller = p;
    so->w = w;
    TAILQ_INSERT_TAIL(&p->socks, so, link);
    p->n++;
    return 0;
}

static void nic_poller_mod(struct poller *p, struct loop_fd *w)
{
    KCHECK(sock_of(p->net, w->fd)->w == w);
}

static void nic_poller_del(struct poller *poller, struct loop_fd *w)
{
    struct simpoller *p = poller_of(poller);
    struct simsock *so = sock_of(&p->nic->net, w->fd);
    KCHECK(so->poller == p);
    TAILQ_REMOVE(&p->socks, so, link);
    p->n--;
    so->poller = NULL;
}

/* Those that are ready, beginning anywhere. */
static int poller_collect(struct simpoller *p, struct poll_event *ret, int max)
{
    struct simsock *so = TAILQ_FIRST(&p->socks);
    int n = 0;
    for (int skip = (int)rnd_below(&p->rnd, (uint64_t)p->n); skip > 0; skip--)
        so = TAILQ_NEXT(so, link);
    for (int i = 0; i < p->n && n < max; i++) {
        uint32_t events = ready(so);
        if (events != 0)
            ret[n++] = (struct poll_event){ so->w, events };
        so = TAILQ_NEXT(so, link) != NULL ? TAILQ_NEXT(so, link) : TAILQ_FIRST(&p->socks);
    }
    return n;
}

static int nic_poller_wait(struct poller *poller, struct poll_event *ret, int max, int timeout_ms)
{
    struct simpoller *p = poller_of(poller);
    const struct simnic *nic = p->nic;
    if (fiber_now() == NULL)
        return poller_collect(p, ret, max);
    int64_t until = timeout_ms < 0 ? INT64_MAX : sim_now(nic->nw->sim) + timeout_ms * SIM_MS;
    fiber_sleep(rnd_range(&p->rnd, 500, 10 * SIM_US));
    int n;
    while ((n = poller_collect(p, ret, max)) == 0 && !p->woken && sim_now(nic->nw->sim) < until) {
        p->waiter = fiber_now();
        fiber_wait(until, "its poller");
        p->waiter = NULL;
    }
    p->woken = false;
    return n;
}

static void nic_poller_wake(struct poller *poller)
{
    struct simpoller *p = poller_of(poller);
    p->woken = true;
    poller_rouse(p);
}

/* ---- sockets ---- */
static void address_of(int host, int port, struct sockaddr_storage *ret)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(0x0a000001u + (uint32_t)host) };
    memset(ret, 0, sizeof *ret);
    memcpy(ret, &in, sizeof in);
}

static bool host_of(const struct sockaddr *sa, int *ret_host, int *ret_port)
{
    if (sa->sa_family != AF_INET)
        return false;
    struct sockaddr_in in;
    memcpy(&in, sa, sizeof in);
    int64_t host = (int64_t)ntohl(in.sin_addr.s_addr) - 0x0a000001;
    *ret_host = (int)host;
    *ret_port = ntohs(in.sin_port);
    return host >= 0 && host < SIM_HOSTS;
}

static int nic_bind(const struct net *n, const struct sockaddr *sa, socklen_t len)
{
    struct simnic *nic = nic_of(n);
    struct listener_sock *other;
    int host, port;
    (void)len;
    at_call(nic, "bind");
    if (!host_of(sa, &host, &port) || host != nic->process->host)
        return -EADDRNOTAVAIL;
    TAILQ_FOREACH (other, &nic->nw->listeners, link)
        if (other->host == host && other->port == port)
            return -EADDRINUSE;
    struct simsock *so = sock_new(nic);
    if (so == NULL)
        return -EMFILE;
    struct listener_sock *l = xcalloc(1, sizeof *l);
    l->user = so;
    l->host = host;
    l->port = port;
    l->changed = on_listener_changed;
    so->listener = l;
    TAILQ_INSERT_TAIL(&nic->nw->listeners, l, link);
    return so->fd;
}

static int nic_listen(const struct net *n, int fd)
{
    struct simsock *so = sock_of(n, fd);
    at_call(so->nic, "listen");
    so->listener->listens = true;
    return 0;
}

static int nic_spare(const struct net *n)
{
    struct simsock *so = sock_new(nic_of(n));
    return so == NULL ? -EMFILE : so->fd;
}

static void adopt(struct simsock *so, struct simend *e)
{
    so->end = e;
    e->user = so;
    e->changed = on_end_changed;
}

static int nic_accept(const struct net *n, int fd)
{
    struct simsock *so = sock_of(n, fd);
    struct listener_sock *l = so->listener;
    at_call(so->nic, "accept");
    if (l->n_queue == 0)
        return -EAGAIN;
    struct simsock *one = sock_new(so->nic);
    if (one == NULL)
        return -EMFILE;
    adopt(one, l->queue[0]);
    l->n_queue--;
    memmove(l->queue, l->queue + 1, (size_t)l->n_queue * sizeof l->queue[0]);
    return one->fd;
}

static int nic_connect(const struct net *n, const struct sockaddr *sa, socklen_t len, int sndbuf, int rcvbuf)
{
    struct simnic *nic = nic_of(n);
    int host, port;
    (void)len;
    (void)sndbuf;
    (void)rcvbuf;
    at_call(nic, "connect");
    if (!host_of(sa, &host, &port))
        return -ENETUNREACH;
    struct simsock *so = sock_new(nic);
    if (so == NULL)
        return -EMFILE;
    struct simend *e = end_new(nic->nw, nic->process->host);
    e->port = (int)(10000 + e->number % 50000);
    e->peer_host = host;
    e->peer_port = port;
    adopt(so, e);
    end_connect(e);
    return so->fd;
}

static int nic_error(const struct net *n, int fd)
{
    return -sock_of(n, fd)->end->err;
}

static void nic_options(const struct net *n, int fd, int sndbuf, int rcvbuf)
{
    (void)sndbuf;
    (void)rcvbuf;
    sock_of(n, fd);
}

static void nic_shut(const struct net *n, int fd)
{
    struct simsock *so = sock_of(n, fd);
    at_call(so->nic, "shutdown");
    end_shut(so->end);
}

static void listener_close(struct listener_sock *l, struct simnet *nw, bool power)
{
    for (int i = 0; i < l->n_queue; i++) {
        if (power)
            end_lost_power(l->queue[i]);
        else
            end_close(l->queue[i]);
    }
    TAILQ_REMOVE(&nw->listeners, l, link);
    free(l);
}

static void sock_end(struct simsock *so, bool power)
{
    if (so->listener != NULL) {
        listener_close(so->listener, so->nic->nw, power);
    } else if (so->end != NULL) {
        so->end->changed = NULL;
        if (power)
            end_lost_power(so->end);
        else
            end_close(so->end);
    }
    sock_free(so);
}

static void nic_close(const struct net *n, int fd)
{
    struct simsock *so = sock_of(n, fd);
    at_call(so->nic, "close of a socket");
    sock_end(so, false);
}

static int64_t nic_readv(const struct net *n, int fd, const struct iovec *iov, int n_iov)
{
    struct simsock *so = sock_of(n, fd);
    int64_t done = 0;
    at_call(so->nic, "read of a socket");
    for (int i = 0; i < n_iov; i++) {
        if (iov[i].iov_len == 0)
            continue;
        int64_t k = end_read(so->end, iov[i].iov_base, iov[i].iov_len);
        if (k <= 0)
            return done > 0 ? done : k;
        done += k;
        if (k < (int64_t)iov[i].iov_len)
            break;
    }
    return done;
}

static int64_t nic_writev(const struct net *n, int fd, const struct iovec *iov, int n_iov, bool more)
{
    struct simsock *so = sock_of(n, fd);
    int64_t done = 0;
    (void)more;
    at_call(so->nic, "write to a socket");
    for (int i = 0; i < n_iov; i++) {
        if (iov[i].iov_len == 0)
            continue;
        int64_t k = end_write(so->end, iov[i].iov_base, iov[i].iov_len);
        if (k < 0)
            return done > 0 ? done : k;
        done += k;
        if (k < (int64_t)iov[i].iov_len)
            break;
    }
    return done;
}

static int64_t nic_sendfile(const struct net *n, int fd, int file, int64_t at, size_t size)
{
    struct simsock *so = sock_of(n, fd);
    struct simnic *nic = so->nic;
    at_call(nic, "sendfile");
    if (so->end->err != 0 || so->end->shut)
        return end_write(so->end, "", 1);
    size_t want = MIN(MIN(size, end_room(so->end)), (size_t)SENDFILE_MAX);
    if (want == 0) {
        so->end->wants_room = true;
        return -EAGAIN;
    }
    uint8_t *p = xmalloc(want);
    int64_t k = nic->io->pread(nic->io, file, p, want, (off_t)at);
    if (k > 0)
        k = end_write(so->end, p, (size_t)k);
    free(p);
    return k;
}

static int nic_names(const struct net *n, int fd, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    const struct simsock *so = sock_of(n, fd);
    if (local != NULL)
        address_of(so->nic->process->host, so->listener != NULL ? so->listener->port : so->end->port, local);
    if (peer != NULL && so->end != NULL)
        address_of(so->end->peer_host, so->end->peer_port, peer);
    return 0;
}

static int nic_resolve(const struct net *n, const char *host, const char *port, int flags, struct addrinfo **ret)
{
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICHOST | AI_NUMERICSERV };
    at_call(nic_of(n), "resolve");
    if ((flags & AI_NUMERICHOST) == 0 && fiber_now() != NULL)
        fiber_sleep(rnd_log(&nic_of(n)->fibers->rnd, 100 * SIM_US, SIM_S));
    return getaddrinfo(host, port, &hints, ret);
}

static void nic_free_addresses(const struct net *n, struct addrinfo *list)
{
    (void)n;
    freeaddrinfo(list);
}

void simnic_init(struct simnic *nic, struct simnet *nw, struct sim_process *p, struct fibers *fibers, const struct store_io *io)
{
    *nic = (struct simnic){
        .net = {
            .bind = nic_bind,
            .listen = nic_listen,
            .spare = nic_spare,
            .accept = nic_accept,
            .connect = nic_connect,
            .error = nic_error,
            .options = nic_options,
            .shut = nic_shut,
            .close = nic_close,
            .readv = nic_readv,
            .writev = nic_writev,
            .sendfile = nic_sendfile,
            .names = nic_names,
            .resolve = nic_resolve,
            .free_addresses = nic_free_addresses,
            .poller_new = nic_poller_new,
            .poller_free = nic_poller_free,
            .poller_add = nic_poller_add,
            .poller_mod = nic_poller_mod,
            .poller_del = nic_poller_del,
            .poller_wait = nic_poller_wait,
            .poller_wake = nic_poller_wake,
        },
        .nw = nw,
        .process = p,
        .fibers = fibers,
        .io = io,
    };
}

void simnic_ended(struct simnic *nic, bool power)
{
    nic->nw->is_down[nic->process->host] = power;
    for (int i = 0; i < nic->n_socks; i++)
        if (nic->socks[i] != NULL)
            sock_end(nic->socks[i], power);
    free(nic->socks);
    nic->socks = NULL;
    nic->n_socks = 0;
}
