/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's connection: frames become requests, answers leave in the order the requests came (whatever the
 * order in which handlers end them), and a client that asks faster than it is answered is not read any
 * further. On its reactor's thread. Knows how to find a handler, and nothing of what handlers do.
 *
 * Life: while `conn` is there the session is in the reactor's list. Without it it lives on until its last
 * request has ended, for handlers that cannot be interrupted.
 */
#include <errno.h>

#include "daemon/server/server_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

enum {
    HALF_FRAME_MS = 30000, /* a request begun must be whole by then; klogd(8) names it */
    /* A session is not read any further while so much of it is under way: */
    REQUEST_BYTES_MAX = 32 * 1024 * 1024, /* frames received, */
    OUTPUT_BYTES_MAX = 8 * 1024 * 1024,   /* answers that its client does not take */
    DECODED_SMALL_BYTES = 64 * 1024,      /* see reserve_for_handler */
    HANDLER_FACTOR = 8,
};

/* ---- back-pressure ---- */
static bool session_is_full(const struct session *s)
{
    return s->n_requests >= s->reactor->server->deps.config->queued_max_requests ||
           s->n_long > 0 || s->request_bytes >= REQUEST_BYTES_MAX || conn_output_bytes(s->conn) >= OUTPUT_BYTES_MAX ||
           (memory_is_short(s) && (s->n_requests > 0 || conn_output_bytes(s->conn) > 0));
}

static void session_regulate(struct session *s)
{
    if (s->conn == NULL)
        return;
    memory_recount(s);
    conn_set_busy(s->conn, s->n_requests > 0);
    bool full = s->reactor->draining || session_is_full(s);
    if (full == s->paused)
        return;
    s->paused = full;
    if (full)
        conn_pause(s->conn);
    else
        conn_resume(s->conn);
}

void session_released(struct session *s)
{
    if (s->busy == 0)
        session_regulate(s);
}

/* ---- ends ---- */
static void session_free_if_done(struct session *s)
{
    if (s->conn != NULL || s->busy > 0 || !TAILQ_EMPTY(&s->requests))
        return;
    server_session_ended(s->reactor->server);
    free(s);
}

/* The connection is gone: those who wait on its behalf must stop. Their cancel() may free them. */
static void session_lost(struct session *s)
{
    LIST_REMOVE(s, link);
    memory_forget(s);
    s->conn = NULL;
    s->busy++;
    struct request *next;
    for (struct request *r = TAILQ_FIRST(&s->requests); r != NULL; r = next) {
        next = TAILQ_NEXT(r, link);
        void (*cancel)(struct request *) = r->cancel;
        r->cancel = r->finish = NULL;
        if (cancel != NULL)
            cancel(r);
        else if (r->ended)
            session_forget(s, r);
    }
    s->busy--;
    counter_add(&s->reactor->figures.closed[s->listener - s->reactor->server->listeners], 1);
    server_conn_ended(s->reactor);
}

void session_close(struct session *s, const char *why)
{
    if (s->conn == NULL)
        return;
    if (why != NULL && reactor_may_log(s->reactor))
        log_info("%s: connection closed: %s", conn_peer(s->conn), why);
    conn_close(s->conn);
    session_lost(s);
}

void session_charge(struct session *s, struct request *r, size_t n)
{
    r->charge_bytes += n;
    s->request_bytes += n;
}

void session_forget(struct session *s, struct request *r)
{
    TAILQ_REMOVE(&s->requests, r, link);
    s->n_requests--;
    s->request_bytes -= r->charge_bytes;
    if (r->n_gaps > 0)
        request_send(r, NULL);
    request_free(r);
    session_free_if_done(s);
}

/* Nothing of the session's is on the stack any more: settle what came of it. May free it. */
static void session_settle(struct session *s)
{
    if (s->busy > 0)
        return;
    session_regulate(s);
    if (s->conn != NULL && s->reactor->draining && TAILQ_EMPTY(&s->requests) &&
        conn_output_bytes(s->conn) == 0)
        session_close(s, NULL);
    session_free_if_done(s);
}

void session_ended(struct session *s, struct request *r)
{
    if (s->conn == NULL) {
        session_forget(s, r);
        return;
    }
    size_t n = r->reply == NULL ? 0 : r->reply->n;
    if (!memory_take(s, n)) {
        session_evict(s, "there is no memory for its answer (queued.max.request.bytes)");
        return;
    }
    session_charge(s, r, n);
    s->busy++;
    for (r = TAILQ_FIRST(&s->requests); r != NULL && r->ended; r = TAILQ_FIRST(&s->requests)) {
        request_send(r, s->conn);
        session_forget(s, r);
    }
    s->busy--;
    session_settle(s);
}

/* ---- a frame ---- */
static void refuse_version(struct request *r)
{
    if (r->api_key == API_API_VERSIONS) {
        r->session->reactor->server->deps.apis->versions_unsupported(r);
        return;
    }
    request_close(r, arena_printf(&r->arena, "API %d (%s) version %d is not served here", r->api_key,
                                  r->api == NULL ? "unknown" : r->api->name, r->api_version));
}

static const struct api *read_header(struct request *r, struct slice *ret_body)
{
    struct wire_request_header h = { 0 };
    int rc = wire_request_header_read(slice_of(r->frame->p, r->frame->n), &h, ret_body);
    r->api_key = h.api_key;
    r->api_version = h.api_version;
    r->correlation_id = h.correlation_id;
    r->client_id = h.client_id;
    if (rc == -EBADMSG) {
        request_close(r, "the request's header is malformed");
        return NULL;
    }
    r->api = wire_api_find(h.api_key);
    const struct api *a = r->api == NULL ? NULL : r->session->reactor->server->deps.apis->find(h.api_key);
    if (rc < 0 || a == NULL || h.api_version < a->min_version || h.api_version > a->max_version) {
        refuse_version(r);
        return NULL;
    }
    return a;
}

static void refuse_body(struct request *r, int rc)
{
    const char *what = rc == -EMSGSIZE ? "names too many things at once"
                       : rc == -ENOMEM ? "finds no memory"
                                       : "is malformed";
    request_close(r, arena_printf(&r->arena, "the body of a %s request, version %d, %s", r->api->name,
                                  r->api_version, what));
}

/* A handler takes memory in proportion to what was decoded (the structs of its answer, its own of each thing named).
 * Where that is much it is had now or the request fails. */
static bool reserve_for_handler(struct request *r)
{
    size_t n = r->arena.used_bytes;
    return n <= DECODED_SMALL_BYTES || arena_try_reserve(&r->arena, HANDLER_FACTOR * n);
}

static void session_handle(struct session *s, struct rcbuf *frame)
{
    struct request *r = request_new(s, frame);
    TAILQ_INSERT_TAIL(&s->requests, r, link);
    s->n_requests++;
    session_charge(s, r, frame->n);

    struct slice body;
    const struct api *a = read_header(r, &body);
    if (a == NULL)
        return;
    void *decoded = arena_alloc(&r->arena, wire_msg_size(r->api->request));
    int rc = wire_decode_request(r->api->request, r->api_version, body, &r->arena, decoded);
    if (rc == 0 && !reserve_for_handler(r))
        rc = -ENOMEM;
    if (rc < 0) {
        refuse_body(r, rc);
        return;
    }
    r->body = decoded;
    if (r->arena.used_bytes > DECODED_SMALL_BYTES)
        session_charge(s, r, HANDLER_FACTOR * r->arena.used_bytes);
    a->handler(r);
}

static void on_frame(struct conn *c, struct rcbuf *frame)
{
    struct session *s = conn_user(c);
    s->busy++;
    session_handle(s, frame);
    s->busy--;
    session_settle(s);
}

static void on_closed(struct conn *c, const char *why)
{
    struct session *s = conn_user(c);
    log_debug("%s: connection ended: %s", conn_peer(c), why);
    session_lost(s);
    session_free_if_done(s);
}

static void on_drained(struct conn *c)
{
    session_settle(conn_user(c));
}

static bool on_may_take(struct conn *c, size_t n)
{
    return memory_may_take(conn_user(c), n);
}

static const struct conn_ops session_ops = {
    .frame = on_frame,
    .closed = on_closed,
    .drained = on_drained,
    .may_take = on_may_take,
};

/* ---- life ---- */
void session_open(struct reactor *rx, int fd, struct listener *l)
{
    const struct broker_config *cfg = rx->server->deps.config;
    struct conn_limits limits = {
        .frame_max = cfg->socket_request_max_bytes,
        .half_frame_ms = HALF_FRAME_MS,
        .idle_ms = cfg->connections_max_idle_ms,
        .sndbuf = cfg->socket_send_buffer_bytes,
        .rcvbuf = cfg->socket_receive_buffer_bytes,
    };
    struct session *s = xcalloc(1, sizeof *s);
    atomic_fetch_add(&rx->server->n_sessions, 1);
    s->reactor = rx;
    s->listener = l;
    TAILQ_INIT(&s->requests);
    LIST_INSERT_HEAD(&rx->sessions, s, link);
    s->conn = conn_new(rx->loop, fd, &session_ops, &limits, s);
    counter_add(&rx->figures.opened[l - rx->server->listeners], 1);
    log_debug("%s: connected", conn_peer(s->conn));
}

void session_evict(struct session *s, const char *why)
{
    session_close(s, why);
    session_free_if_done(s);
}

void session_abort(struct session *s)
{
    session_evict(s, NULL);
}

static struct request *first_unfinished(struct session *s)
{
    struct request *r = TAILQ_FIRST(&s->requests);
    while (r != NULL && r->finish == NULL)
        r = TAILQ_NEXT(r, link);
    return r;
}

void session_retire(struct session *s)
{
    session_settle(s);
}

void session_drain(struct session *s)
{
    s->busy++;
    for (struct request *r = first_unfinished(s); r != NULL; r = first_unfinished(s)) {
        void (*finish)(struct request *) = r->finish;
        r->finish = NULL;
        finish(r);
    }
    s->busy--;
    session_settle(s);
}
