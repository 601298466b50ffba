/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producer's face: sends go into batches here and end here; and the producer's id. On the
 * client's loop.
 *
 * Work is done in `turn`, at the end of the round: all sends of a round share a batch, and no cb runs
 * from inside producer_send.
 */
#include "lib/client/producer.h"

#include <errno.h>

#include "lib/base/check.h"
#include "lib/client/client_int.h"
#include "lib/client/producer_int.h"

enum {
    ASK_TIMEOUT_MS = 30000,
    RECORD_OVERHEAD = 40, /* of a record at most, without its bytes: varints of lengths, offset and time */
    HEADER_OVERHEAD = 10,
};

/* ---- ends of sends ---- */
static void send_free(struct producer_send_state *s)
{
    free(s->text);
    free(s);
}

/* A span is over; with the last one so is the send. */
static void span_over(struct span *sp)
{
    struct producer_send_state *s = sp->s;
    KCHECK(s->n_spans > 0);
    if (--s->n_spans > 0)
        return;
    if (s->send == NULL) {
        send_free(s);
        return;
    }
    TAILQ_INSERT_TAIL(&s->p->done, s, entry);
    producer_stir(s->p);
}

void span_committed(struct span *sp, int64_t offset)
{
    struct producer_send_state *s = sp->s;
    if (sp->send_first == 0)
        s->offset = offset;
    if (sp->send_first == s->n_committed)
        s->n_committed += sp->n;
    span_over(sp);
}

void span_failed(struct span *sp, int rc, enum kerr err, struct kstr text)
{
    struct producer_send_state *s = sp->s;
    if (!s->failed) {
        s->failed = true;
        s->rc = rc;
        s->err = err;
        s->text = kstr_is_null(text) ? NULL : kstr_dup(text);
    }
    span_over(sp);
}

void span_dropped(struct span *sp)
{
    span_over(sp);
}

static void send_end(struct producer_send_state *s)
{
    struct producer_send *send = s->send;
    send->state = NULL;
    int32_t n_committed = s->failed ? s->n_committed : s->n_records;
    send->cb(send, s->rc, s->err, s->offset, n_committed, s->text != NULL ? s->text : "");
    send_free(s);
}

static void producer_end_done(struct producer *p)
{
    struct producer_send_state *s;
    while ((s = TAILQ_FIRST(&p->done)) != NULL) {
        TAILQ_REMOVE(&p->done, s, entry);
        send_end(s);
    }
}

/* ---- turns ---- */
void producer_stir(struct producer *p)
{
    loop_defer(p->c->loop, &p->turn);
}

static void producer_turn(struct deferred *d)
{
    struct producer *p = container_of(d, struct producer, turn);
    struct flow *f;
    producer_end_done(p);
    while ((f = TAILQ_FIRST(&p->dirty)) != NULL) {
        TAILQ_REMOVE(&p->dirty, f, entry);
        f->dirty = false;
        flow_pump(f);
    }
}

/* ---- the id ---- */
static void producer_refuse_all(struct producer *p, int rc, enum kerr err)
{
    struct flow *f, *tmp;
    HASH_ITER (hh, p->flows, f, tmp) {
        struct pbatch *b = TAILQ_FIRST(&f->queue), *next;
        for (; b != NULL; b = next) {
            next = TAILQ_NEXT(b, entry);
            if (!b->in_flight)
                batch_fail(b, rc, err, KSTR_NULL);
        }
    }
}

static void producer_stir_all(struct producer *p)
{
    struct flow *f, *tmp;
    HASH_ITER (hh, p->flows, f, tmp)
        flow_stir(f);
}

static enum kerr ask_judge(struct client_call *call, int16_t version, const void *response)
{
    (void)call;
    (void)version;
    return (enum kerr)((const struct init_producer_id_response *)response)->error_code;
}

static void ask_on_end(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    (void)version;
    struct producer *p = container_of(call, struct producer, ask);
    const struct init_producer_id_response *r = response;
    p->id_state = ID_NONE;
    if (p->ends)
        return;
    bool bump = p->ask_body.producer_id >= 0;
    if (rc == 0 && r->error_code == KERR_NONE) {
        p->id = r->producer_id;
        p->epoch = r->producer_epoch;
        p->fresh_id = false;
        p->id_state = ID_KNOWN;
    } else if (bump && rc != -ETIMEDOUT) {
        p->fresh_id = true; /* a broker before version 3, or one that does not know the id any more */
    } else if (rc == 0) {
        producer_refuse_all(p, -kerr_errno(r->error_code), (enum kerr)r->error_code);
    } else if (rc != -ETIMEDOUT) {
        producer_refuse_all(p, rc, err);
    }
    producer_stir_all(p);
}

static void producer_ask(struct producer *p)
{
    wire_defaults(&wire_init_producer_id_request, &p->ask_body);
    p->ask_body.transactional_id = KSTR_NULL;
    p->ask_body.transaction_timeout_ms = INT32_MAX;
    p->ask_body.producer_id = p->fresh_id ? -1 : p->id;
    p->ask_body.producer_epoch = p->fresh_id ? -1 : p->epoch;
    p->id_state = ID_ASKING;
    p->ask = (struct client_call){
        .target = TARGET_ANY,
        .request = &wire_init_producer_id_request,
        .body = &p->ask_body,
        .max_version = -1,
        .deadline_ms = loop_now_ms(p->c->loop) + ASK_TIMEOUT_MS,
        .judge = ask_judge,
        .cb = ask_on_end,
    };
    client_call(p->c, &p->ask);
}

bool producer_need_id(struct producer *p)
{
    if (p->id_state == ID_NONE)
        producer_ask(p);
    return p->id_state == ID_KNOWN;
}

void producer_renew(struct producer *p, bool fresh_id)
{
    if (p->id_state == ID_KNOWN)
        p->id_state = ID_NONE;
    p->fresh_id |= fresh_id;
}

/* ---- sends ---- */
static size_t record_bound(const struct producer_record *r)
{
    size_t n = RECORD_OVERHEAD + (size_t)MAX(r->key.n, 0) + (size_t)MAX(r->value.n, 0);
    for (int32_t i = 0; i < r->n_headers; i++)
        n += HEADER_OVERHEAD + (size_t)MAX(r->headers[i].key.n, 0) + (size_t)MAX(r->headers[i].value.n, 0);
    return n;
}

static size_t flow_limit(struct flow *f)
{
    if (f->limit_bytes != SIZE_MAX && f->limit_until_ms <= loop_now_ms(f->p->c->loop))
        f->limit_bytes = SIZE_MAX;
    return MIN((size_t)f->p->cfg.batch_size, f->limit_bytes);
}

/* The batch at the end of the queue if it has room for n more bytes, else a new one. */
static struct pbatch *flow_batch_for(struct flow *f, size_t n)
{
    struct pbatch *b = TAILQ_LAST(&f->queue, flow_queue);
    if (b != NULL && b->open && batch_bytes(b) + n <= flow_limit(f))
        return b;
    if (b != NULL)
        b->open = false;
    b = batch_new(f);
    b->born_ms = MIN(loop_now_ms(f->p->c->loop), f->p->began_ms);
    TAILQ_INSERT_TAIL(&f->queue, b, entry);
    return b;
}

void producer_count_from(struct producer *p, int64_t began_ms)
{
    p->began_ms = began_ms;
}

void producer_send(struct producer *p, struct producer_send *send)
{
    KCHECK(!p->ends && send->state == NULL && send->n_records > 0);
    struct flow *f = flow_of(p, send);
    struct producer_send_state *s = xcalloc(1, sizeof *s);
    s->p = p;
    s->send = send;
    s->n_records = send->n_records;
    s->offset = -1;
    send->state = s;

    /* One that fits into a batch is not torn to fill up another. */
    size_t total = 0;
    for (int32_t i = 0; i < send->n_records; i++)
        total += record_bound(&send->records[i]);
    struct pbatch *b = flow_batch_for(f, MIN(total, flow_limit(f)));
    for (int32_t i = 0; i < send->n_records; i++) {
        if (b->count > 0)
            b = flow_batch_for(f, record_bound(&send->records[i]));
        batch_add(b, s, i, &send->records[i]);
        b->flush |= send->flush;
    }
    flow_stir(f);
}

/* Nothing of s has been handed to a socket, in this attempt or an earlier one. */
static bool send_is_unsent(struct flow *f, const struct producer_send_state *s)
{
    int n = 0;
    struct pbatch *b;
    TAILQ_FOREACH (b, &f->queue, entry) {
        for (int i = 0; i < b->n_spans; i++) {
            if (b->spans[i].s != s)
                continue;
            if (b->was_sent || b->maybe_written || (b->in_flight && client_call_was_sent(&b->call)))
                return false;
            n++;
        }
    }
    return n > 0 && n == s->n_spans && s->n_committed == 0;
}

static bool batch_has(const struct pbatch *b, const struct producer_send_state *s)
{
    for (int i = 0; i < b->n_spans; i++) {
        if (b->spans[i].s == s)
            return true;
    }
    return false;
}

void producer_hurry(struct producer *p, struct producer_send *send)
{
    struct flow *f = flow_of(p, send);
    struct pbatch *b;
    TAILQ_FOREACH (b, &f->queue, entry) {
        if (batch_has(b, send->state))
            b->flush = true;
    }
    flow_stir(f);
}

bool producer_withdraw(struct producer *p, struct producer_send *send)
{
    struct producer_send_state *s = send->state;
    if (s == NULL)
        return false;
    struct flow *f = flow_of(p, send);
    if (!send_is_unsent(f, s))
        return false;
    send->state = NULL;
    s->send = NULL;
    s->failed = true;
    s->n_spans++; /* holds s until we are through */
    struct pbatch *b = TAILQ_FIRST(&f->queue), *next;
    for (; b != NULL; b = next) {
        next = TAILQ_NEXT(b, entry);
        if (!batch_has(b, s))
            continue;
        if (b->in_flight)
            flow_take_back(f, b);
        flow_cut(f, b, INT32_MAX, false);
    }
    KCHECK(s->n_spans == 1);
    send_free(s);
    return true;
}

size_t producer_pending_bytes(const struct producer *p)
{
    return p->pending_bytes;
}

/* ---- life ---- */
struct producer *producer_new(struct client *c, const struct producer_config *cfg)
{
    KCHECK(cfg->acks >= -1 && cfg->acks <= 1 && cfg->batch_size > 0 && cfg->delivery_timeout_ms > 0);
    struct producer *p = xcalloc(1, sizeof *p);
    p->c = c;
    p->began_ms = INT64_MAX;
    p->cfg = *cfg;
    p->id = -1;
    p->epoch = -1;
    p->turn.cb = producer_turn;
    TAILQ_INIT(&p->dirty);
    TAILQ_INIT(&p->done);
    return p;
}

void producer_free(struct producer *p)
{
    if (p == NULL)
        return;
    p->ends = true;
    client_cancel(p->c, &p->ask);
    struct flow *f, *tmp;
    HASH_ITER (hh, p->flows, f, tmp) {
        struct pbatch *b;
        while ((b = TAILQ_FIRST(&f->queue)) != NULL) {
            client_cancel(p->c, &b->call);
            b->in_flight = false;
            batch_fail(b, -ECANCELED, KERR_NONE, KSTR_NULL);
        }
        flow_free(f);
    }
    producer_end_done(p);
    loop_defer_cancel(p->c->loop, &p->turn);
    free(p);
}
