/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a broker: resolve, connect, ApiVersions, then requests in flight, answered in
 * the order they were sent. On the loop's thread.
 *
 * Invariants: only a READY link has calls in `sent`; a failure hands every call back to call.c
 * before anything else happens to the link, and calls no cb.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/varint.h"
#include "lib/client/client_int.h"

enum {
    LINK_SETUP_MS = 3000,  /* resolve, connect and ApiVersions together */
    LINK_SILENT_MS = 1000, /* a request has been out for so long without a word from the broker: is it in the cluster? */
    LINK_IDLE_MS = 540000, /* below the brokers' connections.max.idle.ms */
    API_VERSIONS_NEWEST = 3,
};

/* A look-up cannot be called back: the link may be gone when it answers. */
struct link_resolving {
    struct link *l;
};

/* - idle -> resolving -> connecting -> asking versions -> ready; connecting again: the next address
 * - any -> idle: it failed; the next call opens it again */
#define B(state) (1u << LINK_##state)
static const uint8_t link_next[] = {
    [LINK_IDLE] = B(RESOLVING),
    [LINK_RESOLVING] = B(CONNECTING) | B(IDLE),
    [LINK_CONNECTING] = B(CONNECTING) | B(ASKING_VERSIONS) | B(IDLE),
    [LINK_ASKING_VERSIONS] = B(READY) | B(IDLE),
    [LINK_READY] = B(IDLE),
};
#undef B

static void link_move(struct link *l, enum link_state to)
{
    KCHECK(link_next[l->state] & (1u << to));
    l->state = to;
}

static void link_on_timer(struct timer *t);

void link_init(struct link *l, struct broker *b, bool parks)
{
    *l = (struct link){ .c = l->c, .broker = b, .parks = parks, .timer.cb = link_on_timer };
    TAILQ_INIT(&l->queued);
    TAILQ_INIT(&l->sent);
}

static void link_disconnect(struct link *l)
{
    timer_clear(l->c->loop, &l->timer);
    if (l->resolving != NULL)
        l->resolving->l = NULL;
    l->resolving = NULL;
    if (l->conn != NULL)
        conn_close(l->conn);
    l->conn = NULL;
    l->n_addresses = l->next_address = 0;
    if (l == &l->broker->main)
        l->broker->silent = false;
}

void link_done(struct link *l)
{
    KCHECK(TAILQ_EMPTY(&l->queued) && TAILQ_EMPTY(&l->sent));
    link_disconnect(l);
}

bool link_is_free(const struct link *l)
{
    return TAILQ_EMPTY(&l->queued) && TAILQ_EMPTY(&l->sent);
}

/* ---- failure ---- */
/* Calls that were not sent look for another way: the broker's place in the cluster may have changed. */
static void link_give_back_queued(struct link *l)
{
    struct client_call_state *s;
    while ((s = TAILQ_FIRST(&l->queued)) != NULL) {
        enum client_target target = s->call->target;
        if (target == TARGET_LEADER)
            client_topic_is_stale(l->c, s->call->topic);
        else if (target == TARGET_COORDINATOR)
            coordinator_forget(l->c, s->call->topic);
        else if (target != TARGET_ANY)
            s->need_seq = l->c->meta_seq + 1;
        call_retry(s, loop_now_ms(l->c->loop));
    }
}

void link_fail(struct link *l, const char *why)
{
    struct client *c = l->c;
    struct broker *b = l->broker;
    log_debug("%s: broker %d at %s:%d: %s", c->cfg.client_id, b->id, b->host, b->port, why);
    if (l->state != LINK_IDLE && l->state != LINK_READY)
        b->retry_at_ms = loop_now_ms(c->loop) + client_backoff_ms(c, b->failures++);
    if (l->state != LINK_IDLE)
        link_move(l, LINK_IDLE);
    link_disconnect(l);

    struct client_call_state *s;
    while ((s = TAILQ_FIRST(&l->sent)) != NULL)
        call_lost(s);
    link_give_back_queued(l);
    if (c->any == b)
        c->any = TAILQ_NEXT(b, entry);
    client_stir(c);
    if (l->parks) {
        TAILQ_REMOVE(&b->polls, l, entry);
        b->n_polls--;
        free(l);
        if ((s = TAILQ_FIRST(&b->waiting)) != NULL)
            call_retry(s, 0);
    }
}

/* It may just be slow, so that the connection stays; but who looks for any broker goes to another, and what those say of the cluster
 * decides. A broker that is alone is waited for. */
static void link_doubt(struct link *l)
{
    struct client *c = l->c;
    struct broker *b = l->broker;
    if (TAILQ_FIRST(&c->brokers) == TAILQ_LAST(&c->brokers, broker_list))
        return;
    metadata_want_brokers(c);
    client_stir(c);
    if (b->silent)
        return;
    b->silent = true;
    struct client_call_state *s, *next, *last = TAILQ_LAST(&l->sent, call_list);
    for (s = TAILQ_FIRST(&l->sent); s != NULL; s = s == last ? NULL : next) {
        next = TAILQ_NEXT(s, entry);
        if (s->call != NULL && s->call->target == TARGET_ANY && !s->call->once)
            call_ask_elsewhere(s);
    }
}

/* The request at the head of the row has been out for too long, or the link is not ready in time. */
static void link_on_timer(struct timer *t)
{
    struct link *l = container_of(t, struct link, timer);
    struct client_call_state *first = TAILQ_FIRST(&l->sent);
    if (l->state == LINK_READY && first == NULL)
        return;
    if (l->state == LINK_READY) {
        int64_t now = loop_now_ms(l->c->loop), due = first->sent_ms + l->c->cfg.request_timeout_ms;
        int64_t silent = MAX(first->sent_ms, l->heard_ms) + LINK_SILENT_MS;
        if (due > now && silent <= now) {
            link_doubt(l);
            silent = now + LINK_SILENT_MS;
        }
        if (due > now) {
            timer_set(l->c->loop, t, MIN(due, silent));
            return;
        }
    }
    link_fail(l, l->state == LINK_READY ? "no answer within the request time-out" : "not reached in time");
}

/* ---- requests ---- */
/* Sends what the encoder made; the gaps are filled with the caller's buffers, which are not copied. */
static void link_send_out(struct link *l, struct wire_out *out)
{
    struct rcbuf *b = rcbuf_take(&out->b);
    size_t at = 0;
    for (size_t i = 0; i < out->n_gaps; i++) {
        const struct wire_gap *gap = &out->gaps[i];
        conn_send(l->conn, b, at, gap->at - at);
        conn_send(l->conn, gap->ext, 0, (size_t)gap->n);
        at = gap->at;
    }
    conn_send(l->conn, b, at, b->n - at);
    rcbuf_unref(b);
    wire_out_done(out);
}

static void link_header(struct link *l, int16_t key, int16_t version, struct wire_out *out)
{
    struct wire_request_header h = {
        .api_key = key,
        .api_version = version,
        .correlation_id = l->next_correlation_id++,
        .client_id = kstr_of(l->c->cfg.client_id),
    };
    wire_request_header_write(&h, out);
}

/* The newest version that the broker, the schema and the caller know; -1 none. */
static int link_version(const struct link *l, const struct client_call *call)
{
    const struct wire_message *m = call->request;
    const struct api_range *r = broker_api(l->broker, m->api_key);
    if (r == NULL)
        return -1;
    int max = MIN(m->max_version, r->max), min = MAX(m->min_version, r->min);
    if (call->max_version >= 0)
        max = MIN(max, call->max_version);
    return max >= min ? max : -1;
}

static void link_note_sent(const struct link *l, int16_t api_key)
{
    if (l->c->cfg.sent != NULL)
        l->c->cfg.sent(l->c->cfg.sent_arg, api_key);
}

static void link_asked(struct link *l)
{
    if (!l->parks && l->c->missing_since_ms == 0)
        l->c->missing_since_ms = MAX(loop_now_ms(l->c->loop), 1);
}

static void link_send(struct link *l, struct client_call_state *s)
{
    link_asked(l);
    const struct wire_message *m = s->call->request;
    int version = link_version(l, s->call);
    struct wire_out out = { 0 };
    s->correlation_id = l->next_correlation_id;
    if (version >= 0)
        link_header(l, m->api_key, (int16_t)version, &out);
    if (version < 0 || wire_encode(m, version, s->call->body, &out, NULL) < 0) {
        wire_out_done(&out);
        call_end_later(s, -EPROTONOSUPPORT);
        return;
    }
    wire_frame_close(&out);
    link_send_out(l, &out);
    link_note_sent(l, m->api_key);

    s->version = (int16_t)version;
    s->response = wire_api_find(m->api_key)->response;
    s->call->was_sent = true;
    s->sent_ms = loop_now_ms(l->c->loop);
    s->link = l;
    if (s->call->no_reply) {
        call_end_later(s, 0);
        return;
    }
    call_move(s, CALL_SENT, &l->sent);
    if (!l->parks && !timer_is_set(&l->timer))
        timer_set(l->c->loop, &l->timer, s->sent_ms + MIN(l->c->cfg.request_timeout_ms, (int64_t)LINK_SILENT_MS));
}

static void link_on_ready(struct link *l)
{
    timer_clear(l->c->loop, &l->timer);
    link_move(l, LINK_READY);
    l->broker->failures = 0;
    l->broker->retry_at_ms = 0;
    l->c->any = l->broker;
    struct client_call_state *s;
    while (l->state == LINK_READY && (s = TAILQ_FIRST(&l->queued)) != NULL)
        link_send(l, s);
    client_stir(l->c);
}

/* ---- ApiVersions ---- */
static void link_ask_versions(struct link *l, int16_t version)
{
    struct api_versions_request req = {
        .client_software_name = kstr_of("klog"),
        .client_software_version = kstr_of(PACKAGE_VERSION),
    };
    struct wire_out out = { 0 };
    l->versions_version = version;
    link_header(l, API_API_VERSIONS, version, &out);
    int rc = wire_encode(&wire_api_versions_request, version, &req, &out, NULL);
    KCHECK(rc == 0);
    wire_frame_close(&out);
    link_send_out(l, &out);
    link_note_sent(l, API_API_VERSIONS);
}

static void link_take_versions(struct link *l, const struct api_versions_response *r)
{
    struct broker *b = l->broker;
    b->apis = xreallocarray(b->apis, (size_t)MAX(r->n_api_keys, 1), sizeof *b->apis);
    b->n_apis = r->n_api_keys;
    for (int32_t i = 0; i < r->n_api_keys; i++)
        b->apis[i] = (struct api_range){ r->api_keys[i].api_key, r->api_keys[i].min_version,
                                         r->api_keys[i].max_version };
    l->c->told_apis = b;
}

static void link_on_versions(struct link *l, struct slice frame)
{
    CLEANUP(arena_done) struct arena a;
    arena_init(&a);
    int32_t id;
    struct slice body;
    struct api_versions_response r = { 0 };
    int16_t asked = l->versions_version;
    if (wire_response_header_read(API_API_VERSIONS, asked, frame, &id, &body) < 0 ||
        id != l->next_correlation_id - 1 || body.n < 2) {
        link_fail(l, "the answer to ApiVersions is not Kafka's protocol");
        return;
    }
    /* A broker that does not know the version asked for says so in the shape of version 0 (KIP-511). */
    bool too_new = (int16_t)get_be16(body.p) == KERR_UNSUPPORTED_VERSION;
    if (too_new && asked > 0) {
        link_ask_versions(l, 0);
    } else if (wire_decode(&wire_api_versions_response, asked, body, &a, &r) < 0 ||
               r.error_code != KERR_NONE) {
        link_fail(l, "the answer to ApiVersions cannot be read");
    } else {
        link_take_versions(l, &r);
        link_on_ready(l);
    }
}

/* ---- the connection ---- */
static void link_on_answer(struct link *l, struct rcbuf *frame)
{
    struct client_call_state *s = TAILQ_FIRST(&l->sent);
    int32_t id;
    struct slice body;
    if (s == NULL ||
        wire_response_header_read(s->response->api_key, s->version, slice_of(frame->p, frame->n), &id,
                                  &body) < 0 ||
        id != s->correlation_id) {
        link_fail(l, "an answer to no request of ours");
        return;
    }
    struct broker *b = l->broker;
    bool parks = l->parks;
    call_move(s, CALL_ENDING, NULL);
    if (parks)
        broker_poll_is_free(b, l);
    call_answered(s, frame, body);
}

/* A broker is there; the next answer is waited for from now on. */
static void link_heard(struct link *l)
{
    const struct call_list *sent = &l->broker->main.sent;
    l->c->heard_ms = l->heard_ms = loop_now_ms(l->c->loop);
    l->broker->silent = false;
    l->c->missing_since_ms = TAILQ_EMPTY(sent) || (l == &l->broker->main && TAILQ_NEXT(TAILQ_FIRST(sent), entry) == NULL)
                                 ? 0
                                 : loop_now_ms(l->c->loop);
}

int64_t client_missing_since_ms(const struct client *c)
{
    return c->missing_since_ms;
}

int64_t client_heard_ms(const struct client *c)
{
    return c->heard_ms;
}

static void link_on_frame(struct conn *conn, struct rcbuf *frame)
{
    struct link *l = conn_user(conn);
    link_heard(l);
    if (l->state == LINK_ASKING_VERSIONS)
        link_on_versions(l, slice_of(frame->p, frame->n));
    else
        link_on_answer(l, frame);
    rcbuf_unref(frame);
}

static void link_connect_next(struct link *l);

static void link_on_closed(struct conn *conn, const char *why)
{
    struct link *l = conn_user(conn);
    l->conn = NULL;
    if (l->state == LINK_CONNECTING && l->next_address < l->n_addresses)
        link_connect_next(l);
    else
        link_fail(l, why);
}

static void link_on_connected(struct conn *conn)
{
    struct link *l = conn_user(conn);
    link_move(l, LINK_ASKING_VERSIONS);
    link_ask_versions(l, API_VERSIONS_NEWEST);
}

static void link_connect_next(struct link *l)
{
    static const struct conn_ops ops = {
        .frame = link_on_frame,
        .closed = link_on_closed,
        .connected = link_on_connected,
    };
    struct conn_limits limits = {
        .frame_max = l->c->cfg.frame_max,
        .idle_ms = LINK_IDLE_MS,
        .sndbuf = -1,
        .rcvbuf = -1,
    };
    const struct sockaddr_storage *sa = &l->addresses[l->next_address++];
    unsigned n = sa->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    link_move(l, LINK_CONNECTING);
    l->conn = conn_connect(l->c->loop, (const struct sockaddr *)sa, n, &ops, &limits, l);
}

static void link_on_resolved(void *arg, struct addrinfo *list, const char *err)
{
    struct link_resolving *r = arg;
    struct link *l = r->l;
    free(r);
    if (l == NULL)
        return;
    l->resolving = NULL;
    for (; list != NULL && l->n_addresses < LINK_ADDRESSES_MAX; list = list->ai_next) {
        if (list->ai_family == AF_INET || list->ai_family == AF_INET6)
            memcpy(&l->addresses[l->n_addresses++], list->ai_addr, list->ai_addrlen);
    }
    if (l->n_addresses == 0)
        link_fail(l, err != NULL ? err : "the name has no address");
    else
        link_connect_next(l);
}

static void link_open(struct link *l)
{
    char port[12];
    snprintf(port, sizeof port, "%d", l->broker->port);
    link_move(l, LINK_RESOLVING);
    l->next_correlation_id = 0;
    timer_set(l->c->loop, &l->timer, loop_now_ms(l->c->loop) + LINK_SETUP_MS);
    l->resolving = xcalloc(1, sizeof *l->resolving);
    l->resolving->l = l;
    resolve(l->c->workers, l->c->loop, l->broker->host, port, link_on_resolved, l->resolving);
}

void link_add(struct link *l, struct client_call_state *s)
{
    link_asked(l);
    if (l->state == LINK_READY) {
        link_send(l, s);
        return;
    }
    s->link = l;
    call_move(s, CALL_QUEUED, &l->queued);
    if (l->state == LINK_IDLE)
        link_open(l);
}
