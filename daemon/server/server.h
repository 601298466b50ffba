/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listeners, and the sessions on every reactor. Addresses are bound first, before the logs are opened, so
 * that a second daemon fails at once; connections are accepted only when the broker can answer.
 */
#ifndef KLOG_DAEMON_SERVER_H
#define KLOG_DAEMON_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct broker_config;
struct loop;
struct server;
struct server_apis;
struct services;
struct histogram_sum;
struct workers;
struct world;

struct server_deps {
    const struct world *world;
    const struct broker_config *config; /* as the file and the command line say */
    struct loop *const *loops; /* the reactors'; the first has the listeners. Room for NETWORK_THREADS_MAX */
    int n_loops;               /* of them, at the start */
    struct workers *workers;         /* for answers that take long */
    const struct server_apis *apis;  /* who handles requests */
    const struct services *services; /* handed to them with each request */
    bool watched; /* times and error codes are counted */
};
/* Binds every listener of the configuration; NULL and one line in err. */
struct server *server_new(const struct server_deps *deps, char *err, size_t err_size);
/* max.connections from now on; connections that are there stay. Any thread. NULL is fine. */
void server_limit_connections(struct server *s, int32_t max);
/* Connections are served on the first n loops of deps.loops from now on. Those on others get the answers that are under way
 * and are closed: their clients come back. On loops[0], or before server_start(). NULL is fine. */
void server_use_loops(struct server *s, int n);
/* Listens and accepts from now on. kept_fds: descriptors that others will need besides those that are open now. 0 or -errno
 * with one line in err. */
int server_start(struct server *s, int kept_fds, char *err, size_t err_size);
/* Accepts nothing more, answers parked requests, lets the others finish and their answers leave, closes;
 * after some seconds it stops waiting. Blocks. */
void server_stop(struct server *s);
void server_free(struct server *s);

/* Where clients of listener i are to connect. False: there are not so many. Strings are the server's. */
struct server_advertised {
    const char *listener;
    const char *host; /* NULL: the address at which they reached it */
    int32_t port;
};
bool server_advertised(const struct server *s, size_t i, struct server_advertised *ret);
/* "127.0.0.1:9092, [::1]:9092", with the ports that were bound. */
void server_addresses(const struct server *s, struct bytebuf *ret);

/* ---- figures, for those who watch; any thread, from server_start() on ---- */
/* f for each API that was asked for: how long requests took from the last byte read to the answer made. */
void server_each_api(const struct server *s, void (*f)(void *arg, const char *api, const struct histogram_sum *took), void *arg);
/* f for each error code that answers of an API told; one answer may tell many. */
void server_each_error(const struct server *s, void (*f)(void *arg, const char *api, int code, uint64_t n), void *arg);
struct server_connections {
    const char *listener; /* valid as long as s */
    uint64_t open, created;
};
bool server_connections(const struct server *s, size_t i, struct server_connections *ret); /* of listener i; false: there are not so many */
int64_t server_requests(const struct server *s);     /* under way */
int64_t server_memory_bytes(const struct server *s); /* of requests and answers: queued.max.request.bytes bounds it */
/* Asks every reactor to come round, and says for how many milliseconds one has not, at most. now_ms: monotonic. One thread. */
int64_t server_beat(struct server *s, int64_t now_ms);

#endif
