/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition of a producer: the queue of batches, what is in flight, answers and recovery; the
 * rules are in producer_int.h. On the client's loop.
 *
 * A failure of any kind sets `recovering`: nothing new is sent until all that is in flight has come
 * back. Then batches that may be in the log are sent again as they are, and the broker tells the
 * duplicates; after them numbers are put right (P3), and the queue goes on in its order.
 */
#include <errno.h>
#include <stdio.h>

#include "lib/base/check.h"
#include "lib/client/client_int.h"
#include "lib/client/producer_int.h"

enum {
    LIMIT_KEPT_MS = 60000,
    REPLICAS_TIMEOUT_MS = 30000,
    PRODUCE_BY_NAME = 12, /* the last version that names topics */
};

static int64_t flow_now(const struct flow *f)
{
    return loop_now_ms(f->p->c->loop);
}

static void flow_on_timer(struct timer *t)
{
    flow_stir(container_of(t, struct flow, timer));
}

static struct flow *flow_new(struct producer *p, const struct producer_send *s, const char *key)
{
    struct flow *f = xcalloc(1, sizeof *f);
    f->p = p;
    f->topic = xstrdup(s->topic);
    f->topic_id = s->topic_id;
    f->partition = s->partition;
    f->key = xstrdup(key);
    f->producer_id = -1;
    f->epoch = -1;
    f->renumber_from = INT32_MAX;
    f->limit_bytes = SIZE_MAX;
    f->timer.cb = flow_on_timer;
    TAILQ_INIT(&f->queue);
    HASH_ADD_KEYPTR(hh, p->flows, f->key, strlen(f->key), f);
    return f;
}

struct flow *flow_of(struct producer *p, const struct producer_send *s)
{
    char key[300], id[UUID_TEXT_LEN + 1];
    struct flow *f;
    uuid_text(&s->topic_id, id);
    snprintf(key, sizeof key, "%d/%s/%s", s->partition, s->topic, id);
    HASH_FIND_STR(p->flows, key, f);
    return f != NULL ? f : flow_new(p, s, key);
}

void flow_free(struct flow *f)
{
    KCHECK(TAILQ_EMPTY(&f->queue));
    HASH_DEL(f->p->flows, f);
    if (f->dirty)
        TAILQ_REMOVE(&f->p->dirty, f, entry);
    timer_clear(f->p->c->loop, &f->timer);
    free(f->topic);
    free(f->key);
    free(f->last_text);
    free(f);
}

void flow_stir(struct flow *f)
{
    if (!f->dirty) {
        f->dirty = true;
        TAILQ_INSERT_TAIL(&f->p->dirty, f, entry);
    }
    producer_stir(f->p);
}

/* ---- ends of batches ---- */
/* Leaves the queue. Its numbers are free again, or burnt if it may be in the log. */
static void batch_remove(struct pbatch *b)
{
    struct flow *f = b->flow;
    TAILQ_REMOVE(&f->queue, b, entry);
    b->n_spans = 0;
    batch_free(b);
    flow_stir(f);
}

static void batch_committed(struct pbatch *b, int64_t offset)
{
    for (int i = 0; i < b->n_spans; i++) {
        span_committed(&b->spans[i], offset);
        offset += offset >= 0 ? b->spans[i].n : 0;
    }
    batch_remove(b);
}

static void flow_free_numbers(struct flow *f, const struct pbatch *b)
{
    f->recovering = true;
    if (b->sequence < 0)
        return;
    if (b->maybe_written)
        f->needs_epoch = true;
    else
        f->renumber_from = MIN(f->renumber_from, b->sequence);
}

void batch_fail(struct pbatch *b, int rc, enum kerr err, struct kstr text)
{
    flow_free_numbers(b->flow, b);
    for (int i = 0; i < b->n_spans; i++)
        span_failed(&b->spans[i], rc, err, text);
    batch_remove(b);
}

void flow_cut(struct flow *f, struct pbatch *b, int32_t piece, bool by_span)
{
    flow_free_numbers(f, b);
    batch_cut(b, piece, by_span);
    flow_stir(f);
}

/* ---- answers ---- */
/* All that was in flight fails together: that is one step of the back-off, not five. */
static void flow_retry(struct flow *f, enum kerr err, struct kstr text)
{
    if (!f->recovering || f->retry_at_ms <= flow_now(f))
        f->retry_at_ms = flow_now(f) + client_backoff_ms(f->p->c, f->attempts++);
    f->recovering = true;
    free(f->last_text);
    f->last_text = kstr_is_null(text) ? NULL : kstr_dup(text);
    f->last_err = err;
    flow_stir(f);
}

/* The numbers do not fit. Behind a batch that failed that is as it must be; at the head of the queue the
 * broker has lost what it knew of us, and only a new epoch helps. */
static void flow_out_of_order(struct pbatch *b)
{
    struct flow *f = b->flow;
    bool explained = b != TAILQ_FIRST(&f->queue) || f->needs_epoch || f->renumber_from != INT32_MAX;
    if (!explained)
        f->needs_epoch = true;
    flow_retry(f, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, KSTR_NULL);
}

static void flow_lost_identity(struct pbatch *b, bool doubtful, enum kerr err, struct kstr text)
{
    struct flow *f = b->flow;
    if (doubtful) {
        b->maybe_written = true; /* nobody can tell any more: a copy would be worse than an error */
        batch_fail(b, -kerr_errno(err), err, text);
        return;
    }
    f->needs_epoch = true;
    if (err != KERR_UNKNOWN_PRODUCER_ID && f->producer_id == f->p->id && f->epoch == f->p->epoch)
        producer_renew(f->p, true);
    flow_retry(f, err, text);
}

static void flow_too_large(struct pbatch *b, enum kerr err, struct kstr text)
{
    struct flow *f = b->flow;
    if (b->count == 1) {
        batch_fail(b, -EMSGSIZE, err, text);
        return;
    }
    f->limit_bytes = MAX(b->plain_bytes / 2, (size_t)1024);
    f->limit_until_ms = flow_now(f) + LIMIT_KEPT_MS;
    flow_cut(f, b, (b->count + 1) / 2, false);
}

/* The protocol has one code for every trouble with a disk; a full one, which no retry soon helps, shows in the broker's
 * words only (Produce v8 and later). */
static bool disk_is_full(enum kerr err, struct kstr text)
{
    return err == KERR_KAFKA_STORAGE_ERROR && kstr_eqz(text, strerror(ENOSPC));
}

/* Brokers look for a duplicate after most of what they refuse a batch for. Only these tell that an earlier copy is
 * not in the log. */
static bool tells_absence(enum kerr err, struct kstr text)
{
    return err == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER || disk_is_full(err, text);
}

/* Sending it again is in vain: it would have to be changed or left out, which is right only when it was not written before. */
static bool is_final(enum kerr err)
{
    return err == KERR_MESSAGE_TOO_LARGE || err == KERR_RECORD_LIST_TOO_LARGE || err == KERR_INVALID_RECORD ||
           err == KERR_INVALID_TIMESTAMP;
}

static void flow_refused(struct pbatch *b, enum kerr err, struct kstr text)
{
    bool doubtful = b->maybe_written;
    /* A disk that fails may do so behind the append, in the sync that was to make it last. */
    bool late = err == KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND || err == KERR_REQUEST_TIMED_OUT ||
                (err == KERR_KAFKA_STORAGE_ERROR && !disk_is_full(err, text));
    b->maybe_written = late ||
                       (doubtful && !tells_absence(err, text));
    if (doubtful && is_final(err)) {
        batch_fail(b, -kerr_errno(err), err, text);
        return;
    }
    switch (err) {
    case KERR_MESSAGE_TOO_LARGE:
    case KERR_RECORD_LIST_TOO_LARGE:
        flow_too_large(b, err, text);
        return;
    case KERR_INVALID_RECORD:
    case KERR_INVALID_TIMESTAMP:
        if (b->n_spans > 1) { /* the sends that are all right do not suffer with the one that is not */
            flow_cut(b->flow, b, INT32_MAX, true);
            return;
        }
        break;
    case KERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
        flow_out_of_order(b);
        return;
    case KERR_UNKNOWN_PRODUCER_ID:
    case KERR_INVALID_PRODUCER_EPOCH:
    case KERR_PRODUCER_FENCED:
    case KERR_INVALID_PRODUCER_ID_MAPPING:
        flow_lost_identity(b, doubtful, err, text);
        return;
    default:
        break;
    }
    if (disk_is_full(err, text)) {
        batch_fail(b, -ENOSPC, err, text);
        return;
    }
    bool again = kerr_retriable(err) && (producer_is_idempotent(b->flow->p) || !b->maybe_written);
    if (again)
        flow_retry(b->flow, err, text);
    else
        batch_fail(b, -kerr_errno(err), err, text);
}

static const struct produce_response_partition_responses *produce_partition(const struct produce_response *r)
{
    bool one = r->n_responses == 1 && r->responses[0].n_partition_responses == 1;
    return one ? &r->responses[0].partition_responses[0] : NULL;
}

static enum kerr batch_judge(struct client_call *call, int16_t version, const void *response)
{
    (void)call;
    (void)version;
    const struct produce_response_partition_responses *pr = produce_partition(response);
    return pr != NULL ? (enum kerr)pr->error_code : KERR_NONE;
}

static void batch_answered(struct pbatch *b, const struct produce_response *r)
{
    struct flow *f = b->flow;
    const struct produce_response_partition_responses *pr = r != NULL ? produce_partition(r) : NULL;
    enum kerr err = r == NULL    ? KERR_NONE
                    : pr == NULL ? KERR_UNKNOWN_SERVER_ERROR
                                 : (enum kerr)pr->error_code;
    if (err != KERR_NONE && err != KERR_DUPLICATE_SEQUENCE_NUMBER) {
        flow_refused(b, err, pr != NULL ? pr->error_message : KSTR_NULL);
        return;
    }
    f->attempts = 0;
    f->is_known = true;
    f->last_err = KERR_NONE;
    free(f->last_text);
    f->last_text = NULL;
    batch_committed(b, r == NULL || err != KERR_NONE ? -1 : pr->base_offset);
}

static void batch_on_end(struct client_call *call, int rc, enum kerr err, int16_t version,
                         const void *response)
{
    (void)version;
    struct pbatch *b = container_of(call, struct pbatch, call);
    struct flow *f = b->flow;
    b->in_flight = false;
    f->in_flight--;
    bool sent = client_call_was_sent(call);
    b->was_sent |= sent;
    flow_stir(f);
    if (rc == 0) {
        batch_answered(b, response);
        return;
    }
    b->maybe_written |= sent;
    if (rc == -EPIPE && producer_is_idempotent(f->p))
        flow_retry(f, KERR_NETWORK_EXCEPTION, KSTR_NULL);
    else
        batch_fail(b, rc == -EPIPE ? -EIO : rc, err != KERR_NONE ? err : f->last_err, kstr_of(f->last_text));
}

/* ---- sending ---- */
static void batch_call(struct pbatch *b)
{
    struct flow *f = b->flow;
    struct producer *p = f->p;
    b->partition = (struct produce_request_partition_data){
        .index = f->partition,
        .records = { .p = NULL, .n = (int32_t)b->bytes->n, .ext = b->bytes },
    };
    b->topic = (struct produce_request_topic_data){
        .name = kstr_of(f->topic),
        .topic_id = f->topic_id,
        .partition_data = &b->partition,
        .n_partition_data = 1,
    };
    b->body = (struct produce_request){
        .transactional_id = KSTR_NULL,
        .acks = p->cfg.acks,
        .timeout_ms = (int32_t)MIN(p->cfg.delivery_timeout_ms, (int64_t)REPLICAS_TIMEOUT_MS),
        .topic_data = &b->topic,
        .n_topic_data = 1,
    };
    b->call = (struct client_call){
        .target = TARGET_LEADER,
        .topic = f->topic,
        .topic_id = f->topic_id,
        .partition = f->partition,
        .request = &wire_produce_request,
        .body = &b->body,
        .max_version = uuid_is_zero(&f->topic_id) ? PRODUCE_BY_NAME : -1,
        .deadline_ms = b->born_ms + p->cfg.delivery_timeout_ms,
        .once = true,
        .no_reply = p->cfg.acks == 0,
        .judge = batch_judge,
        .cb = batch_on_end,
    };
    b->in_flight = true;
    f->in_flight++;
    client_call(p->c, &b->call);
}

static void batch_send(struct pbatch *b)
{
    int rc = b->bytes == NULL ? batch_seal(b) : 0;
    if (rc < 0)
        batch_fail(b, rc, KERR_NONE, KSTR_NULL);
    else
        batch_call(b);
}

void flow_take_back(struct flow *f, struct pbatch *b)
{
    KCHECK(b->in_flight && !client_call_was_sent(&b->call));
    client_cancel(f->p->c, &b->call);
    b->in_flight = false;
    f->in_flight--;
    f->recovering = true;
    flow_stir(f);
}

/* ---- recovery ---- */
static bool batch_has_failed_send(const struct pbatch *b)
{
    for (int i = 0; i < b->n_spans; i++) {
        if (b->spans[i].s->failed)
            return true;
    }
    return false;
}

static bool flow_has_failed_send(const struct flow *f)
{
    const struct pbatch *b;
    TAILQ_FOREACH (b, &f->queue, entry) {
        if (batch_has_failed_send(b))
            return true;
    }
    return false;
}

/* P4: a send of several batches one of which failed takes no further part. */
static void flow_drop_failed_sends(struct flow *f)
{
    struct pbatch *b = TAILQ_FIRST(&f->queue), *next;
    for (; b != NULL; b = next) {
        next = TAILQ_NEXT(b, entry);
        if (batch_has_failed_send(b))
            flow_cut(f, b, INT32_MAX, false);
    }
}

/* Numbers all batches that had numbers, and what stands before them in the queue, from next_sequence on. */
static void flow_renumber(struct flow *f)
{
    struct pbatch *b, *last = NULL, *next;
    TAILQ_FOREACH (b, &f->queue, entry) {
        if (b->bytes != NULL)
            last = b;
    }
    for (b = last != NULL ? TAILQ_FIRST(&f->queue) : NULL; b != NULL; b = next) {
        next = b != last ? TAILQ_NEXT(b, entry) : NULL;
        int rc = 0;
        if (b->bytes != NULL)
            batch_renumber(b);
        else
            rc = batch_seal(b);
        if (rc < 0)
            batch_fail(b, rc, KERR_NONE, KSTR_NULL);
    }
    f->renumber_from = INT32_MAX;
}

/* P1: a broker takes any number from a producer that it does not know, so that of several unanswered batches the second could
 * be in the log, and the first, refused for a reason that passes, come behind it. */
static int flow_flight_max(const struct flow *f)
{
    if (!producer_is_idempotent(f->p))
        return f->p->cfg.acks == 0 ? INT32_MAX : 1;
    return f->is_known ? FLIGHT_MAX : 1;
}

static void flow_adopt_id(struct flow *f)
{
    f->is_known = f->is_known && f->producer_id == f->p->id;
    f->producer_id = f->p->id;
    f->epoch = f->p->epoch;
    f->next_sequence = 0;
    f->needs_epoch = false;
    flow_renumber(f);
}

/* P3: sends again what may be in the log, as it is. True when there was any. */
static bool flow_settle_doubts(struct flow *f)
{
    bool any = false;
    struct pbatch *b;
    TAILQ_FOREACH (b, &f->queue, entry) {
        if (b->maybe_written && f->in_flight < flow_flight_max(f)) {
            any = true;
            batch_call(b);
        }
    }
    return any;
}

/* True when there is an epoch to number with that the broker has not seen here. */
static bool flow_renew_epoch(struct flow *f)
{
    struct producer *p = f->p;
    bool current = f->producer_id == p->id && f->epoch == p->epoch;
    if (current && p->id_state == ID_KNOWN)
        producer_renew(p, false);
    if (!producer_need_id(p))
        return false;
    flow_adopt_id(f);
    return true;
}

/* True when the queue may go on in its order; false when answers, or an epoch, have to come first. */
static bool flow_recover(struct flow *f)
{
    if (f->in_flight > 0 || f->retry_at_ms > flow_now(f))
        return false;
    bool change = f->needs_epoch || f->renumber_from != INT32_MAX || flow_has_failed_send(f);
    if (change && flow_settle_doubts(f))
        return false;
    flow_drop_failed_sends(f);
    if (f->needs_epoch) {
        if (!flow_renew_epoch(f))
            return false;
    } else if (f->renumber_from != INT32_MAX) {
        f->next_sequence = f->renumber_from;
        flow_renumber(f);
    }
    f->recovering = false;
    return true;
}

/* ---- the pump ---- */
static void flow_expire(struct flow *f)
{
    int64_t born_before = flow_now(f) - f->p->cfg.delivery_timeout_ms;
    struct pbatch *b = TAILQ_FIRST(&f->queue), *next;
    for (; b != NULL; b = next) {
        next = TAILQ_NEXT(b, entry);
        if (!b->in_flight && b->born_ms <= born_before)
            batch_fail(b, -ETIMEDOUT, f->last_err, kstr_of(f->last_text));
    }
}

static bool batch_is_due(const struct pbatch *b, int64_t now)
{
    int64_t linger_ms = b->flow->p->cfg.linger_ms;
    return !b->open || b->flush || b->born_ms + linger_ms <= now;
}

static void flow_arm(struct flow *f)
{
    int64_t due = INT64_MAX, now = flow_now(f);
    struct pbatch *b;
    TAILQ_FOREACH (b, &f->queue, entry) {
        if (b->in_flight)
            continue;
        due = MIN(due, b->born_ms + f->p->cfg.delivery_timeout_ms);
        if (f->retry_at_ms > now)
            due = MIN(due, f->retry_at_ms);
        else if (!batch_is_due(b, now))
            due = MIN(due, b->born_ms + f->p->cfg.linger_ms);
        break; /* those behind it are younger */
    }
    if (due == INT64_MAX)
        timer_clear(f->p->c->loop, &f->timer);
    else if (!timer_is_set(&f->timer) || f->timer.due_ms != due)
        timer_set(f->p->c->loop, &f->timer, due);
}

static void flow_send_queue(struct flow *f)
{
    int max = flow_flight_max(f);
    int64_t now = flow_now(f);
    struct pbatch *b = TAILQ_FIRST(&f->queue), *next;
    for (; b != NULL && f->in_flight < max && !f->recovering; b = next) {
        next = TAILQ_NEXT(b, entry);
        if (b->in_flight)
            continue;
        if (!batch_is_due(b, now))
            break;
        batch_send(b);
    }
}

void flow_pump(struct flow *f)
{
    flow_expire(f);
    bool ready = !TAILQ_EMPTY(&f->queue) || f->recovering;
    if (ready && producer_is_idempotent(f->p)) {
        ready = producer_need_id(f->p);
        if (ready && f->producer_id < 0)
            flow_adopt_id(f);
    }
    if (ready && f->recovering)
        ready = flow_recover(f);
    if (ready && f->retry_at_ms <= flow_now(f))
        flow_send_queue(f);
    flow_arm(f);
}
