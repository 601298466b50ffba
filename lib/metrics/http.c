/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd on a loop of its own: the loop's thread runs everything here but http_server_new() and http_server_free(). The
 * library has an epoll descriptor, which the loop watches, and says by when it wants to be called again.
 *
 * What strangers can take: CONNECTIONS_MAX connections, CONNECTION_BYTES of memory for each one's request, IDLE_S seconds for
 * it; bodies of requests are refused. An answer is made for one request after the other.
 */
#include "lib/metrics/http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#ifdef HAVE_MICROHTTPD
#include <microhttpd.h>
#endif

#include "lib/base/attr.h"
#include "lib/base/hostport.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/loop.h"
#include "lib/loop/net.h"
#include "lib/loop/thread.h"

bool http_address_ok(const char *address, const char *what, char *err, size_t err_size)
{
    struct hostport hp;
    if (hostport_parse(address, strlen(address), &hp) && hp.port >= 0)
        return true;
    snprintf(err, err_size, "%s: \"%s\" is not HOST:PORT, as 127.0.0.1:9644", what, address);
    return false;
}

#ifndef HAVE_MICROHTTPD
bool http_is_possible(void)
{
    return false;
}

struct http_server *http_server_new(const struct world *w, const char *address, const char *what, http_handler *handler,
                                    void *arg, char *err, size_t err_size)
{
    (void)w, (void)address, (void)handler, (void)arg;
    snprintf(err, err_size, "%s: this program was built without libmicrohttpd; leave it empty", what);
    return NULL;
}

void http_server_free(struct http_server *s)
{
    (void)s;
}

const char *http_server_address(const struct http_server *s)
{
    (void)s;
    return "";
}

struct loop *http_server_loop(struct http_server *s)
{
    (void)s;
    return NULL;
}
#else

enum {
    CONNECTIONS_MAX = 64,
    CONNECTIONS_A_PEER_MAX = 32,
    CONNECTION_BYTES = 16 * 1024, /* request line and headers */
    IDLE_S = 10,
};

struct http_server {
    const struct world *world;
    http_handler *handler;
    void *arg;
    struct loop *loop;
    struct thread *thread;
    struct MHD_Daemon *mhd;
    struct loop_fd w;    /* the library's epoll descriptor */
    struct timer again;  /* when the library wants to be called */
    char address[64];
};

bool http_is_possible(void)
{
    return true;
}

/* ---- requests ---- */
static struct MHD_Response *response_of(struct http_answer *a)
{
    size_t n = a->body.n;
    struct MHD_Response *r = MHD_create_response_from_buffer(n, a->body.p, MHD_RESPMEM_MUST_FREE);
    if (r == NULL) {
        bytebuf_done(&a->body);
        return NULL;
    }
    a->body = (struct bytebuf){ 0 };
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type != NULL ? a->type : "text/plain; charset=utf-8");
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    /* The page brings all it needs and asks only where it came from: nothing that a name could smuggle in would be run. */
    MHD_add_response_header(r, "Content-Security-Policy",
                            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
                            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    return r;
}

static enum MHD_Result answer(struct MHD_Connection *c, struct http_answer *a)
{
    struct MHD_Response *r = response_of(a);
    if (r == NULL)
        return MHD_NO; /* closes the connection */
    if (a->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result rc = MHD_queue_response(c, a->status, r);
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **state)
{
    (void)version, (void)upload;
    static char headers_seen;
    struct http_server *s = arg;
    struct http_answer a = { 0 };

    bool is_get = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    if (is_get && *state == NULL) { /* the first call comes before the body, if there is one */
        *state = &headers_seen;
        return MHD_YES;
    }
    if (*upload_size > 0)
        return MHD_NO; /* a GET with a body: nobody's here */
    if (is_get)
        s->handler(s->arg, url, &a);
    else
        a.status = MHD_HTTP_METHOD_NOT_ALLOWED;
    if (a.status == 0)
        a.status = MHD_HTTP_NOT_FOUND;
    if (a.status == MHD_HTTP_NOT_FOUND && a.body.n == 0)
        bytebuf_adds(&a.body, "there is no such page; see /, /metrics, /healthz, /readyz\n");
    if (a.status == MHD_HTTP_METHOD_NOT_ALLOWED)
        bytebuf_adds(&a.body, "only GET and HEAD are answered here\n");
    return answer(c, &a);
}

/* ---- its turn on the loop ---- */
static unsigned connections(struct http_server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info == NULL ? 0 : info->num_connections;
}

static void run(struct http_server *s)
{
    MHD_UNSIGNED_LONG_LONG in_ms;
    unsigned before = connections(s);
    MHD_run(s->mhd);
    /* With all connections taken it listens no more, and begins again only in the first run after one has gone. */
    if (connections(s) < before || before == CONNECTIONS_MAX)
        MHD_run(s->mhd);
    if (MHD_get_timeout(s->mhd, &in_ms) == MHD_YES)
        timer_set_in(s->loop, &s->again, (int64_t)MIN(in_ms, (MHD_UNSIGNED_LONG_LONG)IDLE_S * 1000));
    else
        timer_clear(s->loop, &s->again);
}

static void on_ready(struct loop_fd *w, uint32_t events)
{
    (void)events;
    run(container_of(w, struct http_server, w));
}

static void on_again(struct timer *t)
{
    run(container_of(t, struct http_server, again));
}

static void loop_main(void *arg)
{
    loop_run(arg);
}

/* ---- its address ---- */
static void note_address(struct http_server *s, int fd)
{
    struct sockaddr_storage ss = { 0 };
    char host[INET6_ADDRSTRLEN] = "?", port[12] = "?";
    s->world->net->names(s->world->net, fd, &ss, NULL);
    getnameinfo((struct sockaddr *)&ss, sizeof ss, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(s->address, sizeof s->address, ss.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static int bind_any(const struct net *net, int32_t port)
{
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any };
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = net->bind(net, (struct sockaddr *)&in6, sizeof in6);
    return fd == -EAFNOSUPPORT ? net->bind(net, (struct sockaddr *)&in, sizeof in) : fd;
}

/* A bound descriptor, or -errno with *ret_why where there is more to say. */
static int bind_address(const struct net *net, const char *address, const char **ret_why)
{
    struct hostport hp;
    struct addrinfo *list;
    char port[12];

    *ret_why = NULL;
    if (!hostport_parse(address, strlen(address), &hp) || hp.port < 0)
        return -EINVAL;
    if (hp.host.n == 0)
        return bind_any(net, hp.port);
    CLEANUP(freep) char *host = xstrndup(hp.host.p, (size_t)hp.host.n);
    snprintf(port, sizeof port, "%d", hp.port);
    int rc = net->resolve(net, host, port, AI_PASSIVE | AI_NUMERICSERV, &list);
    if (rc != 0) {
        *ret_why = gai_strerror(rc);
        return -EADDRNOTAVAIL;
    }
    int fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *ai = list; ai != NULL && fd < 0; ai = ai->ai_next)
        fd = net->bind(net, ai->ai_addr, ai->ai_addrlen);
    net->free_addresses(net, list);
    return fd;
}

/* ---- life ---- */
static void PRINTF_LIKE(2, 0) on_library_log(void *arg, const char *format, va_list ap)
{
    (void)arg;
    char line[256];
    vsnprintf(line, sizeof line, format, ap); /* formats are the library's own */
    line[strcspn(line, "\n")] = '\0';
    log_debug("http: %s", line);
}

static struct MHD_Daemon *start_library(struct http_server *s, int fd)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, s,
                            MHD_OPTION_EXTERNAL_LOGGER, on_library_log, NULL,
                            MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                            MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)CONNECTIONS_A_PEER_MAX,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
                            MHD_OPTION_STRICT_FOR_CLIENT, 1,
                            MHD_OPTION_END);
}

/* The library has the descriptor from here on, and closes it. */
static int serve_on(struct http_server *s, int fd)
{
    s->mhd = start_library(s, fd);
    if (s->mhd == NULL) {
        s->world->net->close(s->world->net, fd);
        return -EIO;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL)
        return -EIO;
    s->w = (struct loop_fd){ .fd = info->epoll_fd, .events = EPOLLIN, .cb = on_ready };
    s->again.cb = on_again;
    s->loop = loop_new(s->world);
    int rc = s->loop == NULL ? -errno : loop_fd_add(s->loop, &s->w);
    if (rc < 0)
        return rc;
    s->thread = thread_start(s->world->exec, loop_main, s->loop, "http");
    return s->thread == NULL ? -EAGAIN : 0;
}

struct http_server *http_server_new(const struct world *w, const char *address, const char *what, http_handler *handler,
                                    void *arg, char *err, size_t err_size)
{
    struct http_server *s = xcalloc(1, sizeof *s);
    const char *why = NULL;
    s->world = w;
    s->handler = handler;
    s->arg = arg;
    int fd = bind_address(w->net, address, &why);
    int rc = fd < 0 ? fd : w->net->listen(w->net, fd);
    if (fd >= 0 && rc < 0)
        w->net->close(w->net, fd);
    if (rc == 0) {
        note_address(s, fd);
        rc = serve_on(s, fd);
    }
    if (rc == 0)
        return s;
    snprintf(err, err_size, "%s: %s: %s%s", what, address, why != NULL ? why : strerror(-rc),
             rc == -EADDRINUSE ? "; stop what listens there or choose another port" : "");
    http_server_free(s);
    return NULL;
}

void http_server_free(struct http_server *s)
{
    if (s == NULL)
        return;
    if (s->thread != NULL) {
        loop_stop(s->loop);
        thread_join(s->world->exec, s->thread);
    }
    if (s->loop != NULL)
        loop_clear_timers(s->loop);
    if (s->mhd != NULL)
        MHD_stop_daemon(s->mhd);
    if (s->loop != NULL)
        loop_free(s->loop);
    free(s);
}

const char *http_server_address(const struct http_server *s)
{
    return s->address;
}

struct loop *http_server_loop(struct http_server *s)
{
    return s->loop;
}
#endif
