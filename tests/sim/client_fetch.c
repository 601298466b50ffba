/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of one partition at a time, from a place of its choice on, by offset. All that it reads goes to the truth; so does
 * where logs begin and end. A sweeper reads each partition that has a rotten place, once, all of it.
 */
#include "lib/base/kerr.h"
#include "tests/sim/marks.h"
#include "tests/sim/play.h"

enum { RETRY_MS = 200 };

struct consumer {
    struct rawclient c; /* first */
    int topic, partition;
    int64_t position; /* -1: to be asked for */
    bool is_asking;
    int32_t max_wait_ms, max_bytes;
    int64_t not_before_ns;
    bool sweeps, is_done;
    int64_t until; /* a sweeper goes on to the next partition there */
};

static struct consumer *of(struct rawclient *c)
{
    return container_of(c, struct consumer, c);
}

static void start(struct rawclient *c)
{
    struct consumer *f = of(c);
    f->topic = -1;
    f->max_wait_ms = (int32_t)rnd_log(&c->rnd, 1, 5000);
    f->max_bytes = (int32_t)rnd_log(&c->rnd, 100, 1 << 20);
}

static void start_sweeper(struct rawclient *c)
{
    start(c);
    of(c)->sweeps = true;
    of(c)->max_bytes = 1 << 20;
}

bool client_sweeper_is_done(const struct rawclient *c)
{
    return container_of(c, struct consumer, c)->is_done;
}

/* ---- questions ---- */
static void ask_fetch(struct consumer *f)
{
    struct rawclient *c = &f->c;
    const struct truth_topic *t = &client_truth(c)->topics[f->topic];
    struct fetch_request_partitions part = { .partition = f->partition,
                                             .current_leader_epoch = -1,
                                             .fetch_offset = f->position,
                                             .last_fetched_epoch = -1,
                                             .log_start_offset = -1,
                                             .partition_max_bytes = f->max_bytes };
    struct fetch_request_topics topic = { .topic = kstr_of(""), .topic_id = t->id, .partitions = &part, .n_partitions = 1 };
    struct fetch_request q;
    wire_defaults(&wire_fetch_request, &q);
    q.max_wait_ms = f->max_wait_ms;
    q.min_bytes = !f->sweeps && rnd_one_in(&c->rnd, 4) ? 10000 : 1;
    q.max_bytes = f->max_bytes;
    q.topics = &topic;
    q.n_topics = 1;
    struct asked *asked = client_ask(c, &wire_fetch_request, 16, &q);
    asked->a = t->parts[f->partition].end_seen;
    asked->b = t->parts[f->partition].start;
    f->is_asking = true;
}

static void ask_start(struct consumer *f)
{
    struct rawclient *c = &f->c;
    struct list_offsets_request_partitions part = { .partition_index = f->partition, .current_leader_epoch = -1, .timestamp = -2 };
    struct list_offsets_request_topics topic = { .name = kstr_of(client_truth(c)->topics[f->topic].name),
                                                 .partitions = &part,
                                                 .n_partitions = 1 };
    struct list_offsets_request q = { .replica_id = -1, .topics = &topic, .n_topics = 1 };
    client_ask(c, &wire_list_offsets_request, 7, &q);
    f->is_asking = true;
}

static void new_target(struct consumer *f)
{
    struct rawclient *c = &f->c;
    f->topic = client_draw_topic(c);
    if (f->topic < 0) {
        client_ask_metadata(c);
        f->is_asking = true;
        return;
    }
    const struct truth_topic *t = &client_truth(c)->topics[f->topic];
    f->partition = (int)rnd_below(&c->rnd, (uint64_t)t->n_partitions);
    const struct truth_partition *part = &t->parts[f->partition];
    f->position = -1;
    if (part->committed > part->start_asked && !rnd_one_in(&c->rnd, 3))
        f->position = rnd_range(&c->rnd, part->start_asked, part->committed - 1);
}

/* The next one with a rotten place, behind the one at hand. */
static void next_rotten(struct consumer *f)
{
    const struct truth *t = client_truth(&f->c);
    int at = f->topic < 0 ? 0 : f->topic * TRUTH_PARTITIONS + f->partition + 1;
    for (; at < t->n_topics * TRUTH_PARTITIONS; at++) {
        f->topic = at / TRUTH_PARTITIONS;
        f->partition = at % TRUTH_PARTITIONS;
        const struct truth_partition *p = &t->topics[f->topic].parts[f->partition];
        f->position = p->start_asked;
        f->until = p->committed;
        if (p->rotten_to > 0 && !t->topics[f->topic].delete_asked && f->position < f->until)
            return;
    }
    f->is_done = true;
}

static void choose_target(struct consumer *f)
{
    if (!f->sweeps && (f->topic < 0 || rnd_one_in(&f->c.rnd, 200)))
        new_target(f);
    else if (f->sweeps && (f->topic < 0 || f->position >= f->until))
        next_rotten(f);
}

static void go_on(struct consumer *f)
{
    struct rawclient *c = &f->c;
    if (!c->is_open || f->is_asking || f->is_done || sim_now(client_sim(c)) < f->not_before_ns)
        return;
    choose_target(f);
    if (f->is_done)
        return;
    if (f->topic < 0 || f->is_asking)
        return;
    if (f->position < 0)
        ask_start(f);
    else
        ask_fetch(f);
}

static void opened(struct rawclient *c)
{
    of(c)->is_asking = false;
    go_on(of(c));
}

static void tick(struct rawclient *c)
{
    if (c->end == NULL && !c->stops)
        client_connect(c);
    go_on(of(c));
    client_tick_in(c, rnd_range(&c->rnd, 10 * SIM_MS, 400 * SIM_MS));
}

/* ---- answers ---- */
static void later(struct consumer *f)
{
    f->not_before_ns = sim_now(client_sim(&f->c)) + rnd_range(&f->c.rnd, 1, RETRY_MS * SIM_MS);
}

static void failed(struct consumer *f, int16_t err)
{
    struct rawclient *c = &f->c;
    const struct truth_topic *t = &client_truth(c)->topics[f->topic];
    const struct truth_partition *part = &t->parts[f->partition];
    sim_note(client_sim(c), "fetch error", c->number, err, f->position);
    play_mark_error(c->play, API_FETCH, err);
    later(f);
    switch (err) {
    case KERR_OFFSET_OUT_OF_RANGE:
        if (f->position >= part->start_asked && f->position <= part->committed && !t->retains)
            sim_fail(client_sim(c), "C1", "%s-%d: offset %lld is out of range, but all below %lld was committed", t->name,
                     f->partition, (long long)f->position, (long long)part->committed);
        f->position = -1;
        return;
    case KERR_CORRUPT_MESSAGE:
        f->position = truth_damage_told(client_truth(c), f->topic, f->partition, f->position);
        MARK("a reader is told of rot");
        return;
    case KERR_UNKNOWN_TOPIC_OR_PARTITION:
    case KERR_UNKNOWN_TOPIC_ID:
        f->topic = -1;
        return;
    default:
        return;
    }
}

static void answered_fetch(struct consumer *f, const struct asked *q, const struct fetch_response *rsp)
{
    struct rawclient *c = &f->c;
    struct truth *t = client_truth(c);
    if (rsp->error_code != 0 || rsp->n_responses != 1 || rsp->responses[0].n_partitions != 1) {
        later(f);
        f->topic = -1;
        return;
    }
    const struct fetch_response_partitions *pr = &rsp->responses[0].partitions[0];
    if (truth_is_stale(t, f->topic, q->sent_ns))
        return;
    if (pr->error_code != 0) {
        failed(f, pr->error_code);
        return;
    }
    truth_start_shown(t, f->topic, f->partition, pr->log_start_offset, q->b);
    truth_end_shown(t, f->topic, f->partition, pr->high_watermark, q->a);
    struct slice rest = slice_of(pr->records.p, pr->records.n < 0 ? 0 : (size_t)pr->records.n);
    while (rest.n > 0) {
        int64_t next = truth_read(t, f->topic, f->partition, rest.p, rest.n, f->position, q->b);
        struct sim_batch_head h;
        if (next < 0) { /* its checksum tells it */
            f->position = truth_damage_told(t, f->topic, f->partition, f->position);
            MARK("a reader sees rot by a checksum");
            break;
        }
        sim_batch_head(rest.p, rest.n, &h);
        if (next > pr->high_watermark)
            sim_fail(client_sim(c), "C3", "%s-%d: the batch at %lld is read, but only %lld is committed",
                     t->topics[f->topic].name, f->partition, (long long)h.base_offset, (long long)pr->high_watermark);
        f->position = next;
        rest = slice_of(rest.p + h.size, rest.n - (size_t)h.size);
    }
    if (!f->sweeps && !rnd_one_in(&c->rnd, 8))
        later(f);
}

static void answered(struct rawclient *c, struct asked *q, void *answer, struct arena *a)
{
    struct consumer *f = of(c);
    (void)a;
    f->is_asking = false;
    if (q->api == API_METADATA) {
        client_heard_metadata(c, q, answer);
        later(f);
    } else if (q->api == API_LIST_OFFSETS) {
        const struct list_offsets_response *rsp = answer;
        const struct list_offsets_response_partitions *pr = &rsp->topics[0].partitions[0];
        if (pr->error_code == 0 && !f->sweeps)
            f->position = pr->offset; /* by name: of whichever topic has it now */
        else if (pr->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION)
            f->topic = -1;
        later(f);
    } else if (f->topic >= 0) {
        answered_fetch(f, q, answer);
    }
    go_on(f);
}

const struct client_kind client_consumer = {
    .name = "consumer",
    .size = sizeof(struct consumer),
    .start = start,
    .opened = opened,
    .answered = answered,
    .tick = tick,
};

const struct client_kind client_sweeper = {
    .name = "sweeper",
    .size = sizeof(struct consumer),
    .start = start_sweeper,
    .opened = opened,
    .answered = answered,
    .tick = tick,
};
