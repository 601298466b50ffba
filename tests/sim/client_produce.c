/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer: to one partition at a time, with 1 to 5 batches under way. An idempotent one sends what has no answer, or an
 * error that may pass, once more, in its order, until it is answered; a plain one never does, so that what it sent is there
 * once at most.
 *
 * Who gives something up goes on with a new id, or with the next epoch of the one it has. Then somebody with the old epoch is
 * still there (a zombie), and sends once more when the new epoch has been acknowledged in that partition.
 */
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/kerr.h"
#include "lib/base/varint.h"
#include "tests/sim/diskcheck.h"
#include "tests/sim/marks.h"
#include "tests/sim/play.h"

enum { IN_FLIGHT_MAX = 5, RETRY_MS = 100 };

struct pending {
    int32_t batch;
    bool is_asked, again; /* sent more than once: an error says nothing of the first time */
};

struct zombie {
    bool is_there, is_late; /* late: its partition has acknowledged a batch of the next epoch */
    int64_t pid;
    int16_t epoch;
    int topic, partition;
    int32_t seq;
    int32_t batch; /* that it has sent, and that has no answer; -1 */
};

struct producer {
    struct rawclient c; /* first */
    bool idempotent;
    int16_t acks;
    int in_flight_max;
    int32_t records_max, value_max, n_keys;
    int64_t gap_ns; /* between two batches, about */
    int topic, partition;
    int64_t pid; /* -1: none yet */
    int16_t epoch;
    bool pid_asked, metadata_asked;
    int32_t next_seq[TRUTH_TOPICS][TRUTH_PARTITIONS];
    struct pending pending[IN_FLIGHT_MAX]; /* in the order of their sequences */
    int n_pending;
    bool again; /* something failed: all that is pending is sent once more, when no answer is under way */
    int64_t not_before_ns;
    int64_t next_batch_ns;
    struct zombie zombie;
};

static struct producer *of(struct rawclient *c)
{
    return container_of(c, struct producer, c);
}

static void start(struct rawclient *c)
{
    struct producer *p = of(c);
    struct rnd *r = &c->rnd;
    p->idempotent = !rnd_one_in(r, 3);
    p->acks = p->idempotent || !rnd_one_in(r, 3) ? -1 : (int16_t)rnd_range(r, 0, 1);
    c->gets_nothing = p->acks == 0;
    p->in_flight_max = (int)rnd_range(r, 1, IN_FLIGHT_MAX);
    p->records_max = (int32_t)rnd_log(r, 1, 20);
    p->value_max = (int32_t)rnd_log(r, 1, 2000);
    p->n_keys = (int32_t)rnd_log(r, 1, 16);
    p->gap_ns = rnd_log(r, 5 * SIM_MS, 500 * SIM_MS);
    p->topic = p->partition = -1;
    p->pid = -1;
    p->zombie.batch = -1;
}

/* ---- one batch ---- */
static void ask_produce(struct producer *p, struct truth_batch *b)
{
    struct rawclient *c = &p->c;
    struct truth *t = client_truth(c);
    struct bytebuf bytes = { 0 };
    sim_batch_write(&b->spec, &bytes);
    b->crc = get_be32(bytes.p + 17);
    struct produce_request_partition_data part = { .index = b->partition, .records = { .p = bytes.p, .n = (int32_t)bytes.n } };
    struct produce_request_topic_data data = { .name = kstr_of(""),
                                               .topic_id = t->topics[b->topic].id,
                                               .partition_data = &part,
                                               .n_partition_data = 1 };
    struct produce_request q = {
        .transactional_id = KSTR_NULL, .acks = b->acks, .timeout_ms = 15000, .topic_data = &data, .n_topic_data = 1
    };
    struct asked *asked = client_ask(c, &wire_produce_request, 13, &q);
    bytebuf_done(&bytes);
    asked->a = b->spec.batch;
    if (b->acks == 0)
        client_forget(c, asked);
}

static struct sim_batch_spec draw_batch(struct producer *p)
{
    struct rawclient *c = &p->c;
    return (struct sim_batch_spec){
        .client = c->number,
        .batch = client_truth(c)->clients[c->number].n,
        .count = (int32_t)rnd_range(&c->rnd, 1, p->records_max),
        .value_bytes = (int32_t)rnd_range(&c->rnd, 0, p->value_max),
        .n_keys = p->n_keys,
        .keys = rnd_u64(&c->rnd),
        .timestamp_ms = SIM_WALL_START_MS + sim_now(client_sim(c)) / SIM_MS,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
    };
}

static void send_new(struct producer *p)
{
    struct rawclient *c = &p->c;
    struct truth *t = client_truth(c);
    struct sim_batch_spec spec = draw_batch(p);
    if (p->idempotent) {
        int32_t *seq = &p->next_seq[p->topic][p->partition];
        spec.producer_id = p->pid;
        spec.producer_epoch = p->epoch;
        spec.base_sequence = *seq;
        *seq += spec.count;
    }
    struct truth_batch *b = truth_new_batch(t, c->number, p->topic, p->partition, &spec, p->acks);
    if (p->acks == 0)
        truth_unknown(t, b);
    else
        p->pending[p->n_pending++] = (struct pending){ .batch = spec.batch, .is_asked = true };
    ask_produce(p, b);
}

static int pending_find(const struct producer *p, int64_t batch)
{
    for (int i = 0; i < p->n_pending; i++)
        if (p->pending[i].batch == batch)
            return i;
    return -1;
}

static void pending_take(struct producer *p, int i)
{
    p->n_pending--;
    for (; i < p->n_pending; i++)
        p->pending[i] = p->pending[i + 1];
}

/* ---- zombies ---- */
static void begin_epoch(struct producer *p)
{
    p->zombie = (struct zombie){ .is_there = true,
                                 .pid = p->pid,
                                 .epoch = p->epoch,
                                 .topic = p->topic,
                                 .partition = p->partition,
                                 .seq = p->next_seq[p->topic][p->partition],
                                 .batch = -1 };
    p->epoch++;
    memset(p->next_seq, 0, sizeof p->next_seq);
}

static void zombie_send(struct producer *p)
{
    struct zombie *z = &p->zombie;
    struct sim_batch_spec spec = draw_batch(p);
    spec.producer_id = z->pid;
    spec.producer_epoch = z->epoch;
    spec.base_sequence = z->seq;
    struct truth_batch *b = truth_new_batch(client_truth(&p->c), p->c.number, z->topic, z->partition, &spec, -1);
    z->batch = spec.batch;
    z->is_late = false;
    ask_produce(p, b);
}

static void zombie_answered(struct producer *p, int16_t err, int64_t base_offset, bool stale)
{
    struct rawclient *c = &p->c;
    struct truth *t = client_truth(c);
    struct truth_batch *b = truth_batch(t, c->number, p->zombie.batch);
    p->zombie.is_there = false;
    p->zombie.batch = -1;
    if (err == 0 && !stale)
        truth_acked(t, b, base_offset); /* where no newer epoch stands before it */
    else if (err == KERR_INVALID_PRODUCER_EPOCH)
        truth_refused(t, b);
    else
        truth_unknown(t, b);
    MARK_IF(err == KERR_INVALID_PRODUCER_EPOCH, "a batch of an old epoch was refused");
    play_mark_error(c->play, API_PRODUCE, err);
}

/* Nobody will know what became of what is under way. */
static void give_up(struct producer *p)
{
    struct truth *t = client_truth(&p->c);
    for (int i = 0; i < p->n_pending; i++)
        truth_unknown(t, truth_batch(t, p->c.number, p->pending[i].batch));
    p->n_pending = 0;
    p->again = false;
    /* a sequence may be missing now */
    if (p->pid >= 0 && p->topic >= 0 && p->zombie.batch < 0 && p->epoch < 1000 && rnd_one_in(&p->c.rnd, 2))
        begin_epoch(p);
    else
        p->pid = -1;
    p->topic = -1;
}

/* ---- what next ---- */
static void new_target(struct producer *p)
{
    struct rawclient *c = &p->c;
    p->topic = client_draw_topic(c);
    if (p->topic < 0) {
        if (!p->metadata_asked)
            client_ask_metadata(c);
        p->metadata_asked = true;
        return;
    }
    p->partition = (int)rnd_below(&c->rnd, (uint64_t)client_truth(c)->topics[p->topic].n_partitions);
}

static void ask_pid(struct producer *p)
{
    struct init_producer_id_request q;
    if (p->pid_asked)
        return;
    wire_defaults(&wire_init_producer_id_request, &q);
    q.transactional_id = KSTR_NULL;
    q.transaction_timeout_ms = 60000;
    client_ask(&p->c, &wire_init_producer_id_request, 4, &q);
    p->pid_asked = true;
}

static void send_again(struct producer *p)
{
    struct truth *t = client_truth(&p->c);
    p->again = false;
    for (int i = 0; i < p->n_pending; i++) {
        p->pending[i].is_asked = p->pending[i].again = true;
        ask_produce(p, truth_batch(t, p->c.number, p->pending[i].batch));
    }
}

static void go_on(struct producer *p)
{
    struct rawclient *c = &p->c;
    int64_t now = sim_now(client_sim(c));
    if (!c->is_open || now < p->not_before_ns)
        return;
    if (p->again) {
        if (c->n_asked == 0)
            send_again(p);
        return;
    }
    if (c->stops)
        return;
    if (p->idempotent && p->pid < 0) {
        ask_pid(p);
        return;
    }
    if (p->topic < 0) {
        new_target(p);
        return;
    }
    if (p->zombie.is_late && rnd_one_in(&c->rnd, 4))
        zombie_send(p);
    else if (p->idempotent && p->n_pending == 0 && p->zombie.batch < 0 && rnd_one_in(&c->rnd, 40))
        begin_epoch(p); /* as one that has been replaced */
    while (p->n_pending < p->in_flight_max && now >= p->next_batch_ns && c->is_open) {
        send_new(p);
        p->next_batch_ns = now + rnd_range(&c->rnd, 0, 2 * p->gap_ns);
        if (rnd_one_in(&c->rnd, 60) && p->n_pending == 0)
            p->topic = -1;
        if (p->acks == 0)
            break;
    }
}

static void opened(struct rawclient *c)
{
    struct producer *p = of(c);
    if (p->acks == 0)
        p->topic = -1; /* it may have been closed on us because the topic is gone */
    p->pid_asked = p->metadata_asked = false;
    go_on(p);
}

static void tick(struct rawclient *c)
{
    struct producer *p = of(c);
    if (c->end == NULL && (!c->stops || p->n_pending > 0))
        client_connect(c);
    go_on(p);
    client_tick_in(c, rnd_range(&c->rnd, 1, 1 + 2 * p->gap_ns));
}

static void lost(struct rawclient *c, struct asked *q)
{
    struct producer *p = of(c);
    int i = q->api == API_PRODUCE ? pending_find(p, q->a) : -1;
    if (q->api == API_PRODUCE && q->a == p->zombie.batch)
        zombie_answered(p, KERR_REQUEST_TIMED_OUT, -1, false);
    if (i < 0)
        return;
    if (p->idempotent) {
        p->pending[i].is_asked = false;
        p->again = true;
    } else {
        truth_unknown(client_truth(c), truth_batch(client_truth(c), c->number, p->pending[i].batch));
        pending_take(p, i);
    }
}

/* ---- answers ---- */
static bool was_not_done(int16_t err)
{
    switch (err) {
    case KERR_UNKNOWN_TOPIC_OR_PARTITION:
    case KERR_UNKNOWN_TOPIC_ID:
    case KERR_NOT_LEADER_OR_FOLLOWER:
    case KERR_MESSAGE_TOO_LARGE:
    case KERR_RECORD_LIST_TOO_LARGE:
    case KERR_INVALID_RECORD:
        return true;
    default:
        return false;
    }
}

static void refused(struct producer *p, int i, int16_t err)
{
    struct rawclient *c = &p->c;
    struct truth *t = client_truth(c);
    struct truth_batch *b = truth_batch(t, c->number, p->pending[i].batch);
    const struct truth_topic *topic = &t->topics[b->topic];
    sim_note(client_sim(c), "produce error", c->number, err, b->spec.batch);
    play_mark_error(c->play, API_PRODUCE, err);
    if (err == KERR_CORRUPT_MESSAGE || err == KERR_INVALID_PRODUCER_EPOCH || err == KERR_INVALID_RECORD)
        sim_fail(client_sim(c), "C1", "batch %d.%d: %s", c->number, b->spec.batch, kerr_name((enum kerr)err));
    if (!p->idempotent) {
        if (was_not_done(err))
            truth_refused(t, b);
        else
            truth_unknown(t, b);
        pending_take(p, i);
        if (was_not_done(err))
            p->topic = -1;
        return;
    }
    if (err == KERR_RECORD_LIST_TOO_LARGE || err == KERR_MESSAGE_TOO_LARGE) {
        if (p->pending[i].again)
            truth_unknown(t, b);
        else
            truth_refused(t, b);
        pending_take(p, i);
        p->records_max = 1;
        p->value_max = MIN(p->value_max, 300);
        give_up(p); /* the sequences behind it have a hole before them */
        return;
    }
    if (topic->delete_asked) {
        give_up(p);
        return;
    }
    if (err == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER && i == 0 && topic->is_lazy) {
        give_up(p);
        return;
    }
    if (err == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER && i == 0)
        sim_fail(client_sim(c), "C5", "batch %d.%d (%s-%d, sequence %d): the broker has lost the one before it", c->number,
                 b->spec.batch, topic->name, b->partition, b->spec.base_sequence);
    p->again = true;
    p->not_before_ns = sim_now(client_sim(c)) + rnd_range(&c->rnd, 1, RETRY_MS * SIM_MS);
}

static void answered_produce(struct producer *p, const struct asked *q, const struct produce_response *rsp)
{
    struct rawclient *c = &p->c;
    int i = pending_find(p, q->a);
    if (rsp->n_responses != 1 || rsp->responses[0].n_partition_responses != 1)
        sim_fail(client_sim(c), "ORDER", "client %d: an answer to Produce has not the partition that was asked for", c->number);
    const struct produce_response_partition_responses *pr = &rsp->responses[0].partition_responses[0];
    if (q->a == p->zombie.batch) {
        const struct truth_batch *z = truth_batch(client_truth(c), c->number, p->zombie.batch);
        zombie_answered(p, pr->error_code, pr->base_offset, truth_is_stale(client_truth(c), z->topic, q->sent_ns));
        return;
    }
    if (i < 0)
        return; /* given up */
    if (pr->error_code != 0) {
        refused(p, i, pr->error_code);
        return;
    }
    struct truth_batch *b = truth_batch(client_truth(c), c->number, p->pending[i].batch);
    if (truth_is_stale(client_truth(c), b->topic, q->sent_ns))
        truth_unknown(client_truth(c), b);
    else
        truth_acked(client_truth(c), b, pr->base_offset);
    if (p->zombie.is_there && b->topic == p->zombie.topic && b->partition == p->zombie.partition &&
        b->spec.producer_id == p->zombie.pid && b->spec.producer_epoch > p->zombie.epoch)
        p->zombie.is_late = p->zombie.batch < 0;
    pending_take(p, i);
}

static void answered(struct rawclient *c, struct asked *q, void *answer, struct arena *a)
{
    struct producer *p = of(c);
    (void)a;
    if (q->api == API_PRODUCE) {
        answered_produce(p, q, answer);
    } else if (q->api == API_INIT_PRODUCER_ID) {
        const struct init_producer_id_response *rsp = answer;
        p->pid_asked = false;
        if (rsp->error_code == 0) {
            p->pid = rsp->producer_id;
            p->epoch = rsp->producer_epoch;
            memset(p->next_seq, 0, sizeof p->next_seq);
            truth_producer_id(client_truth(c), p->pid, p->epoch);
        } else {
            p->not_before_ns = sim_now(client_sim(c)) + RETRY_MS * SIM_MS;
        }
    } else if (q->api == API_METADATA) {
        p->metadata_asked = false;
        client_heard_metadata(c, q, answer);
        if (p->topic < 0 && client_draw_topic(c) < 0)
            p->not_before_ns = sim_now(client_sim(c)) + RETRY_MS * SIM_MS;
    }
    go_on(p);
}

/* What is acknowledged must be on the disk before the answer leaves. */
static void written(struct rawclient *c, struct asked *q, void *answer)
{
    const struct produce_response *rsp = answer;
    const struct produce_response_partition_responses *pr = &rsp->responses[0].partition_responses[0];
    const struct truth_batch *b = truth_batch(client_truth(c), c->number, (int32_t)q->a);
    if (pr->error_code == 0 && b != NULL)
        diskcheck_acked(c->play, b, pr->base_offset);
}

const struct client_kind client_producer = {
    .name = "producer",
    .size = sizeof(struct producer),
    .start = start,
    .opened = opened,
    .answered = answered,
    .written = written,
    .lost = lost,
    .tick = tick,
};
