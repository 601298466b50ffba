/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's answer: encoded at once, kept until it is its turn, sent without a copy. On the session's
 * loop. A piece of a log in the answer is a plog_span: its bytes go by sendfile, and the span is
 * released when they are out or the connection is gone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/server/server_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/plog.h"

struct request *request_new(struct session *s, struct rcbuf *frame)
{
    struct request *r = xcalloc(1, sizeof *r);
    r->services = s->reactor->server->deps.services;
    r->session = s;
    r->loop = s->reactor->loop;
    r->frame = frame;
    r->received_ms = loop_now_ms(r->loop);
    arena_init(&r->arena);
    figures_began(r);
    return r;
}

void request_free(struct request *r)
{
    KCHECK(r->n_gaps == 0);
    counter_add(&r->session->reactor->figures.ended, 1);
    free(r->gaps);
    rcbuf_unref(r->reply);
    rcbuf_unref(r->frame);
    arena_done(&r->arena);
    free(r);
}

/* ---- sending ---- */
static void span_sent(void *owner)
{
    plog_span_release(owner);
    free(owner);
}

static void send_gap(struct conn *c, const struct wire_gap *gap)
{
    struct plog_span *span = gap->ext;
    KCHECK(span->n == gap->n);
    struct plog_span *owner = xmalloc(sizeof *owner);
    *owner = *span; /* the reference moves */
    conn_send_file(c, segfile_fd(owner->file), owner->at, owner->n, span_sent, owner);
}

static void drop_gaps(struct request *r)
{
    for (size_t i = 0; i < r->n_gaps; i++)
        plog_span_release(r->gaps[i].ext);
    r->n_gaps = 0;
}

void request_send(struct request *r, struct conn *c)
{
    if (r->reply == NULL || c == NULL) {
        drop_gaps(r);
        return;
    }
    size_t at = 0;
    for (size_t i = 0; i < r->n_gaps; i++) {
        conn_send(c, r->reply, at, r->gaps[i].at - at);
        at = r->gaps[i].at;
        send_gap(c, &r->gaps[i]);
    }
    conn_send(c, r->reply, at, r->reply->n - at);
    r->n_gaps = 0;
}

/* ---- ending ---- */
static void request_end(struct request *r)
{
    KCHECK(!r->ended);
    r->ended = true;
    figures_answered(r);
    r->cancel = r->finish = NULL;
    session_ended(r->session, r);
}

static void request_take_output(struct request *r, struct wire_out *out)
{
    wire_frame_close(out);
    r->reply = rcbuf_take(&out->b);
    r->gaps = take(&out->gaps);
    r->n_gaps = out->n_gaps;
    out->n_gaps = 0;
    wire_out_done(out);
}

bool request_answer_room(struct request *r, size_t n)
{
    if (n > REQUEST_ANSWER_BYTES_MAX - r->answer_bytes || !arena_try_reserve(&r->arena, n))
        return false;
    r->answer_bytes += n;
    return true;
}

/* What was asked for came out too large, or with a string that the version has no room for: the client is told by
 * losing its connection, and nobody else notices. */
static void request_cannot_answer(struct request *r, int rc, const char *field)
{
    char why[160];
    if (rc == -EMSGSIZE)
        snprintf(why, sizeof why, "the answer to its %s request would pass %d bytes", r->api->name,
                 REQUEST_ANSWER_BYTES_MAX);
    else if (rc == -ENOMEM)
        snprintf(why, sizeof why, "there is no memory for the answer to its %s request", r->api->name);
    else
        snprintf(why, sizeof why, "the answer to its %s request of version %d cannot carry %s", r->api->name,
                 r->api_version, field == NULL ? "a field" : field);
    if (r->unsent != NULL)
        r->unsent(r);
    request_close(r, why);
}

/* Any thread. 0, or why not, as wire_encode says it; *out is then empty. */
static int request_encode(const struct request *r, const void *response, struct wire_out *out,
                          const char **ret_field)
{
    *out = (struct wire_out){ .max_bytes = REQUEST_ANSWER_BYTES_MAX };
    wire_response_header_write(r->api_key, r->api_version, r->correlation_id, out);
    int rc = wire_encode(r->api->response, r->api_version, response, out, ret_field);
    if (rc == 0 && out->b.n + out->gap_bytes > INT32_MAX)
        rc = -EMSGSIZE;
    if (rc == 0)
        figures_errors(r, response);
    if (rc < 0)
        wire_out_done(out);
    return rc;
}

static void request_reply_encoded(struct request *r, int rc, struct wire_out *out, const char *field)
{
    if (rc < 0) {
        request_cannot_answer(r, rc, field);
        return;
    }
    request_take_output(r, out);
    request_end(r);
}

void request_reply(struct request *r, const void *response)
{
    struct wire_out out;
    const char *field = NULL;
    int rc = request_encode(r, response, &out, &field);
    request_reply_encoded(r, rc, &out, field);
}

/* ---- answers that take long ---- */
struct long_answer {
    struct request *r;
    struct job job;
    request_answerer *answer;
    const char *why; /* there is none */
    struct wire_out out;
    int rc; /* of encoding it */
    const char *field;
};

static void long_answer_run(struct job *j)
{
    struct long_answer *la = container_of(j, struct long_answer, job);
    const void *response = la->answer(la->r, &la->why);
    if (response != NULL)
        la->rc = request_encode(la->r, response, &la->out, &la->field);
}

static void long_answer_done(struct job *j)
{
    struct long_answer *la = container_of(j, struct long_answer, job);
    la->r->session->n_long--;
    if (la->why != NULL)
        request_close(la->r, la->why);
    else
        request_reply_encoded(la->r, la->rc, &la->out, la->field);
}

void request_answer_on_worker(struct request *r, size_t bytes, request_answerer *answer)
{
    session_charge(r->session, r, bytes);
    r->session->n_long++;
    struct long_answer *la = arena_alloc(&r->arena, sizeof *la);
    la->r = r;
    la->answer = answer;
    la->job = (struct job){ .run = long_answer_run, .done = long_answer_done, .loop = r->loop };
    workers_submit(r->session->reactor->server->deps.workers, &la->job);
}

void request_hold(struct request *r)
{
    KCHECK(r->cancel == NULL);
    r->session->n_long++;
}

void request_release(struct request *r)
{
    r->session->n_long--;
    session_released(r->session);
}

void request_answer(struct request *r, bool is_long, size_t bytes, request_answerer *answer)
{
    const char *why = NULL;

    if (is_long) {
        request_answer_on_worker(r, bytes, answer);
        return;
    }
    const void *response = answer(r, &why);
    if (response != NULL)
        request_reply(r, response);
    else
        request_close(r, why);
}

void request_reply_raw(struct request *r, struct bytebuf *body)
{
    struct wire_out out = { 0 };
    wire_response_header_write(r->api_key, 0, r->correlation_id, &out);
    bytebuf_add(&out.b, body->p, body->n);
    bytebuf_done(body);
    request_take_output(r, &out);
    request_end(r);
}

void request_reply_none(struct request *r)
{
    request_end(r);
}

void request_drop(struct request *r)
{
    KCHECK(r->session->conn == NULL);
    session_forget(r->session, r);
}

void request_close(struct request *r, const char *why)
{
    struct session *s = r->session;
    r->cancel = r->finish = NULL;
    session_close(s, why);
    session_forget(s, r);
}

/* ---- what it knows of its client ---- */
bool request_client_is_klog(const struct request *r)
{
    return r->session->is_klog;
}

void request_client_software(struct request *r, struct kstr name, struct kstr version)
{
    log_debug("%s: client software %.*s %.*s", request_peer(r), KSTR_FMT(name), KSTR_FMT(version));
    r->session->is_klog = kstr_eqz(name, "klog") || kstr_eqz(name, "klogfs");
}

const char *request_peer(const struct request *r)
{
    return r->session->conn == NULL ? "(gone)" : conn_peer(r->session->conn);
}

/* An IPv4 client on an IPv6 socket reached us at an IPv4 address: say it as one. */
static const char *plain_address(const char *host)
{
    return strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.') != NULL ? host + 7 : host;
}

const char *request_listener_name(const struct request *r)
{
    return r->session->listener->conf->name;
}

void request_listener(struct request *r, const char **ret_host, int32_t *ret_port)
{
    const struct listener *l = r->session->listener;
    *ret_port = l->conf->advertised_port > 0 ? l->conf->advertised_port : l->port;
    *ret_host = l->conf->advertised_host;
    if (*ret_host != NULL)
        return;
    char host[64] = "";
    if (r->session->conn != NULL)
        conn_local_address(r->session->conn, host, sizeof host);
    *ret_host = arena_strdup(&r->arena, host[0] == '\0' ? "127.0.0.1" : plain_address(host));
}
