/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Produce: each partition's batch goes from the received frame into the log without a copy, on the thread
 * that read it. Then the request is parked until what its acks ask for has happened: acks=-1 until committed,
 * acks=1 until flushed as the topic's policy says, acks=0 not at all (an error can then only be told by
 * closing the connection).
 *
 * On the session's loop; a request that names many partitions in pieces, between which other connections get their turn.
 * Errors are a partition's own; only acks outside -1..1 concern all of them.
 */
#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/replica/partition.h"
#include "lib/base/check.h"

struct produce_part {
    struct partition *pt; /* a reference while it waits, else NULL */
    struct watcher watcher;
    int64_t last_offset;
    int32_t leader_epoch; /* in which it was appended */
    struct produce_response_partition_responses *rsp;
};

enum {
    PARTS_AT_ONCE = 1000, /* about 10 ms */
    RECORD_ERRORS_MAX = 1000, /* in a reply */
    /* A shorter wait would call timed out what is committed as soon as the disk has it, and clients would send it
     * again. */
    TIMEOUT_MIN_MS = 1000,
};

struct produce {
    struct request *r;
    struct produce_response rsp;
    int16_t acks;
    struct produce_part *waiting; /* room for every partition of the request */
    size_t n_waiting;             /* entries used; done ones have pt == NULL */
    size_t n_open;                /* of these, not done yet */
    bool failed;                  /* some partition has an error */
    int32_t n_record_errors;      /* told so far */
    int32_t at_topic, at_part;    /* of the request: what comes next */
    struct task more;
    struct task wake;
    struct timer timeout;
};

/* ---- one partition ---- */
static enum kerr part_fail(struct produce *p, struct produce_response_partition_responses *rsp, enum kerr err,
                           const char *text)
{
    rsp->error_code = (int16_t)err;
    if (text != NULL)
        rsp->error_message = kstr_of(text);
    p->failed = true;
    return err;
}

/* What the batch's frame must be before anybody looks inside (protocol.md section 3): exactly one batch of
 * format 2. */
static enum kerr records_shape(const struct wire_records *rec, int version, const char **ret_why)
{
    *ret_why = NULL;
    if (version < 3) {
        *ret_why = "message sets of format 0 and 1 are not taken; use a client that sends record batches";
        return KERR_UNSUPPORTED_FOR_MESSAGE_FORMAT;
    }
    if (rec->p == NULL || rec->n <= 0) {
        *ret_why = "there is no record batch";
        return KERR_INVALID_RECORD;
    }
    if (rec->n < BATCH_OVERHEAD)
        return KERR_CORRUPT_MESSAGE;
    if (rec->p[BATCH_MAGIC] != 2) {
        *ret_why = "the record batch is not of format 2";
        return KERR_INVALID_RECORD;
    }
    int64_t size = (int64_t)(int32_t)get_be32(rec->p + BATCH_LENGTH) + BATCH_LOG_OVERHEAD;
    if (size >= BATCH_OVERHEAD && size < rec->n) {
        *ret_why = "there is more than one record batch";
        return KERR_INVALID_RECORD;
    }
    return KERR_NONE;
}

/* The refused records are named; the others of the batch are refused with them, and clients tell the two
 * apart. However many there are, the answer stays small: beyond so many in a request only the first of each
 * batch is named. */
static void tell_record_errors(struct produce *p, struct partition *pt, struct slice batch, int32_t first,
                               const char *text, struct produce_response_partition_responses *rsp)
{
    struct batch_refusal found[RECORD_ERRORS_MAX];
    int32_t n = partition_refused(pt, batch.p, batch.n, p->r->api_version >= 7, found,
                                  RECORD_ERRORS_MAX - p->n_record_errors);
    if (n == 0)
        found[n++] = (struct batch_refusal){ first, text };
    else
        p->n_record_errors += n;
    rsp->record_errors = arena_array(&p->r->arena, (size_t)n, sizeof *rsp->record_errors);
    rsp->n_record_errors = n;
    for (int32_t i = 0; i < n; i++) {
        rsp->record_errors[i].batch_index = found[i].index;
        rsp->record_errors[i].batch_index_error_message = kstr_of(found[i].why);
    }
}

static void part_wait(struct produce *p, struct partition *pt, const struct partition_appended *a,
                      struct produce_response_partition_responses *rsp)
{
    struct produce_part *w = &p->waiting[p->n_waiting++];
    *w = (struct produce_part){
        .pt = partition_ref(pt),
        .last_offset = a->last_offset,
        .leader_epoch = a->leader_epoch,
        .rsp = rsp,
        .watcher = { .loop = p->r->loop,
                     .task = &p->wake,
                     .wake_at = a->last_offset + 1,
                     .what = p->acks == -1 ? WATCH_HW : WATCH_FLUSH },
    };
    p->n_open++;
}

static void part_appended(struct produce *p, struct partition *pt, struct slice batch,
                          const struct partition_appended *a,
                          struct produce_response_partition_responses *rsp)
{
    rsp->log_start_offset = a->start_offset;
    if (a->err != KERR_NONE) {
        part_fail(p, rsp, a->err, a->text);
        if (a->bad_index >= 0 && p->r->api_version >= 8)
            tell_record_errors(p, pt, batch, a->bad_index, a->text, rsp);
        if (a->err == KERR_NOT_LEADER_OR_FOLLOWER && p->r->api_version >= 10) {
            rsp->current_leader.leader_id = a->leader;
            rsp->current_leader.leader_epoch = a->leader_epoch;
        }
        return;
    }
    rsp->base_offset = a->base_offset;
    rsp->log_append_time_ms = a->log_append_time;
    if ((p->acks == -1 && !a->committed) || (p->acks == 1 && !a->flushed))
        part_wait(p, pt, a, rsp);
}

/* From version 13 on topics go by id. */
static struct partition *part_find(const struct produce *p, const struct produce_request_topic_data *t, int32_t index,
                                   enum kerr *ret_err)
{
    struct partitions *ps = p->r->services->partitions;
    if (p->r->api_version >= 13 && uuid_is_zero(&t->topic_id)) {
        *ret_err = KERR_UNKNOWN_TOPIC_ID;
        return NULL;
    }
    return partitions_get_named(ps, t->name, &t->topic_id, index, ret_err);
}

static void part_produce(struct produce *p, const struct produce_request_topic_data *t,
                         const struct produce_request_partition_data *q,
                         struct produce_response_partition_responses *rsp)
{
    struct request *r = p->r;
    *rsp = (struct produce_response_partition_responses){
        .index = q->index,
        .base_offset = -1,
        .log_append_time_ms = -1,
        .log_start_offset = -1,
        .error_message = KSTR_NULL,
        .current_leader = { -1, -1 },
    };
    if (p->acks < -1 || p->acks > 1) {
        part_fail(p, rsp, KERR_INVALID_REQUIRED_ACKS, NULL);
        return;
    }
    enum kerr err;
    struct partition *pt = part_find(p, t, q->index, &err);
    if (pt == NULL) {
        part_fail(p, rsp, err, NULL);
        return;
    }
    const char *why;
    err = records_shape(&q->records, r->api_version, &why);
    if (err != KERR_NONE) {
        part_fail(p, rsp, err, why);
    } else {
        struct partition_appended a;
        uint8_t *batch = r->frame->p + (q->records.p - r->frame->p);
        partition_append(pt, batch, (size_t)q->records.n, p->acks, r->api_version >= 7,
                         kstr_eqz(r->client_id, "__admin_client"), &a);
        part_appended(p, pt, slice_of(batch, (size_t)q->records.n), &a, rsp);
    }
    partition_unref(pt);
}

/* ---- all of them ---- */
static size_t count_partitions(const struct produce_request *q)
{
    size_t n = 0;
    for (int32_t i = 0; i < q->n_topic_data; i++)
        n += (size_t)q->topic_data[i].n_partition_data;
    return n;
}

static void answer_begin(struct produce *p, const struct produce_request *q)
{
    struct arena *a = &p->r->arena;
    p->rsp.n_responses = q->n_topic_data;
    p->rsp.responses = arena_array(a, (size_t)q->n_topic_data, sizeof *p->rsp.responses);
    for (int32_t i = 0; i < q->n_topic_data; i++) {
        const struct produce_request_topic_data *t = &q->topic_data[i];
        struct produce_response_responses *out = &p->rsp.responses[i];
        out->name = t->name;
        out->topic_id = t->topic_id;
        out->n_partition_responses = t->n_partition_data;
        out->partition_responses =
            arena_array(a, (size_t)t->n_partition_data, sizeof *out->partition_responses);
    }
}

/* False: there are more. */
static bool produce_some(struct produce *p)
{
    const struct produce_request *q = p->r->body;
    int32_t left = PARTS_AT_ONCE;
    for (; p->at_topic < q->n_topic_data; p->at_topic++, p->at_part = 0) {
        const struct produce_request_topic_data *t = &q->topic_data[p->at_topic];
        for (; p->at_part < t->n_partition_data; p->at_part++) {
            if (left-- == 0)
                return false;
            part_produce(p, t, &t->partition_data[p->at_part],
                         &p->rsp.responses[p->at_topic].partition_responses[p->at_part]);
        }
    }
    return true;
}

static const char *first_error(const struct produce *p)
{
    for (int32_t i = 0; i < p->rsp.n_responses; i++)
        for (int32_t k = 0; k < p->rsp.responses[i].n_partition_responses; k++) {
            const struct produce_response_partition_responses *rsp =
                &p->rsp.responses[i].partition_responses[k];
            if (rsp->error_code != KERR_NONE)
                return arena_printf(&p->r->arena, "produce with acks=0 to %.*s-%d failed: %s",
                                    KSTR_FMT(p->rsp.responses[i].name), rsp->index,
                                    kerr_name(rsp->error_code));
        }
    return "produce with acks=0 failed";
}

static void produce_answer(struct produce *p)
{
    KCHECK(p->n_open == 0);
    if (p->acks != 0)
        request_reply(p->r, &p->rsp);
    else if (p->failed)
        request_close(p->r, first_error(p));
    else
        request_reply_none(p->r);
}

/* ---- waiting ---- */
static void part_done(struct produce *p, struct produce_part *w)
{
    partition_unref(w->pt);
    w->pt = NULL;
    p->n_open--;
}

static void part_fail_waiting(struct produce *p, struct produce_part *w, enum kerr err)
{
    partition_unwatch(w->pt, &w->watcher);
    w->rsp->base_offset = -1;
    w->rsp->log_append_time_ms = -1;
    part_fail(p, w->rsp, err, NULL);
    part_done(p, w);
}

/* Either it happened what the producer waits for, or it cannot any more, or the watcher waits on. */
static void part_check(struct produce *p, struct produce_part *w)
{
    if (w->pt == NULL || partition_watch(w->pt, &w->watcher))
        return;
    struct partition_view v;
    partition_view(w->pt, &v);
    bool reached = p->acks == -1 ? v.hw > w->last_offset : v.fleo > w->last_offset;
    /* In another epoch what is there may be another's. */
    bool happened = reached && v.leader_epoch == w->leader_epoch;
    if (!happened)
        part_fail_waiting(p, w, v.err == KERR_NONE ? KERR_NOT_LEADER_OR_FOLLOWER : v.err);
    else if (p->acks == -1 && v.err == KERR_NONE && !v.has_min_isr)
        part_fail_waiting(p, w, KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    else
        part_done(p, w);
}

static void produce_end_waiting(struct produce *p)
{
    timer_clear(p->r->loop, &p->timeout);
    loop_cancel(p->r->loop, &p->wake);
    produce_answer(p);
}

static void on_wake(struct task *t)
{
    struct produce *p = container_of(t, struct produce, wake);
    for (size_t i = 0; i < p->n_waiting; i++) {
        struct produce_part *w = &p->waiting[i];
        if (w->pt == NULL)
            continue;
        partition_unwatch(w->pt, &w->watcher);
        part_check(p, w);
    }
    if (p->n_open == 0)
        produce_end_waiting(p);
}

static void on_timeout(struct timer *t)
{
    struct produce *p = container_of(t, struct produce, timeout);
    for (size_t i = 0; i < p->n_waiting; i++)
        if (p->waiting[i].pt != NULL)
            part_fail_waiting(p, &p->waiting[i], KERR_REQUEST_TIMED_OUT);
    produce_end_waiting(p);
}

static void produce_cancel(struct request *r)
{
    struct produce *p = r->op;
    for (size_t i = 0; i < p->n_waiting; i++)
        if (p->waiting[i].pt != NULL) {
            partition_unwatch(p->waiting[i].pt, &p->waiting[i].watcher);
            part_done(p, &p->waiting[i]);
        }
    timer_clear(r->loop, &p->timeout);
    loop_cancel(r->loop, &p->wake);
    request_drop(r);
}

static void produce_wait(struct produce *p, int32_t timeout_ms)
{
    for (size_t i = 0; i < p->n_waiting; i++)
        part_check(p, &p->waiting[i]);
    if (p->n_open == 0) {
        produce_answer(p);
        return;
    }
    p->r->cancel = produce_cancel;
    timer_set_in(p->r->loop, &p->timeout, MAX(timeout_ms, TIMEOUT_MIN_MS));
}

static void produce_end(struct produce *p)
{
    const struct produce_request *q = p->r->body;
    if (p->n_open == 0)
        produce_answer(p);
    else
        produce_wait(p, q->timeout_ms);
}

static void on_more(struct task *t)
{
    struct produce *p = container_of(t, struct produce, more);
    if (!produce_some(p)) {
        loop_post(p->r->loop, &p->more);
        return;
    }
    request_release(p->r);
    produce_end(p);
}

void handle_produce(struct request *r)
{
    const struct produce_request *q = r->body;
    struct produce *p = arena_alloc(&r->arena, sizeof *p);
    p->r = r;
    r->op = p;
    p->acks = q->acks;
    p->wake.cb = on_wake;
    p->timeout.cb = on_timeout;
    p->waiting = arena_array(&r->arena, count_partitions(q), sizeof *p->waiting);
    wire_defaults(&wire_produce_response, &p->rsp);
    answer_begin(p, q);
    if (produce_some(p)) {
        produce_end(p);
        return;
    }
    p->more.cb = on_more;
    request_hold(r);
    loop_post(r->loop, &p->more);
}
