/* SPDX-License-Identifier: Apache-2.0 */
/* See fakebroker.h. All on the loop's thread. */
#include "fakebroker_int.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/record/batch.h"
#include "lib/record/iter.h"

struct fake_conn {
    struct fake_broker *b;
    struct conn *conn;
    struct fake_conn *next;
};

/* ---- answers ---- */
static void held_add(struct fake_cluster *fc, struct conn *conn, struct rcbuf *answer)
{
    KCHECK(fc->n_held < FAKE_HELD);
    fc->held[fc->n_held++] = (struct fake_held){ conn, answer };
}

static void held_forget(struct fake_cluster *fc, struct conn *conn)
{
    int n = 0;
    for (int i = 0; i < fc->n_held; i++) {
        if (fc->held[i].conn == conn)
            rcbuf_unref(fc->held[i].answer);
        else
            fc->held[n++] = fc->held[i];
    }
    fc->n_held = n;
}

static bool has_held(const struct fake_cluster *fc, const struct conn *conn)
{
    for (int i = 0; i < fc->n_held; i++) {
        if (fc->held[i].conn == conn)
            return true;
    }
    return false;
}

static void send_answer(struct conn *conn, struct rcbuf *answer)
{
    conn_send(conn, answer, 0, answer->n);
    rcbuf_unref(answer);
}

void fake_release(struct fake_cluster *fc)
{
    int n = fc->n_held;
    fc->n_held = 0;
    fc->in_flight = 0;
    for (int i = 0; i < n; i++)
        send_answer(fc->held[i].conn, fc->held[i].answer);
}

void fake_answer(struct fake_request *rq, const void *response)
{
    struct fake_cluster *fc = rq->b->cluster;
    struct wire_out out = { 0 };
    wire_response_header_write(rq->h.api_key, rq->h.api_version, rq->h.correlation_id, &out);
    int rc = wire_encode(rq->api->response, rq->h.api_version, response, &out, NULL);
    KCHECK(rc == 0);
    wire_frame_close(&out);
    struct rcbuf *b = rcbuf_take(&out.b);
    wire_out_done(&out);
    if (rq->mute)
        rcbuf_unref(b);
    else if (rq->hold || has_held(fc, rq->conn)) /* a broker answers in order */
        held_add(fc, rq->conn, b);
    else
        send_answer(rq->conn, b);
}

/* ---- the APIs ---- */
static void do_api_versions(struct fake_request *rq)
{
    struct fake_cluster *fc = rq->b->cluster;
    const struct api_versions_request *body = rq->body;
    struct api_versions_response r;
    wire_defaults(&wire_api_versions_response, &r);
    if (rq->h.api_version > fc->api_versions_max) {
        r.error_code = KERR_UNSUPPORTED_VERSION;
        rq->h.api_version = 0;
    } else if (rq->h.api_version >= 3) {
        snprintf(fc->software, sizeof fc->software, "%.*s", KSTR_FMT(body->client_software_name));
    }
    struct api_versions_response_api_keys keys[128];
    int32_t n = 0;
    for (size_t i = 0; wire_api_at(i) != NULL && n < 128; i++) {
        const struct wire_api *api = wire_api_at(i);
        int16_t max = api->request->max_version;
        if (api->key == API_PRODUCE && fc->no_produce)
            continue;
        if (api->key == API_PRODUCE)
            max = MIN(max, fc->produce_max_version);
        if (api->key == API_API_VERSIONS)
            max = fc->api_versions_max;
        if (api->key < 128 && fc->max_version[api->key] > 0)
            max = fc->max_version[api->key];
        keys[n++] = (struct api_versions_response_api_keys){ api->key, api->request->min_version, max };
    }
    r.api_keys = keys;
    r.n_api_keys = n;
    fake_answer(rq, &r);
}

static void fill_topic(struct fake_request *rq, struct metadata_response_topics *mt, struct fake_topic *t)
{
    mt->name = kstr_of(t->name);
    mt->topic_id = t->id;
    mt->n_partitions = t->n_partitions;
    mt->partitions = arena_array(&rq->a, (size_t)t->n_partitions, sizeof *mt->partitions);
    for (int i = 0; i < t->n_partitions; i++) {
        mt->partitions[i].partition_index = i;
        mt->partitions[i].leader_id = t->leaders[i];
        mt->partitions[i].error_code = t->leaders[i] < 0 ? KERR_LEADER_NOT_AVAILABLE : KERR_NONE;
        mt->partitions[i].replica_nodes = &t->leaders[i];
        mt->partitions[i].n_replica_nodes = 1;
    }
}

static struct fake_topic *topic_find(struct fake_cluster *fc, struct kstr name)
{
    for (int i = 0; i < fc->n_topics; i++) {
        if (kstr_eqz(name, fc->topics[i].name))
            return &fc->topics[i];
    }
    return NULL;
}

static void do_metadata(struct fake_request *rq)
{
    struct fake_cluster *fc = rq->b->cluster;
    const struct metadata_request *body = rq->body;
    struct metadata_response r;
    wire_defaults(&wire_metadata_response, &r);
    r.brokers = arena_array(&rq->a, FAKE_BROKERS, sizeof *r.brokers);
    r.n_brokers = 0;
    for (int i = 0; i < fc->n_brokers; i++) {
        if (fc->brokers[i].left)
            continue;
        r.brokers[r.n_brokers++] = (struct metadata_response_brokers){
            .node_id = fc->brokers[i].id,
            .host = kstr_of("127.0.0.1"),
            .port = fc->brokers[i].port,
            .rack = KSTR_NULL,
        };
    }
    r.cluster_id = kstr_of("fake");
    r.controller_id = fc->controller;
    bool all = body->n_topics < 0;
    r.n_topics = all ? fc->n_topics : body->n_topics;
    r.topics = arena_array(&rq->a, (size_t)r.n_topics, sizeof *r.topics);
    for (int i = 0; i < r.n_topics; i++) {
        struct fake_topic *t = all ? &fc->topics[i] : topic_find(fc, body->topics[i].name);
        r.topics[i].topic_authorized_operations = INT32_MIN;
        if (t != NULL) {
            fill_topic(rq, &r.topics[i], t);
        } else {
            r.topics[i].name = body->topics[i].name;
            r.topics[i].error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        }
    }
    fake_answer(rq, &r);
}

static void do_find_coordinator(struct fake_request *rq)
{
    struct fake_cluster *fc = rq->b->cluster;
    struct find_coordinator_response r;
    wire_defaults(&wire_find_coordinator_response, &r);
    struct fake_broker *b = &fc->brokers[fc->n_brokers - 1];
    r.error_code = (int16_t)rq->err;
    r.node_id = rq->err != KERR_NONE ? -1 : b->id;
    r.host = kstr_of(rq->err != KERR_NONE ? "" : "127.0.0.1");
    r.port = rq->err != KERR_NONE ? -1 : b->port;
    fake_answer(rq, &r);
}

static void do_init_producer_id(struct fake_request *rq)
{
    struct fake_cluster *fc = rq->b->cluster;
    const struct init_producer_id_request *body = rq->body;
    struct init_producer_id_response r;
    wire_defaults(&wire_init_producer_id_response, &r);
    r.error_code = (int16_t)rq->err;
    if (rq->err == KERR_NONE && rq->h.api_version >= 3 && body->producer_id >= 0) {
        r.producer_id = body->producer_id;
        r.producer_epoch = (int16_t)(body->producer_epoch + 1);
    } else if (rq->err == KERR_NONE) {
        r.producer_id = fc->next_pid++;
    }
    fake_answer(rq, &r);
}

static void log_add(struct fake_log *log, struct kstr value)
{
    if (log->n == log->cap) {
        log->cap = MAX(16, log->cap * 2);
        log->values = xreallocarray(log->values, (size_t)log->cap, sizeof *log->values);
    }
    log->values[log->n++] = xstrndup(value.n > 0 ? value.p : "", (size_t)MAX(value.n, 0));
}

static bool log_has_bad(struct fake_cluster *fc, struct slice batch)
{
    struct record_iter it;
    struct record rec;
    bool bad = false;
    record_iter_init(&it);
    KCHECK(record_iter_start(&it, batch, 64 << 20) == 0);
    while (record_iter_next(&it, &rec) > 0)
        bad |= fc->bad_value != NULL && kstr_eqz(rec.value, fc->bad_value);
    record_iter_done(&it);
    return bad;
}

/* What a broker does with the sequence numbers of an idempotent producer; *ret_offset for a duplicate. */
static enum kerr log_check_producer(struct fake_log *log, const struct batch_header *h, int64_t *ret_offset)
{
    if (h->producer_id < 0)
        return KERR_NONE;
    if (h->producer_id == log->pid && h->producer_epoch < log->epoch)
        return KERR_INVALID_PRODUCER_EPOCH;
    if (h->producer_id != log->pid || h->producer_epoch != log->epoch) {
        if (h->base_sequence != 0)
            return KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
        log->pid = h->producer_id;
        log->epoch = h->producer_epoch;
        log->next_sequence = 0;
        log->n_window = 0;
    }
    for (int i = 0; i < log->n_window; i++) {
        if (log->window[i].sequence == h->base_sequence) {
            *ret_offset = log->window[i].offset;
            return KERR_DUPLICATE_SEQUENCE_NUMBER;
        }
    }
    return h->base_sequence == log->next_sequence ? KERR_NONE : KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
}

static enum kerr log_append(struct fake_cluster *fc, struct fake_log *log, struct wire_records in,
                            int64_t *ret_offset)
{
    struct batch_header h;
    struct slice batch = slice_of(in.p, (size_t)in.n);
    if (batch_check(batch, INT32_MAX, &h) != 0 || batch_size(&h) != in.n)
        return KERR_CORRUPT_MESSAGE;
    if (fc->max_message_bytes > 0 && in.n > fc->max_message_bytes)
        return KERR_MESSAGE_TOO_LARGE;
    enum kerr err = log_check_producer(log, &h, ret_offset);
    if (err == KERR_DUPLICATE_SEQUENCE_NUMBER)
        return KERR_NONE;
    if (err == KERR_NONE && log_has_bad(fc, batch))
        err = KERR_INVALID_RECORD;
    if (err != KERR_NONE)
        return err;

    *ret_offset = log->start + log->n;
    if (h.producer_id >= 0) {
        log->next_sequence = batch_sequence_add(h.base_sequence, h.count);
        if (log->n_window == FAKE_WINDOW)
            memmove(log->window, log->window + 1, sizeof log->window - sizeof log->window[0]);
        else
            log->n_window++;
        log->window[log->n_window - 1].sequence = h.base_sequence;
        log->window[log->n_window - 1].offset = *ret_offset;
    }
    uint8_t *stored = bytebuf_extend(&log->bytes, batch.n);
    memcpy(stored, batch.p, batch.n);
    batch_set_base_offset(stored, *ret_offset);
    struct record_iter it;
    struct record rec;
    record_iter_init(&it);
    KCHECK(record_iter_start(&it, batch, 64 << 20) == 0);
    while (record_iter_next(&it, &rec) > 0)
        log_add(log, rec.value);
    record_iter_done(&it);
    return KERR_NONE;
}

static void do_produce(struct fake_request *rq)
{
    struct fake_cluster *fc = rq->b->cluster;
    const struct produce_request *body = rq->body;
    struct produce_response_partition_responses pr = { .record_errors = NULL };
    struct produce_response_responses tr = { .partition_responses = &pr, .n_partition_responses = 1 };
    struct produce_response r;
    wire_defaults(&wire_produce_response, &r);
    KCHECK(body->n_topic_data == 1 && body->topic_data[0].n_partition_data == 1);
    struct fake_topic *t = topic_find(fc, body->topic_data[0].name);
    int32_t index = body->topic_data[0].partition_data[0].index;
    tr.name = body->topic_data[0].name;
    pr.index = index;
    pr.base_offset = -1;
    pr.log_append_time_ms = pr.log_start_offset = -1;
    pr.error_message = KSTR_NULL;
    pr.current_leader.leader_id = pr.current_leader.leader_epoch = -1;
    r.responses = &tr;
    r.n_responses = 1;

    enum kerr err = rq->err;
    if (err == KERR_NONE && (t == NULL || index >= t->n_partitions))
        err = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (err == KERR_NONE && t->leaders[index] != rq->b->id)
        err = KERR_NOT_LEADER_OR_FOLLOWER;
    if (err == KERR_NONE)
        err = log_append(fc, &t->logs[index], body->topic_data[0].partition_data[0].records, &pr.base_offset);
    if (err == KERR_NONE && rq->err_after != KERR_NONE) {
        err = rq->err_after;
        pr.base_offset = -1;
    }
    if (err == KERR_INVALID_RECORD && rq->h.api_version >= 8)
        pr.error_message = kstr_of("that record is bad");
    if (err == KERR_KAFKA_STORAGE_ERROR && rq->h.api_version >= 8)
        pr.error_message = kstr_of("no space");
    pr.error_code = (int16_t)err;
    fc->in_flight = has_held(fc, rq->conn) || rq->hold ? fc->in_flight + 1 : 1;
    fc->in_flight_max = MAX(fc->in_flight_max, fc->in_flight);
    if (body->acks == 0)
        rq->mute = true;
    fake_answer(rq, &r);
}

static void do_fetch(struct fake_request *rq)
{
    struct fake_cluster *fc = rq->b->cluster;
    const struct fetch_request *body = rq->body;
    const struct fetch_request_partitions *p = &body->topics[0].partitions[0];
    struct fake_topic *t = topic_find(fc, body->topics[0].topic);
    struct fetch_response_partitions pr = { .partition_index = p->partition, .preferred_read_replica = -1 };
    struct fetch_response_responses tr = { .topic = body->topics[0].topic,
                                           .partitions = &pr,
                                           .n_partitions = 1 };
    struct fetch_response r;
    wire_defaults(&wire_fetch_response, &r);
    r.responses = &tr;
    r.n_responses = 1;
    pr.diverging_epoch.epoch = pr.current_leader.leader_id = pr.current_leader.leader_epoch =
        pr.snapshot_id.epoch = -1;
    pr.diverging_epoch.end_offset = pr.snapshot_id.end_offset = -1;
    pr.n_aborted_transactions = -1;
    pr.records.p = (const uint8_t *)"";
    enum kerr err = rq->err;
    if (err == KERR_NONE && (t == NULL || p->partition >= t->n_partitions))
        err = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (err == KERR_NONE && t->leaders[p->partition] != rq->b->id)
        err = KERR_NOT_LEADER_OR_FOLLOWER;
    pr.error_code = (int16_t)err;
    if (err == KERR_NONE) {
        struct fake_log *log = &t->logs[p->partition];
        pr.high_watermark = pr.last_stable_offset = log->start + log->n;
        pr.log_start_offset = log->start;
        if (p->fetch_offset > pr.high_watermark) {
            pr.error_code = KERR_OFFSET_OUT_OF_RANGE;
        } else if (p->fetch_offset < pr.high_watermark) {
            pr.records.p = log->bytes.p;
            pr.records.n = MIN((int32_t)log->bytes.n, p->partition_max_bytes);
        } else if (body->max_wait_ms > 0) {
            rq->hold = true;
        }
    }
    fake_answer(rq, &r);
}

/* Ends only; a time is answered with the offset of the same number, if it is there. */
static void do_list_offsets(struct fake_request *rq)
{
    struct fake_cluster *fc = rq->b->cluster;
    const struct list_offsets_request *body = rq->body;
    struct list_offsets_response_partitions pr = { .timestamp = -1, .offset = -1, .leader_epoch = -1 };
    struct list_offsets_response_topics tr = { .partitions = &pr, .n_partitions = 1 };
    struct list_offsets_response r = { .topics = &tr, .n_topics = 1 };
    enum kerr err = rq->err;
    if (body->n_topics != 1) { /* a test's empty request */
        wire_defaults(&wire_list_offsets_response, &r);
        fake_answer(rq, &r);
        return;
    }
    const struct list_offsets_request_partitions *p = &body->topics[0].partitions[0];
    struct fake_topic *t = topic_find(fc, body->topics[0].name);
    tr.name = body->topics[0].name;
    pr.partition_index = p->partition_index;
    if (err == KERR_NONE && (t == NULL || p->partition_index >= t->n_partitions))
        err = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (err == KERR_NONE && t->leaders[p->partition_index] != rq->b->id)
        err = KERR_NOT_LEADER_OR_FOLLOWER;
    pr.error_code = (int16_t)err;
    if (err == KERR_NONE) {
        const struct fake_log *log = &t->logs[p->partition_index];
        int64_t end = log->start + log->n;
        if (p->timestamp == -2)
            pr.offset = log->start;
        else if (p->timestamp == -1)
            pr.offset = end;
        else if (p->timestamp < end)
            pr.offset = pr.timestamp = MAX(p->timestamp, log->start);
    }
    fake_answer(rq, &r);
}

/* ---- requests ---- */
static bool take_step(struct fake_cluster *fc, int16_t api, struct fake_step *ret)
{
    for (int i = 0; i < fc->n_steps; i++) {
        if (fc->steps[i].api == api) {
            *ret = fc->steps[i];
            memmove(&fc->steps[i], &fc->steps[i + 1], (size_t)(--fc->n_steps - i) * sizeof fc->steps[0]);
            return true;
        }
    }
    return false;
}

static void conn_gone(struct fake_conn *k)
{
    held_forget(k->b->cluster, k->conn);
    for (struct fake_conn **p = &k->b->conns; *p != NULL; p = &(*p)->next) {
        if (*p == k) {
            *p = k->next;
            break;
        }
    }
    free(k);
}

static void dispatch(struct fake_request *rq)
{
    switch (rq->h.api_key) {
    case API_API_VERSIONS:
        do_api_versions(rq);
        break;
    case API_METADATA:
        do_metadata(rq);
        break;
    case API_FIND_COORDINATOR:
        do_find_coordinator(rq);
        break;
    case API_INIT_PRODUCER_ID:
        do_init_producer_id(rq);
        break;
    case API_PRODUCE:
        do_produce(rq);
        break;
    case API_FETCH:
        do_fetch(rq);
        break;
    case API_LIST_OFFSETS:
        do_list_offsets(rq);
        break;
    case API_JOIN_GROUP:
        fake_join_group(rq);
        break;
    case API_SYNC_GROUP:
        fake_sync_group(rq);
        break;
    case API_HEARTBEAT:
        fake_heartbeat(rq);
        break;
    case API_LEAVE_GROUP:
        fake_leave_group(rq);
        break;
    case API_OFFSET_COMMIT:
        fake_offset_commit(rq);
        break;
    case API_OFFSET_FETCH:
        fake_offset_fetch(rq);
        break;
    default: {
        void *r = arena_alloc(&rq->a, wire_msg_size(rq->api->response));
        wire_defaults(rq->api->response, r);
        fake_answer(rq, r);
    }
    }
}

static void on_frame(struct conn *conn, struct rcbuf *frame)
{
    struct fake_conn *k = conn_user(conn);
    struct fake_cluster *fc = k->b->cluster;
    struct fake_request rq = { .b = k->b, .conn = conn };
    struct slice body;
    struct fake_step step = { 0 };
    int rc = wire_request_header_read(slice_of(frame->p, frame->n), &rq.h, &body);
    KCHECK(rc == 0);
    rq.api = wire_api_find(rq.h.api_key);
    if (rq.h.api_key < 128) {
        fc->requests[rq.h.api_key]++;
        fc->last_version[rq.h.api_key] = rq.h.api_version;
    }
    bool scripted = take_step(fc, rq.h.api_key, &step);
    if (!scripted || step.what != FAKE_DEAF) {
        arena_init(&rq.a);
        rq.body = arena_alloc(&rq.a, wire_msg_size(rq.api->request));
        rc = wire_decode(rq.api->request, rq.h.api_version, body, &rq.a, rq.body);
        KCHECK(rc == 0);
        rq.err = scripted && step.what == FAKE_ERROR ? step.err : KERR_NONE;
        rq.err_after = scripted && step.what == FAKE_DO_AND_FAIL ? step.err : KERR_NONE;
        rq.hold = scripted && step.what == FAKE_HOLD;
        rq.mute = scripted && step.what == FAKE_DO_AND_DROP;
        if (!scripted || step.what != FAKE_DROP)
            dispatch(&rq);
        arena_done(&rq.a);
    }
    rcbuf_unref(frame);
    if (scripted && (step.what == FAKE_DROP || step.what == FAKE_DO_AND_DROP)) {
        conn_gone(k);
        conn_close(conn);
    }
}

static void on_closed(struct conn *conn, const char *why)
{
    (void)why;
    conn_gone(conn_user(conn));
}

static void on_accept(struct loop_fd *w, uint32_t events)
{
    (void)events;
    static const struct conn_ops ops = { .frame = on_frame, .closed = on_closed };
    static const struct conn_limits limits = { .frame_max = 64 << 20, .sndbuf = -1, .rcvbuf = -1 };
    struct fake_broker *b = container_of(w, struct fake_broker, accept);
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct fake_conn *k = xcalloc(1, sizeof *k);
    k->b = b;
    k->conn = conn_new(b->cluster->loop, fd, &ops, &limits, k);
    k->next = b->conns;
    b->conns = k;
    b->n_accepted++;
}

/* ---- brokers ---- */
void fake_broker_start(struct fake_broker *b)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)b->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t n = sizeof sa;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    KCHECK(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    KCHECK(bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0 && listen(fd, 100) == 0);
    KCHECK(getsockname(fd, (struct sockaddr *)&sa, &n) == 0);
    b->port = ntohs(sa.sin_port);
    b->accept = (struct loop_fd){ .fd = fd, .events = EPOLLIN, .cb = on_accept };
    KCHECK(loop_fd_add(b->cluster->loop, &b->accept) == 0);
    b->down = false;
}

void fake_broker_kick(struct fake_broker *b)
{
    while (b->conns != NULL) {
        struct conn *conn = b->conns->conn;
        conn_gone(b->conns);
        conn_close(conn);
    }
}

void fake_broker_stop(struct fake_broker *b)
{
    if (b->down)
        return;
    loop_fd_del(b->cluster->loop, &b->accept);
    close(b->accept.fd);
    fake_broker_kick(b);
    b->down = true;
}

void fake_cluster_init(struct fake_cluster *fc, struct loop *lp, int n_brokers)
{
    *fc = (struct fake_cluster){ .loop = lp, .n_brokers = n_brokers, .controller = 1 };
    fc->produce_max_version = 11;
    fc->api_versions_max = 3;
    fc->next_pid = 1000;
    for (int i = 0; i < n_brokers; i++) {
        fc->brokers[i] = (struct fake_broker){ .cluster = fc, .id = i + 1 };
        fake_broker_start(&fc->brokers[i]);
    }
}

void fake_cluster_done(struct fake_cluster *fc)
{
    for (int i = 0; i < fc->n_brokers; i++)
        fake_broker_stop(&fc->brokers[i]);
    for (int i = 0; i < fc->n_topics; i++) {
        for (int j = 0; j < fc->topics[i].n_partitions; j++) {
            struct fake_log *log = &fc->topics[i].logs[j];
            for (int k = 0; k < log->n; k++)
                free(log->values[k]);
            free(log->values);
            bytebuf_done(&log->bytes);
        }
    }
}

struct fake_topic *fake_topic_add(struct fake_cluster *fc, const char *name, int n_partitions, int32_t leader)
{
    KCHECK(fc->n_topics < FAKE_TOPICS && n_partitions <= FAKE_PARTITIONS);
    struct fake_topic *t = &fc->topics[fc->n_topics++];
    *t = (struct fake_topic){ .name = name, .n_partitions = n_partitions };
    for (int i = 0; i < n_partitions; i++) {
        t->leaders[i] = leader;
        t->logs[i].pid = -1;
    }
    return t;
}

void fake_script(struct fake_cluster *fc, int16_t api, enum fake_do what, enum kerr err)
{
    KCHECK(fc->n_steps < FAKE_STEPS);
    fc->steps[fc->n_steps++] = (struct fake_step){ api, what, err };
}

const char *fake_addresses(const struct fake_cluster *fc, char *buf, size_t n)
{
    size_t at = 0;
    buf[0] = '\0';
    for (int i = 0; i < fc->n_brokers; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s127.0.0.1:%d", i > 0 ? "," : "", fc->brokers[i].port);
    return buf;
}
