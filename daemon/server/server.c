/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners on loops[0]; each accepted descriptor goes to the reactor that has the fewest connections, so
 * that two busy clients never share one while another is idle. Stopping: see server_stop().
 *
 * Out of descriptors: one kept in reserve is given up to accept and close a connection, so that the
 * peer learns it at once and the listener does not spin; then the listener rests for a moment.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "daemon/server/server_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/net.h"
#include "lib/loop/thread.h"

enum {
    ACCEPTS_A_ROUND = 64,
    NO_DESCRIPTORS_REST_MS = 100,
    DRAIN_MS = 5000,
    LOG_LINES_A_SECOND = 10,
    WORK_DESCRIPTORS_MAX = 64, /* the broker's own, for a moment: see connections_possible */
    CONNECTIONS_MIN = 8,       /* so many are served however low the limit is */
};

static const struct net *net_of(const struct server *s)
{
    return s->deps.world->net;
}

static void close_fd(const struct server *s, int *fd)
{
    if (*fd >= 0)
        net_of(s)->close(net_of(s), *fd);
    *fd = -1;
}

/* ---- reactors ---- */
static void on_take(struct task *t)
{
    struct reactor *rx = container_of(t, struct reactor, take);
    lock_take(&rx->mu);
    struct accepted *queue = take(&rx->queue);
    size_t n = rx->n_queue;
    rx->n_queue = rx->cap_queue = 0;
    lock_release(&rx->mu);

    for (size_t i = 0; i < n; i++) {
        if (rx->draining) {
            close_fd(rx->server, &queue[i].fd);
            server_conn_ended(rx);
        } else {
            session_open(rx, queue[i].fd, queue[i].listener);
        }
    }
    free(queue);
}

static void reactor_hand_over(struct reactor *rx, int fd, struct listener *l)
{
    lock_take(&rx->mu);
    if (rx->n_queue == rx->cap_queue) {
        rx->cap_queue = MAX((size_t)4, rx->cap_queue * 2);
        rx->queue = xreallocarray(rx->queue, rx->cap_queue, sizeof *rx->queue);
    }
    rx->queue[rx->n_queue++] = (struct accepted){ fd, l };
    lock_release(&rx->mu);
    loop_post(rx->loop, &rx->take);
}

static struct reactor *reactor_choose(struct server *s)
{
    struct reactor *best = &s->reactors[0];
    for (int i = 1; i < s->n_used; i++)
        if (atomic_load(&s->reactors[i].n_conns) < atomic_load(&best->n_conns))
            best = &s->reactors[i];
    return best;
}

static void wake_who_drains(struct server *s)
{
    if (!atomic_load(&s->draining))
        return;
    lock_take(&s->drained_mu);
    cond_broadcast(&s->drained);
    lock_release(&s->drained_mu);
}

void server_conn_ended(struct reactor *rx)
{
    atomic_fetch_sub(&rx->n_conns, 1);
    atomic_fetch_sub(&rx->server->n_conns, 1);
    wake_who_drains(rx->server);
}

void server_session_ended(struct server *s)
{
    atomic_fetch_sub(&s->n_sessions, 1);
    wake_who_drains(s);
}

bool reactor_may_log(struct reactor *rx)
{
    int64_t now = loop_now_ms(rx->loop);
    if (now - rx->log_window_ms >= 1000) {
        if (rx->log_suppressed > 0)
            log_info("%d more lines about closed connections were left out", rx->log_suppressed);
        rx->log_window_ms = now;
        rx->log_lines = rx->log_suppressed = 0;
    }
    if (rx->log_lines >= LOG_LINES_A_SECOND) {
        rx->log_suppressed++;
        return false;
    }
    rx->log_lines++;
    return true;
}

/* ---- accepting, on loops[0] ---- */
static void listener_rest(struct listener *l, const char *why)
{
    struct loop *lp = l->server->deps.loops[0];
    log_warn("listener %s: %s; new connections wait or are turned away; raise the limit (ulimit -n)",
             l->address, why);
    loop_fd_mod(lp, &l->w, 0);
    timer_set(lp, &l->retry, loop_now_ms(lp) + NO_DESCRIPTORS_REST_MS);
}

static void on_retry(struct timer *t)
{
    struct listener *l = container_of(t, struct listener, retry);
    if (l->accepting)
        loop_fd_mod(l->server->deps.loops[0], &l->w, EPOLLIN);
}

static void turn_one_away(struct listener *l)
{
    struct server *s = l->server;
    if (s->reserve_fd < 0)
        return;
    close_fd(s, &s->reserve_fd);
    int fd = net_of(s)->accept(net_of(s), l->w.fd);
    close_fd(s, &fd);
    s->reserve_fd = net_of(s)->spare(net_of(s));
}

/* Connections get what neither is open at the start nor is needed for segments and for what the broker opens while it
 * works: so clients cannot make the store run out of descriptors. */
static int connections_possible(const struct server *s, int kept_fds)
{
    const struct machine *m = s->deps.world->machine;
    int64_t limit = m->fd_limit(m);
    int64_t taken = m->fds_open(m) + kept_fds + MIN((int64_t)WORK_DESCRIPTORS_MAX, limit / 8);
    return (int)MIN(MAX(limit - taken, (int64_t)CONNECTIONS_MIN), (int64_t)INT32_MAX);
}

static bool connections_are_full(struct server *s)
{
    int max = atomic_load(&s->max_conns);
    bool full = atomic_load(&s->n_conns) >= MIN(max, s->possible_conns);
    if (full && !s->told_full && max <= s->possible_conns)
        log_warn("max.connections=%d reached: further connections are closed at once", max);
    else if (full && !s->told_full)
        log_warn("%d connections are all that the limit of descriptors leaves room for: further ones are closed at "
                 "once; raise it (ulimit -n)",
                 s->possible_conns);
    s->told_full = full;
    return full;
}

/* false: no more to accept now. */
static bool accept_one(struct listener *l)
{
    struct server *s = l->server;
    int fd = net_of(s)->accept(net_of(s), l->w.fd);
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
        turn_one_away(l);
        listener_rest(l, strerror(-fd));
    }
    if (fd < 0)
        return false;
    if (connections_are_full(s)) {
        close_fd(s, &fd);
        return true;
    }
    struct reactor *rx = reactor_choose(s);
    atomic_fetch_add(&rx->n_conns, 1);
    atomic_fetch_add(&s->n_conns, 1);
    if (rx->loop == s->deps.loops[0])
        session_open(rx, fd, l);
    else
        reactor_hand_over(rx, fd, l);
    return true;
}

static void on_acceptable(struct loop_fd *w, uint32_t events)
{
    (void)events;
    struct listener *l = container_of(w, struct listener, w);
    for (int i = 0; i < ACCEPTS_A_ROUND && accept_one(l); i++)
        ;
}

/* ---- binding ---- */
/* All addresses: one IPv6 socket takes IPv4 as well; where the machine has no IPv6, IPv4 alone. */
static int bind_any(const struct net *net, uint16_t port)
{
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any };
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = net->bind(net, (struct sockaddr *)&in6, sizeof in6);
    return fd == -EAFNOSUPPORT ? net->bind(net, (struct sockaddr *)&in, sizeof in) : fd;
}

static int bind_host(const struct net *net, const struct broker_listener *conf, char *err, size_t err_size)
{
    if (conf->host[0] == '\0')
        return bind_any(net, (uint16_t)conf->port);

    char port[12];
    struct addrinfo *list;
    snprintf(port, sizeof port, "%d", conf->port);
    int rc = net->resolve(net, conf->host, port, AI_PASSIVE | AI_NUMERICSERV, &list);
    if (rc != 0) {
        snprintf(err, err_size, "listeners: %s: %s", conf->host, gai_strerror(rc));
        return -EADDRNOTAVAIL;
    }
    int fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *ai = list; ai != NULL && fd < 0; ai = ai->ai_next)
        fd = net->bind(net, ai->ai_addr, ai->ai_addrlen);
    net->free_addresses(net, list);
    return fd;
}

static void note_address(struct listener *l)
{
    struct sockaddr_storage ss = { 0 };
    char host[INET6_ADDRSTRLEN] = "?", port[12] = "?";
    net_of(l->server)->names(net_of(l->server), l->w.fd, &ss, NULL);
    getnameinfo((struct sockaddr *)&ss, sizeof ss, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    l->port = (int32_t)strtol(port, NULL, 10);
    snprintf(l->address, sizeof l->address, ss.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static int listener_bind(struct server *s, struct listener *l, const struct broker_listener *conf, char *err,
                         size_t err_size)
{
    l->server = s;
    l->conf = conf;
    l->retry.cb = on_retry;
    err[0] = '\0';
    int fd = bind_host(net_of(s), conf, err, err_size);
    if (fd < 0) {
        if (err[0] == '\0')
            snprintf(err, err_size, "listeners: %s:%d: %s%s", conf->host[0] == '\0' ? "*" : conf->host,
                     conf->port, strerror(-fd),
                     fd == -EADDRINUSE ? "; stop what listens there or choose another port" : "");
        return fd;
    }
    l->w = (struct loop_fd){ .fd = fd, .events = EPOLLIN, .cb = on_acceptable };
    note_address(l);
    return 0;
}

/* ---- how many reactors ---- */
static void each_session(struct reactor *rx, void (*f)(struct session *s))
{
    struct session *next;
    for (struct session *s = LIST_FIRST(&rx->sessions); s != NULL; s = next) {
        next = LIST_NEXT(s, link);
        f(s);
    }
}

/* A reactor that gets no more connections closes those it has, each once it has its answers. On its loop. */
static void on_turn(struct task *t)
{
    struct reactor *rx = container_of(t, struct reactor, turn);
    rx->draining = !atomic_load(&rx->in_use) || atomic_load(&rx->server->draining);
    if (rx->draining)
        each_session(rx, session_retire);
}

static void reactor_make(struct server *s, int i)
{
    struct reactor *rx = &s->reactors[i];
    rx->server = s;
    rx->loop = s->deps.loops[i];
    rx->take.cb = on_take;
    rx->turn.cb = on_turn;
    atomic_init(&rx->in_use, true);
    lock_init(&rx->mu, LOCK_RANK_SERVER, "server");
    LIST_INIT(&rx->sessions);
    memory_start(rx);
    figures_start(rx);
    atomic_store(&s->n_reactors, i + 1);
}

void server_use_loops(struct server *s, int n)
{
    if (s == NULL || s->n_used == n)
        return;
    s->n_used = n;
    if (s->reactors == NULL)
        return;
    for (int i = 0; i < n || i < atomic_load(&s->n_reactors); i++) {
        if (i == atomic_load(&s->n_reactors))
            reactor_make(s, i);
        struct reactor *rx = &s->reactors[i];
        if (atomic_exchange(&rx->in_use, i < n) != (i < n))
            loop_post(rx->loop, &rx->turn);
    }
}

/* ---- life ---- */

struct server *server_new(const struct server_deps *deps, char *err, size_t err_size)
{
    struct server *s = xcalloc(1, sizeof *s);
    s->deps = *deps;
    s->reserve_fd = -1;
    s->n_used = deps->n_loops;
    memory_init(s);
    if (deps->watched)
        s->errors = figures_new_errors();
    lock_init(&s->drained_mu, LOCK_RANK_SERVER, "server");
    cond_init(&s->drained, deps->world->exec);

    int rc = broker_config_listeners(deps->config, &s->confs, &s->n, err, err_size);
    s->listeners = xcalloc(s->n + 1, sizeof *s->listeners);
    for (size_t i = 0; i < s->n; i++)
        s->listeners[i].w.fd = -1;
    for (size_t i = 0; i < s->n && rc == 0; i++)
        rc = listener_bind(s, &s->listeners[i], &s->confs[i], err, err_size);
    if (rc == 0)
        return s;
    server_free(s);
    return NULL;
}

struct start_call {
    struct server *server;
    int rc;
    const char *address;
};

static void start_on_loop(void *arg)
{
    struct start_call *call = arg;
    struct server *s = call->server;
    for (size_t i = 0; i < s->n && call->rc == 0; i++) {
        struct listener *l = &s->listeners[i];
        call->address = l->address;
        call->rc = net_of(s)->listen(net_of(s), l->w.fd);
        if (call->rc == 0)
            call->rc = loop_fd_add(s->deps.loops[0], &l->w);
        l->accepting = call->rc == 0;
    }
}

void server_limit_connections(struct server *s, int32_t max)
{
    if (s != NULL)
        atomic_store(&s->max_conns, max);
}

int server_start(struct server *s, int kept_fds, char *err, size_t err_size)
{
    s->reactors = xcalloc(NETWORK_THREADS_MAX, sizeof *s->reactors);
    for (int i = 0; i < s->n_used; i++)
        reactor_make(s, i);
    s->reserve_fd = net_of(s)->spare(net_of(s));
    s->possible_conns = connections_possible(s, kept_fds);

    struct start_call call = { .server = s };
    loop_call(s->deps.loops[0], start_on_loop, &call);
    if (call.rc < 0)
        snprintf(err, err_size, "listeners: %s: %s", call.address, strerror(-call.rc));
    return call.rc;
}

static void close_listeners(void *arg)
{
    struct server *s = arg;
    for (size_t i = 0; i < s->n; i++) {
        struct listener *l = &s->listeners[i];
        timer_clear(s->deps.loops[0], &l->retry);
        if (l->accepting)
            loop_fd_del(s->deps.loops[0], &l->w);
        l->accepting = false;
    }
}

static void drain_on_loop(void *arg)
{
    struct reactor *rx = arg;
    rx->draining = true;
    each_session(rx, session_drain);
}

static void abort_on_loop(void *arg)
{
    each_session(arg, session_abort);
    memory_stop(arg);
}

static void each_reactor(struct server *s, void (*f)(void *arg))
{
    for (int i = 0; i < atomic_load(&s->n_reactors); i++)
        loop_call(s->reactors[i].loop, f, &s->reactors[i]);
}

static void wait_until_drained(struct server *s)
{
    int64_t until_ms = world_mono_ms(s->deps.world) + DRAIN_MS;
    lock_take(&s->drained_mu);
    while (atomic_load(&s->n_conns) + atomic_load(&s->n_sessions) > 0 && world_mono_ms(s->deps.world) < until_ms)
        cond_wait_until(&s->drained, &s->drained_mu, until_ms);
    lock_release(&s->drained_mu);
}

void server_stop(struct server *s)
{
    if (s == NULL || s->reactors == NULL)
        return;
    atomic_store(&s->draining, true);
    loop_call(s->deps.loops[0], close_listeners, s);
    each_reactor(s, drain_on_loop);
    wait_until_drained(s);
    int left = atomic_load(&s->n_conns);
    if (left > 0)
        log_warn("%d connections did not take their answers within %d ms and are closed", left, DRAIN_MS);
    each_reactor(s, abort_on_loop);
}

void server_free(struct server *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++)
        close_fd(s, &s->listeners[i].w.fd);
    for (int i = 0; i < atomic_load(&s->n_reactors); i++) {
        for (size_t k = 0; k < s->reactors[i].n_queue; k++)
            close_fd(s, &s->reactors[i].queue[k].fd);
        free(s->reactors[i].queue);
        figures_done(&s->reactors[i]);
        lock_done(&s->reactors[i].mu);
    }
    close_fd(s, &s->reserve_fd);
    cond_done(&s->drained);
    lock_done(&s->drained_mu);
    broker_listeners_free(s->confs, s->n);
    free(s->listeners);
    free(s->reactors);
    free(s->errors);
    free(s);
}

bool server_advertised(const struct server *s, size_t i, struct server_advertised *ret)
{
    if (i >= s->n)
        return false;
    const struct listener *l = &s->listeners[i];
    ret->listener = l->conf->name;
    ret->host = l->conf->advertised_host;
    ret->port = l->conf->advertised_port > 0 ? l->conf->advertised_port : l->port;
    return true;
}

void server_addresses(const struct server *s, struct bytebuf *ret)
{
    for (size_t i = 0; i < s->n; i++)
        bytebuf_printf(ret, "%s%s", i == 0 ? "" : ", ", s->listeners[i].address);
}
