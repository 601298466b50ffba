/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw clients of several brokers: each has a connection (client.h) to any broker that it asks something, learns from Metadata who
 * leads, goes elsewhere when that is wrong, and tells the truth what it did and heard. One partition at a time each. What one may
 * be told by a broker that has been replaced, and does not know it yet (R17), is no contradiction; so what is held against the
 * answer of a broker that leads all the time from question to answer is not held against another's.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/kerr.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "tests/sim/fleet_int.h"
#include "tests/sim/marks.h"

enum { IN_FLIGHT_MAX = 5, GROUPS_MAX = 16, PATIENCE_S = 6, RETRY_MS = 200, TIMEOUT_MS = 4000 };

struct link { /* to one broker */
    struct rawclient c; /* first */
    struct fleet_client *owner;
    int broker;
};

struct fleet_kind {
    const char *name;
    size_t size;
    void (*start)(struct fleet_client *c);
    void (*act)(struct fleet_client *c); /* whenever it may have something to do */
    void (*answered)(struct fleet_client *c, int broker, struct asked *q, void *answer);
    void (*lost)(struct fleet_client *c, struct asked *q);
};

struct fleet_client {
    struct fleet *fleet;
    const struct fleet_kind *kind;
    int number;
    struct rnd rnd;
    struct sim_step timer;
    struct link *links[FLEET_BROKERS];
    bool stops;
    int64_t n_good, n_good_then; /* answers as it wants them */
    int topic, partition;        /* that it is at; -1 */
    int leader;                  /* index of a broker; -1: to be asked for */
    int n_metadata;              /* questions under way */
    int64_t not_before_ns;
};

static int64_t now_of(const struct fleet_client *c)
{
    return sim_now(c->fleet->sim);
}

static void later(struct fleet_client *c)
{
    c->not_before_ns = now_of(c) + rnd_range(&c->rnd, 1, RETRY_MS * SIM_MS);
}

/* Not one that has been silent for good: it would cost all of the time that is left. */
static int any_broker(struct fleet_client *c)
{
    const struct fleet *f = c->fleet;
    int i = (int)rnd_below(&c->rnd, (uint64_t)f->swarm.n_brokers);
    return f->phase != PLAY_FAULTS && i == f->swarm.gone ? (i + 1) % f->swarm.n_brokers : i;
}

static const struct truth_topic *topic_of(const struct fleet_client *c)
{
    return &c->fleet->truth.topics[c->topic];
}

/* ---- links ---- */
static void link_start(struct rawclient *c)
{
    (void)c;
}

static void link_nothing(struct rawclient *c)
{
    (void)c;
}

static void link_answered(struct rawclient *c, struct asked *q, void *answer, struct arena *a)
{
    struct link *l = container_of(c, struct link, c);
    struct fleet_client *owner = l->owner;
    (void)a;
    owner->kind->answered(owner, l->broker, q, answer);
    owner->kind->act(owner);
}

static void link_written(struct rawclient *c, struct asked *q, void *answer)
{
    const struct link *l = container_of(c, struct link, c);
    const struct produce_response *rsp = answer;
    const struct produce_response_partition_responses *pr = &rsp->responses[0].partition_responses[0];
    const struct truth_batch *b = truth_batch(c->truth, c->number, (int32_t)q->a);
    if (pr->error_code == 0 && b != NULL)
        fleet_rules_acked(l->owner->fleet, l->broker, b, pr->base_offset);
}

static void link_lost(struct rawclient *c, struct asked *q)
{
    struct fleet_client *owner = container_of(c, struct link, c)->owner;
    if (q->api == API_METADATA)
        owner->n_metadata--;
    owner->leader = -1;
    later(owner);
    if (owner->kind->lost != NULL)
        owner->kind->lost(owner, q);
}

static const struct client_kind link_kind = {
    .name = "link",
    .size = sizeof(struct link),
    .start = link_start,
    .opened = link_nothing,
    .answered = link_answered,
    .written = link_written,
    .lost = link_lost,
    .tick = link_nothing,
};

static struct rawclient *link_to(struct fleet_client *c, int broker)
{
    if (c->links[broker] == NULL) {
        struct rawclient like = { .sim = c->fleet->sim,
                                  .nw = c->fleet->nw,
                                  .truth = &c->fleet->truth,
                                  .number = c->number,
                                  .host = FLEET_BROKERS + c->number % (SIM_HOSTS - FLEET_BROKERS),
                                  .to_host = broker };
        struct rawclient *l = rawclient_new_to(&like, &link_kind, 1000 + (uint64_t)(c->number * FLEET_BROKERS + broker));
        c->links[broker] = container_of(l, struct link, c);
        c->links[broker]->owner = c;
        c->links[broker]->broker = broker;
    }
    if (c->links[broker]->c.end == NULL)
        client_connect(&c->links[broker]->c);
    return &c->links[broker]->c;
}

static struct asked *ask(struct fleet_client *c, int broker, const struct wire_message *m, int version, const void *body)
{
    struct asked *q = client_ask(link_to(c, broker), m, version, body);
    q->patience_ns = PATIENCE_S * SIM_S;
    return q;
}

/* ---- topics and leaders ---- */
static bool may_use(const struct fleet_client *c, int topic, int partition)
{
    const struct fleet *f = c->fleet;
    const struct truth_topic *t = &f->truth.topics[topic];
    return t->is_known && !t->delete_asked && !t->internal && partition < t->n_partitions &&
           (f->phase == PLAY_FAULTS || fleet_is_servable(f, t->name, partition));
}

static void draw_target(struct fleet_client *c)
{
    int n = 0;
    c->topic = c->leader = -1;
    for (int i = 0; i < c->fleet->truth.n_topics; i++)
        for (int p = 0; p < TRUTH_PARTITIONS; p++)
            if (may_use(c, i, p) && rnd_one_in(&c->rnd, (uint64_t)++n)) {
                c->topic = i;
                c->partition = p;
            }
}

static void ask_metadata(struct fleet_client *c)
{
    struct metadata_request q;
    if (c->n_metadata > 0)
        return;
    wire_defaults(&wire_metadata_request, &q);
    q.topics = NULL;
    q.n_topics = -1;
    q.allow_auto_topic_creation = false;
    ask(c, any_broker(c), &wire_metadata_request, 12, &q);
    c->n_metadata++;
}

static void heard_of_topic(struct fleet_client *c, const struct metadata_response_topics *mt)
{
    struct truth *t = &c->fleet->truth;
    char name[32];
    if (mt->error_code != 0 || mt->name.n <= 0 || mt->name.n >= (int)sizeof name)
        return;
    memcpy(name, mt->name.p, (size_t)mt->name.n);
    name[mt->name.n] = '\0';
    int topic = truth_topic_by_id(t, &mt->topic_id);
    if (topic >= 0 ? t->topics[topic].is_deleted : !fleet_has_topic(c->fleet, name, &mt->topic_id))
        return; /* not every broker knows that yet */
    topic = truth_topic_shown(t, name, &mt->topic_id, mt->n_partitions, 0);
    if (topic < 0 || topic != c->topic)
        return;
    for (int32_t i = 0; i < mt->n_partitions; i++) {
        int32_t leader = mt->partitions[i].leader_id;
        if (mt->partitions[i].partition_index == c->partition && leader >= 1 && leader <= c->fleet->swarm.n_brokers)
            c->leader = leader - 1;
    }
}

static void heard_metadata(struct fleet_client *c, const struct metadata_response *rsp)
{
    c->n_metadata--;
    for (int32_t i = 0; i < rsp->n_topics; i++)
        heard_of_topic(c, &rsp->topics[i]);
    if (c->topic < 0 || c->leader < 0)
        later(c);
}

/* There is a partition to work on, and somebody who is said to lead it. */
static bool has_target(struct fleet_client *c)
{
    if (c->topic < 0)
        draw_target(c);
    if (c->topic >= 0 && c->leader >= 0)
        return true;
    ask_metadata(c);
    return false;
}

/* ---- producers ---- */
struct pending {
    int32_t batch;
    bool again; /* sent more than once */
};

struct producer {
    struct fleet_client c; /* first */
    bool idempotent;
    int16_t acks;
    int in_flight_max;
    int32_t records_max, value_max;
    int64_t gap_ns, next_batch_ns;
    int64_t pid;
    bool pid_asked;
    int16_t epoch;
    int32_t next_seq[TRUTH_TOPICS][TRUTH_PARTITIONS];
    struct pending pending[IN_FLIGHT_MAX]; /* in the order of their sequences */
    int n_pending, n_asked;
    bool again; /* something failed: all that is pending is sent once more, when no answer is under way */
    int n_errors; /* one after the other */
};

static struct producer *producer_of(struct fleet_client *c)
{
    return container_of(c, struct producer, c);
}

static void producer_start(struct fleet_client *c)
{
    struct producer *p = producer_of(c);
    struct rnd *r = &c->rnd;
    p->idempotent = !rnd_one_in(r, 3);
    p->acks = p->idempotent || rnd_one_in(r, 3) ? -1 : (int16_t)rnd_range(r, 0, 1);
    p->in_flight_max = (int)rnd_range(r, 1, IN_FLIGHT_MAX);
    p->records_max = (int32_t)rnd_log(r, 1, 10);
    p->value_max = (int32_t)rnd_log(r, 1, 1000);
    p->gap_ns = rnd_log(r, 10 * SIM_MS, 500 * SIM_MS);
    p->pid = -1;
}

static void ask_produce(struct producer *p, struct truth_batch *b)
{
    struct fleet_client *c = &p->c;
    struct bytebuf bytes = { 0 };
    sim_batch_write(&b->spec, &bytes);
    b->crc = get_be32(bytes.p + 17);
    struct produce_request_partition_data part = { .index = b->partition, .records = { .p = bytes.p, .n = (int32_t)bytes.n } };
    struct produce_request_topic_data data = { .name = kstr_of(""),
                                               .topic_id = c->fleet->truth.topics[b->topic].id,
                                               .partition_data = &part,
                                               .n_partition_data = 1 };
    struct produce_request q = {
        .transactional_id = KSTR_NULL, .acks = b->acks, .timeout_ms = TIMEOUT_MS, .topic_data = &data, .n_topic_data = 1
    };
    struct asked *asked = ask(c, c->leader, &wire_produce_request, 13, &q);
    bytebuf_done(&bytes);
    asked->a = b->spec.batch;
    asked->b = fleet_leads(c->fleet, b->topic, b->partition, c->leader);
    if (b->acks == 0)
        client_forget(link_to(c, c->leader), asked);
    else
        p->n_asked++;
}

static void send_new(struct producer *p)
{
    struct fleet_client *c = &p->c;
    struct truth *t = &c->fleet->truth;
    int32_t count = (int32_t)rnd_range(&c->rnd, 1, p->records_max);
    int32_t fits = (int32_t)(c->fleet->swarm.segment_bytes - SIM_BATCH_HEAD) / count - 40; /* a batch that is longer is refused */
    struct sim_batch_spec spec = {
        .client = c->number,
        .batch = t->clients[c->number].n,
        .count = count,
        .value_bytes = (int32_t)rnd_range(&c->rnd, 0, MIN(p->value_max, fits)),
        .keys = rnd_u64(&c->rnd),
        .timestamp_ms = SIM_WALL_START_MS + now_of(c) / SIM_MS,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
    };
    if (p->idempotent) {
        int32_t *seq = &p->next_seq[c->topic][c->partition];
        spec.producer_id = p->pid;
        spec.producer_epoch = p->epoch;
        spec.base_sequence = *seq;
        *seq += spec.count;
    }
    struct truth_batch *b = truth_new_batch(t, c->number, c->topic, c->partition, &spec, p->acks);
    if (p->acks == 0) {
        truth_unknown(t, b);
        c->n_good++;
    } else {
        p->pending[p->n_pending++] = (struct pending){ .batch = spec.batch };
    }
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

static struct truth_batch *batch_of(const struct producer *p, int i)
{
    return truth_batch(&p->c.fleet->truth, p->c.number, p->pending[i].batch);
}

/* Nobody will know what became of what is under way. */
static void give_up(struct producer *p)
{
    for (int i = 0; i < p->n_pending; i++)
        truth_unknown(&p->c.fleet->truth, batch_of(p, i));
    p->n_pending = 0;
    p->again = false;
    p->pid = -1; /* a sequence may be missing now */
    p->c.topic = p->c.leader = -1;
}

static void ask_pid(struct producer *p)
{
    struct init_producer_id_request q;
    if (p->pid_asked)
        return;
    wire_defaults(&wire_init_producer_id_request, &q);
    q.transactional_id = KSTR_NULL;
    q.transaction_timeout_ms = 60000;
    ask(&p->c, any_broker(&p->c), &wire_init_producer_id_request, 4, &q);
    p->pid_asked = true;
}

static void send_again(struct producer *p)
{
    p->again = false;
    for (int i = 0; i < p->n_pending; i++) {
        p->pending[i].again = true;
        ask_produce(p, batch_of(p, i));
    }
}

static void producer_act(struct fleet_client *c)
{
    struct producer *p = producer_of(c);
    if (now_of(c) < c->not_before_ns || (c->stops && p->n_pending == 0))
        return;
    if (c->topic >= 0 && !may_use(c, c->topic, c->partition))
        give_up(p);
    if (!has_target(c))
        return;
    if (p->again) {
        if (p->n_asked == 0)
            send_again(p);
        return;
    }
    if (c->stops)
        return;
    if (p->idempotent && p->pid < 0) {
        ask_pid(p);
        return;
    }
    while (p->n_pending < p->in_flight_max && now_of(c) >= p->next_batch_ns) {
        send_new(p);
        p->next_batch_ns = now_of(c) + rnd_range(&c->rnd, 0, 2 * p->gap_ns);
        if (p->n_pending == 0) { /* acks=0: nobody says where it has gone to */
            c->leader = rnd_one_in(&c->rnd, 10) ? -1 : c->leader;
            break;
        }
    }
    if (p->n_pending == 0 && rnd_one_in(&c->rnd, 40))
        c->topic = -1;
}

static void producer_lost(struct fleet_client *c, struct asked *q)
{
    struct producer *p = producer_of(c);
    if (q->api == API_INIT_PRODUCER_ID)
        p->pid_asked = false;
    if (q->api != API_PRODUCE)
        return;
    p->n_asked--;
    int i = pending_find(p, q->a);
    if (i < 0)
        return;
    if (p->idempotent) {
        p->again = true;
        return;
    }
    truth_unknown(&c->fleet->truth, batch_of(p, i));
    pending_take(p, i);
}

/* Of those errors none is for what may have been appended. UNKNOWN_TOPIC_OR_PARTITION is: a batch may wait in a topic that is
 * deleted. */
static bool was_not_done(int16_t err)
{
    return err == KERR_NOT_ENOUGH_REPLICAS || err == KERR_UNKNOWN_TOPIC_ID;
}

static void mark_produce_error(int16_t err)
{
    MARK_IF(err == KERR_NOT_LEADER_OR_FOLLOWER, "fleet: a producer asked one who does not lead");
    MARK_IF(err == KERR_NOT_ENOUGH_REPLICAS, "fleet: not enough replicas");
    MARK_IF(err == KERR_REQUEST_TIMED_OUT, "fleet: a batch was not committed in time");
    marks_error(API_PRODUCE, err);
}

/* led: all the time since the question. One who does not know yet that he was replaced may not have what came after (R17). */
static void producer_refused(struct producer *p, int i, int16_t err, bool led)
{
    struct fleet_client *c = &p->c;
    struct truth *t = &c->fleet->truth;
    struct truth_batch *b = batch_of(p, i);
    sim_note(c->fleet->sim, "produce error", c->number, err, b->spec.batch);
    mark_produce_error(err);
    if (err == KERR_CORRUPT_MESSAGE || err == KERR_INVALID_PRODUCER_EPOCH || err == KERR_INVALID_RECORD)
        sim_fail(c->fleet->sim, "C1", "batch %d.%d: %s", c->number, b->spec.batch, kerr_name((enum kerr)err));
    if (err != KERR_NOT_ENOUGH_REPLICAS && err != KERR_REQUEST_TIMED_OUT)
        c->leader = -1;
    later(c);
    if (!p->idempotent) {
        if (was_not_done(err))
            truth_refused(t, b);
        else
            truth_unknown(t, b);
        pending_take(p, i);
    } else if (err == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER && i == 0 && led && !t->topics[b->topic].delete_asked) {
        sim_fail(c->fleet->sim, "C5", "batch %d.%d (%s-%d, sequence %d): the broker has lost the one before it", c->number,
                 b->spec.batch, t->topics[b->topic].name, b->partition, b->spec.base_sequence);
    } else {
        MARK_IF(err == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER && i == 0, "fleet: one who was replaced says that a sequence is missing");
        p->again = true;
    }
}

static void answered_produce(struct producer *p, int broker, const struct asked *q, const struct produce_response *rsp)
{
    struct fleet_client *c = &p->c;
    struct truth *t = &c->fleet->truth;
    const struct produce_response_partition_responses *pr = &rsp->responses[0].partition_responses[0];
    p->n_asked--;
    int i = pending_find(p, q->a);
    if (i < 0)
        return; /* given up */
    if (pr->error_code != 0) {
        const struct truth_batch *refused = batch_of(p, i);
        bool led = q->b >= 0 && fleet_leads(c->fleet, refused->topic, refused->partition, broker) == q->b;
        producer_refused(p, i, pr->error_code, led);
        return;
    }
    struct truth_batch *b = batch_of(p, i);
    MARK_IF(p->pending[i].again, "fleet: a batch that was sent again was acknowledged");
    if (b->acks == 1)
        truth_unknown(t, b); /* the next leader need not have it */
    else
        truth_acked(t, b, pr->base_offset);
    c->n_good++;
    pending_take(p, i);
}

static void producer_answered(struct fleet_client *c, int broker, struct asked *q, void *answer)
{
    struct producer *p = producer_of(c);
    if (q->api == API_PRODUCE) {
        answered_produce(p, broker, q, answer);
    } else if (q->api == API_METADATA) {
        heard_metadata(c, answer);
    } else {
        const struct init_producer_id_response *rsp = answer;
        p->pid_asked = false;
        if (rsp->error_code != 0) {
            later(c);
            return;
        }
        p->pid = rsp->producer_id;
        p->epoch = rsp->producer_epoch;
        memset(p->next_seq, 0, sizeof p->next_seq);
        truth_producer_id(&c->fleet->truth, p->pid, p->epoch);
    }
}

static const struct fleet_kind fleet_producer = {
    .name = "producer",
    .size = sizeof(struct producer),
    .start = producer_start,
    .act = producer_act,
    .answered = producer_answered,
    .lost = producer_lost,
};

/* ---- consumers ---- */
struct consumer {
    struct fleet_client c; /* first */
    int64_t position;
    bool is_asking;
    int32_t max_wait_ms, max_bytes;
};

static struct consumer *consumer_of(struct fleet_client *c)
{
    return container_of(c, struct consumer, c);
}

static void consumer_start(struct fleet_client *c)
{
    struct consumer *f = consumer_of(c);
    f->max_wait_ms = (int32_t)rnd_log(&c->rnd, 1, 2000);
    f->max_bytes = (int32_t)rnd_log(&c->rnd, 100, 1 << 20);
}

static void ask_fetch(struct consumer *f)
{
    struct fleet_client *c = &f->c;
    struct fetch_request_partitions part = { .partition = c->partition,
                                             .current_leader_epoch = -1,
                                             .fetch_offset = f->position,
                                             .last_fetched_epoch = -1,
                                             .log_start_offset = -1,
                                             .partition_max_bytes = f->max_bytes };
    struct fetch_request_topics topic = { .topic = kstr_of(""), .topic_id = topic_of(c)->id, .partitions = &part, .n_partitions = 1 };
    struct fetch_request q;
    wire_defaults(&wire_fetch_request, &q);
    q.max_wait_ms = f->max_wait_ms;
    q.min_bytes = 1;
    q.max_bytes = f->max_bytes;
    q.topics = &topic;
    q.n_topics = 1;
    struct asked *asked = ask(c, c->leader, &wire_fetch_request, 16, &q);
    asked->b = fleet_leads(c->fleet, c->topic, c->partition, c->leader);
}

static void ask_end(struct consumer *f)
{
    struct fleet_client *c = &f->c;
    struct list_offsets_request_partitions part = { .partition_index = c->partition, .current_leader_epoch = -1, .timestamp = -1 };
    struct list_offsets_request_topics topic = { .name = kstr_of(topic_of(c)->name), .partitions = &part, .n_partitions = 1 };
    struct list_offsets_request q = { .replica_id = -1, .topics = &topic, .n_topics = 1 };
    struct asked *asked = ask(c, c->leader, &wire_list_offsets_request, 7, &q);
    asked->a = topic_of(c)->parts[c->partition].committed;
    asked->b = fleet_leads(c->fleet, c->topic, c->partition, c->leader);
}

static void consumer_act(struct fleet_client *c)
{
    struct consumer *f = consumer_of(c);
    if (c->stops || f->is_asking || now_of(c) < c->not_before_ns)
        return;
    if (c->topic >= 0 && !may_use(c, c->topic, c->partition))
        c->topic = -1;
    if (c->topic >= 0 && rnd_one_in(&c->rnd, 60))
        c->topic = -1;
    if (c->topic < 0)
        f->position = -1;
    if (!has_target(c))
        return;
    if (f->position < 0)
        f->position = rnd_one_in(&c->rnd, 2) ? 0 : rnd_range(&c->rnd, 0, topic_of(c)->parts[c->partition].committed);
    f->is_asking = true;
    if (rnd_one_in(&c->rnd, 6))
        ask_end(f);
    else
        ask_fetch(f);
}

static void consumer_lost(struct fleet_client *c, struct asked *q)
{
    if (q->api != API_METADATA)
        consumer_of(c)->is_asking = false;
}

/* It led from before the question was sent until now. */
static bool led_all_the_time(const struct fleet_client *c, int broker, const struct asked *q)
{
    return q->b >= 0 && fleet_leads(c->fleet, c->topic, c->partition, broker) == q->b;
}

static void consumer_failed(struct consumer *f, int broker, const struct asked *q, int16_t err)
{
    struct fleet_client *c = &f->c;
    const struct truth_topic *t = topic_of(c);
    const struct truth_partition *part = &t->parts[c->partition];
    sim_note(c->fleet->sim, "fetch error", c->number, err, f->position);
    marks_error(q->api, err);
    later(c);
    c->leader = -1;
    MARK_IF(err == KERR_OFFSET_NOT_AVAILABLE, "fleet: a new leader does not know the end yet");
    if (err != KERR_OFFSET_OUT_OF_RANGE || t->delete_asked)
        return;
    if (led_all_the_time(c, broker, q) && f->position <= part->committed)
        sim_fail(c->fleet->sim, "C1", "%s-%d: broker %d says that offset %lld is out of range, but all below %lld was committed", t->name,
                 c->partition, broker + 1, (long long)f->position, (long long)part->committed);
    f->position = -1;
}

static void answered_fetch(struct consumer *f, int broker, const struct asked *q, const struct fetch_response *rsp)
{
    struct fleet_client *c = &f->c;
    struct truth *t = &c->fleet->truth;
    if (rsp->error_code != 0 || rsp->n_responses != 1 || rsp->responses[0].n_partitions != 1) {
        later(c);
        c->topic = -1;
        return;
    }
    const struct fetch_response_partitions *pr = &rsp->responses[0].partitions[0];
    if (pr->error_code != 0) {
        consumer_failed(f, broker, q, pr->error_code);
        return;
    }
    c->n_good++;
    struct slice rest = slice_of(pr->records.p, pr->records.n < 0 ? 0 : (size_t)pr->records.n);
    while (rest.n > 0) {
        struct sim_batch_head h;
        int64_t next = truth_read(t, c->topic, c->partition, rest.p, rest.n, f->position, 0);
        sim_batch_head(rest.p, rest.n, &h);
        if (next > pr->high_watermark)
            sim_fail(c->fleet->sim, "C3", "%s-%d: the batch at %lld is read, but only %lld is committed", t->topics[c->topic].name,
                     c->partition, (long long)h.base_offset, (long long)pr->high_watermark);
        f->position = next;
        rest = slice_of(rest.p + h.size, rest.n - (size_t)h.size);
    }
    if (pr->records.n <= 0 || rnd_one_in(&c->rnd, 4))
        later(c);
}

static void answered_end(struct consumer *f, int broker, const struct asked *q, const struct list_offsets_response *rsp)
{
    struct fleet_client *c = &f->c;
    const struct list_offsets_response_partitions *pr = &rsp->topics[0].partitions[0];
    if (pr->error_code != 0) {
        consumer_failed(f, broker, q, pr->error_code);
        return;
    }
    if (!topic_of(c)->delete_asked && led_all_the_time(c, broker, q) && pr->offset < q->a)
        sim_fail(c->fleet->sim, "R16", "%s-%d: broker %d says that it ends at %lld, but all below %lld was committed", topic_of(c)->name,
                 c->partition, broker + 1, (long long)pr->offset, (long long)q->a);
    c->n_good++;
}

static void consumer_answered(struct fleet_client *c, int broker, struct asked *q, void *answer)
{
    struct consumer *f = consumer_of(c);
    if (q->api == API_METADATA) {
        heard_metadata(c, answer);
        return;
    }
    f->is_asking = false;
    if (q->api == API_FETCH)
        answered_fetch(f, broker, q, answer);
    else
        answered_end(f, broker, q, answer);
}

static const struct fleet_kind fleet_consumer = {
    .name = "consumer",
    .size = sizeof(struct consumer),
    .start = consumer_start,
    .act = consumer_act,
    .answered = consumer_answered,
    .lost = consumer_lost,
};

/* ---- positions of groups ---- */
/* Commits ever greater numbers, one at a time. When the fate of one is not known a group with another name goes on: a commit that
 * comes late may take the place of a later one, by right. */
struct positions {
    struct fleet_client c; /* first */
    struct {
        int64_t acked, asked;
        int topic;
    } groups[GROUPS_MAX];
    int at, n;
    int coordinator; /* -1: to be asked for */
    bool is_asking;
};

static struct positions *positions_of(struct fleet_client *c)
{
    return container_of(c, struct positions, c);
}

static void positions_start(struct fleet_client *c)
{
    struct positions *g = positions_of(c);
    g->coordinator = -1;
    g->n = 1;
    g->groups[0].acked = g->groups[0].asked = -1;
    g->groups[0].topic = -1;
}

static void name_of_group(const struct positions *g, int i, char ret[24])
{
    snprintf(ret, 24, "g%d-%d", g->c.number, i);
}

static void ask_coordinator(struct positions *g)
{
    char name[24];
    name_of_group(g, g->at, name);
    struct kstr key = kstr_of(name);
    struct find_coordinator_request q;
    wire_defaults(&wire_find_coordinator_request, &q);
    q.coordinator_keys = &key;
    q.n_coordinator_keys = 1;
    ask(&g->c, any_broker(&g->c), &wire_find_coordinator_request, 4, &q);
    g->is_asking = true;
}

static void ask_commit(struct positions *g)
{
    char name[24];
    struct fleet_client *c = &g->c;
    name_of_group(g, g->at, name);
    g->groups[g->at].asked++;
    struct offset_commit_request_partitions part = { .partition_index = 0,
                                                     .committed_offset = g->groups[g->at].asked,
                                                     .committed_leader_epoch = -1,
                                                     .committed_metadata = KSTR_NULL };
    struct offset_commit_request_topics topic = { .topic_id = c->fleet->truth.topics[g->groups[g->at].topic].id,
                                                  .partitions = &part,
                                                  .n_partitions = 1 };
    struct offset_commit_request q;
    wire_defaults(&wire_offset_commit_request, &q);
    q.group_id = kstr_of(name);
    q.generation_id_or_member_epoch = -1;
    q.member_id = kstr_of("");
    q.topics = &topic;
    q.n_topics = 1;
    struct asked *asked = ask(c, g->coordinator, &wire_offset_commit_request, 10, &q);
    asked->a = g->at;
    g->is_asking = true;
}

static void ask_position(struct positions *g, int i)
{
    char name[24];
    struct fleet_client *c = &g->c;
    int32_t zero = 0;
    name_of_group(g, i, name);
    struct offset_fetch_request_groups_topics topic = { .topic_id = c->fleet->truth.topics[g->groups[i].topic].id,
                                                        .partition_indexes = &zero,
                                                        .n_partition_indexes = 1 };
    struct offset_fetch_request_groups group = {
        .group_id = kstr_of(name), .member_id = KSTR_NULL, .member_epoch = -1, .topics = &topic, .n_topics = 1
    };
    struct offset_fetch_request q;
    wire_defaults(&wire_offset_fetch_request, &q);
    q.groups = &group;
    q.n_groups = 1;
    struct asked *asked = ask(c, g->coordinator, &wire_offset_fetch_request, 10, &q);
    asked->a = i;
    asked->c = g->groups[i].acked;
    int offsets = truth_topic_live(&c->fleet->truth, "__consumer_offsets");
    asked->b = offsets < 0 ? -1 : fleet_leads(c->fleet, offsets, 0, g->coordinator);
    g->is_asking = true;
}

static void next_group(struct positions *g)
{
    if (g->n == GROUPS_MAX)
        return;
    g->at = g->n++;
    g->groups[g->at].acked = g->groups[g->at].asked = -1;
    g->groups[g->at].topic = -1;
}

static void positions_act(struct fleet_client *c)
{
    struct positions *g = positions_of(c);
    if (c->stops || g->is_asking || now_of(c) < c->not_before_ns)
        return;
    int topic = g->groups[g->at].topic;
    if (topic >= 0 && c->fleet->truth.topics[topic].delete_asked) /* its positions go with it */
        next_group(g);
    if (g->groups[g->at].topic < 0) {
        draw_target(c);
        g->groups[g->at].topic = c->topic;
        if (c->topic < 0)
            ask_metadata(c);
        later(c);
        return;
    }
    if (g->coordinator < 0) {
        ask_coordinator(g);
        return;
    }
    int i = (int)rnd_below(&c->rnd, (uint64_t)g->n);
    bool is_last = g->n == GROUPS_MAX && g->groups[g->at].asked > g->groups[g->at].acked; /* its fate is not known */
    if (rnd_one_in(&c->rnd, 3) || is_last)
        ask_position(g, g->groups[i].topic >= 0 ? i : g->at);
    else
        ask_commit(g);
    later(c);
}

static void positions_lost(struct fleet_client *c, struct asked *q)
{
    struct positions *g = positions_of(c);
    if (q->api == API_METADATA)
        return;
    g->is_asking = false;
    g->coordinator = -1;
    if (q->api == API_OFFSET_COMMIT)
        next_group(g);
}

static void answered_commit(struct positions *g, const struct asked *q, const struct offset_commit_response *rsp)
{
    int16_t err = rsp->n_topics == 1 && rsp->topics[0].n_partitions == 1 ? rsp->topics[0].partitions[0].error_code : -1;
    marks_error(API_OFFSET_COMMIT, err);
    if (err == 0) {
        g->groups[q->a].acked = g->groups[q->a].asked;
        g->c.n_good++;
        return;
    }
    g->coordinator = -1;
    next_group(g);
}

static void answered_position(struct positions *g, int broker, const struct asked *q, const struct offset_fetch_response *rsp)
{
    struct fleet_client *c = &g->c;
    const struct offset_fetch_response_groups *group = &rsp->groups[0];
    int offsets = truth_topic_live(&c->fleet->truth, "__consumer_offsets");
    int topic = g->groups[q->a].topic;
    if (rsp->n_groups != 1 || group->error_code != 0) {
        g->coordinator = -1;
        return;
    }
    c->n_good++;
    if (c->fleet->truth.topics[topic].delete_asked || group->n_topics != 1 || group->topics[0].n_partitions != 1 ||
        group->topics[0].partitions[0].error_code != 0)
        return;
    int64_t offset = group->topics[0].partitions[0].committed_offset;
    bool led = q->b >= 0 && offsets >= 0 && fleet_leads(c->fleet, offsets, 0, broker) == q->b;
    if ((led && offset < q->c) || offset > g->groups[q->a].asked)
        sim_fail(c->fleet->sim, "C11", "group g%d-%d: broker %d says that %lld is committed, but %lld was acknowledged, and up to %lld asked",
                 c->number, (int)q->a, broker + 1, (long long)offset, (long long)q->c, (long long)g->groups[q->a].asked);
    MARK_IF(led && q->c >= 0, "fleet: a position was read");
}

static void positions_answered(struct fleet_client *c, int broker, struct asked *q, void *answer)
{
    struct positions *g = positions_of(c);
    if (q->api == API_METADATA) {
        heard_metadata(c, answer);
        return;
    }
    g->is_asking = false;
    if (q->api == API_FIND_COORDINATOR) {
        const struct find_coordinator_response *rsp = answer;
        bool found = rsp->n_coordinators == 1 && rsp->coordinators[0].error_code == 0;
        if (found && rsp->coordinators[0].node_id >= 1 && rsp->coordinators[0].node_id <= c->fleet->swarm.n_brokers)
            g->coordinator = rsp->coordinators[0].node_id - 1;
        else
            later(c);
        if (found)
            ask_metadata(c); /* which shows the topic of the positions */
    } else if (q->api == API_OFFSET_COMMIT) {
        answered_commit(g, q, answer);
    } else {
        answered_position(g, broker, q, answer);
    }
}

static const struct fleet_kind fleet_positions = {
    .name = "group",
    .size = sizeof(struct positions),
    .start = positions_start,
    .act = positions_act,
    .answered = positions_answered,
    .lost = positions_lost,
};

/* ---- administration ---- */
struct admin {
    struct fleet_client c; /* first */
    bool is_asking;
    int about; /* the topic that is being deleted */
    char name[8];
};

static struct admin *admin_of(struct fleet_client *c)
{
    return container_of(c, struct admin, c);
}

static void admin_start(struct fleet_client *c)
{
    (void)c;
}

static void ask_create(struct admin *ad, int name)
{
    struct fleet_client *c = &ad->c;
    const struct fleet_swarm *sw = &c->fleet->swarm;
    char min_isr[8], segment[24];
    snprintf(min_isr, sizeof min_isr, "%d", sw->min_isr[name]);
    snprintf(segment, sizeof segment, "%lld", (long long)sw->segment_bytes);
    struct create_topics_request_configs configs[] = {
        { kstr_of("min.insync.replicas"), kstr_of(min_isr) },
        { kstr_of("segment.bytes"), kstr_of(segment) },
        { kstr_of("message.timestamp.after.max.ms"), kstr_of("9223372036854775807") },
        { kstr_of("retention.ms"), kstr_of("-1") },
    };
    struct create_topics_request_topics topic = { .name = kstr_of(ad->name),
                                                  .num_partitions = sw->n_partitions[name],
                                                  .replication_factor = (int16_t)sw->rf[name],
                                                  .configs = configs,
                                                  .n_configs = ARRAY_LEN(configs) };
    struct create_topics_request q = { .topics = &topic, .n_topics = 1, .timeout_ms = TIMEOUT_MS };
    truth_topic_asked(&c->fleet->truth, ad->name, false, false, false);
    ask(c, any_broker(c), &wire_create_topics_request, 7, &q);
}

static void ask_delete(struct admin *ad)
{
    struct fleet_client *c = &ad->c;
    struct truth_topic *t = &c->fleet->truth.topics[ad->about];
    struct delete_topics_request_topics topic = { .name = KSTR_NULL, .topic_id = t->id };
    struct delete_topics_request q = { .topics = &topic, .n_topics = 1, .timeout_ms = TIMEOUT_MS };
    t->delete_asked = true;
    ask(c, any_broker(c), &wire_delete_topics_request, 6, &q);
}

static void ask_elect(struct admin *ad)
{
    struct elect_leaders_request q = { .election_type = 0, .topic_partitions = NULL, .n_topic_partitions = -1, .timeout_ms = TIMEOUT_MS };
    ask(&ad->c, any_broker(&ad->c), &wire_elect_leaders_request, 2, &q);
}

static void ask_move(struct admin *ad, int name)
{
    struct fleet_client *c = &ad->c;
    const struct fleet_swarm *sw = &c->fleet->swarm;
    int32_t replicas[FLEET_BROKERS];
    int n = 0;
    for (int i = 0; i < sw->n_brokers; i++) { /* any rf of them, in any order */
        int at = (int)rnd_below(&c->rnd, (uint64_t)++n);
        replicas[n - 1] = replicas[at];
        replicas[at] = i + 1;
    }
    struct alter_partition_reassignments_request_partitions part = {
        .partition_index = (int32_t)rnd_below(&c->rnd, (uint64_t)sw->n_partitions[name]), .replicas = replicas, .n_replicas = sw->rf[name]
    };
    struct alter_partition_reassignments_request_topics topic = { .name = kstr_of(ad->name), .partitions = &part, .n_partitions = 1 };
    struct alter_partition_reassignments_request q = { .timeout_ms = TIMEOUT_MS, .allow_replication_factor_change = true, .topics = &topic, .n_topics = 1 };
    if (rnd_one_in(&c->rnd, 5)) { /* takes back what is going on */
        part.replicas = NULL;
        part.n_replicas = -1;
    }
    ask(c, any_broker(c), &wire_alter_partition_reassignments_request, 1, &q);
}

static void admin_act(struct fleet_client *c)
{
    struct admin *ad = admin_of(c);
    const struct fleet_swarm *sw = &c->fleet->swarm;
    struct truth *t = &c->fleet->truth;
    if (ad->is_asking || c->n_metadata > 0 || now_of(c) < c->not_before_ns || c->stops)
        return;
    int name = (int)rnd_below(&c->rnd, (uint64_t)sw->n_topics), what = (int)rnd_below(&c->rnd, 10);
    snprintf(ad->name, sizeof ad->name, "t%d", name);
    ad->about = truth_topic_live(t, ad->name);
    bool is_faulty = c->fleet->phase == PLAY_FAULTS;
    bool going = ad->about >= 0 && t->topics[ad->about].delete_asked;
    ad->is_asking = true;
    if (ad->about < 0 || (going && rnd_one_in(&c->rnd, 2))) {
        ask_create(ad, name);
    } else if (going || (what == 0 && is_faulty && sw->deletes && t->n_topics < TRUTH_TOPICS / 2)) {
        ask_delete(ad);
    } else if (what < 3 && is_faulty && sw->moves) {
        ask_move(ad, name);
    } else if (what == 3 && is_faulty && sw->moves) {
        ask_elect(ad);
    } else {
        ad->is_asking = false;
        ask_metadata(c);
    }
    c->not_before_ns = now_of(c) + rnd_log(&c->rnd, 10 * SIM_MS, 2 * SIM_S);
}

static void admin_lost(struct fleet_client *c, struct asked *q)
{
    if (q->api != API_METADATA)
        admin_of(c)->is_asking = false;
}

static void admin_answered(struct fleet_client *c, int broker, struct asked *q, void *answer)
{
    struct admin *ad = admin_of(c);
    struct truth *t = &c->fleet->truth;
    (void)broker;
    c->n_good++;
    if (q->api == API_METADATA) {
        heard_metadata(c, answer);
        c->not_before_ns = now_of(c) + rnd_log(&c->rnd, 10 * SIM_MS, 2 * SIM_S);
        return;
    }
    ad->is_asking = false;
    if (q->api == API_CREATE_TOPICS) {
        const struct create_topics_response *rsp = answer;
        marks_error(q->api, rsp->topics[0].error_code);
        int known = truth_topic_by_id(t, &rsp->topics[0].topic_id);
        if (rsp->topics[0].error_code == 0 && (known < 0 || !t->topics[known].is_deleted)) {
            known = truth_topic_shown(t, ad->name, &rsp->topics[0].topic_id, rsp->topics[0].num_partitions, 0);
            if (known >= 0)
                c->fleet->is_made[known] = true;
            if (known >= 0 && !fleet_has_topic(c->fleet, ad->name, &rsp->topics[0].topic_id) && !t->topics[known].delete_asked)
                sim_fail(c->fleet->sim, "T1", "topic %s was made, as we are told, and is not in the registers", ad->name);
        }
    } else if (q->api == API_DELETE_TOPICS) {
        const struct delete_topics_response *rsp = answer;
        marks_error(q->api, rsp->responses[0].error_code);
        MARK_IF(rsp->responses[0].error_code == 0, "fleet: a topic was deleted");
        if (rsp->responses[0].error_code == 0)
            truth_topic_deleted(t, ad->about);
    } else if (q->api == API_ALTER_PARTITION_REASSIGNMENTS) {
        const struct alter_partition_reassignments_response *rsp = answer;
        MARK_IF(rsp->error_code == 0 && rsp->n_responses == 1 && rsp->responses[0].partitions[0].error_code == 0,
                "fleet: replicas are moved");
    }
}

static const struct fleet_kind fleet_admin = {
    .name = "admin",
    .size = sizeof(struct admin),
    .start = admin_start,
    .act = admin_act,
    .answered = admin_answered,
    .lost = admin_lost,
};

/* ---- all of them ---- */
static void on_timer(struct sim_step *st)
{
    struct fleet_client *c = container_of(st, struct fleet_client, timer);
    c->kind->act(c);
    sim_in(c->fleet->sim, st, rnd_range(&c->rnd, 5 * SIM_MS, 200 * SIM_MS));
}

static void add(struct fleet *f, const struct fleet_kind *kind, int n)
{
    for (int i = 0; i < n && f->n_clients < FLEET_CLIENTS; i++) {
        struct fleet_client *c = xcalloc(1, kind->size);
        c->fleet = f;
        c->kind = kind;
        c->number = f->n_clients;
        c->rnd = rnd_of(sim_seed(f->sim), RND_CLIENT, (uint64_t)c->number);
        c->topic = c->leader = -1;
        c->timer.run = on_timer;
        f->clients[f->n_clients++] = c;
        kind->start(c);
        sim_in(f->sim, &c->timer, rnd_range(&c->rnd, 0, SIM_S));
    }
}

void fleet_clients_add(struct fleet *f)
{
    add(f, &fleet_admin, f->swarm.n_admins);
    add(f, &fleet_producer, f->swarm.n_producers);
    add(f, &fleet_consumer, f->swarm.n_consumers);
    add(f, &fleet_positions, f->swarm.n_groups);
}

void fleet_clients_free(struct fleet *f)
{
    for (int i = 0; i < f->n_clients; i++) {
        sim_cancel(f->sim, &f->clients[i]->timer);
        for (int b = 0; b < FLEET_BROKERS; b++)
            rawclient_free(f->clients[i]->links[b] == NULL ? NULL : &f->clients[i]->links[b]->c);
        free(f->clients[i]);
    }
}

void fleet_clients_stop(struct fleet *f)
{
    for (int i = 0; i < f->n_clients; i++)
        f->clients[i]->stops = true;
}

bool fleet_clients_are_done(const struct fleet *f)
{
    for (int i = 0; i < f->n_clients; i++)
        if (f->clients[i]->kind == &fleet_producer && producer_of(f->clients[i])->n_pending > 0)
            return false;
    return true;
}

void fleet_clients_mark(struct fleet *f)
{
    for (int i = 0; i < f->n_clients; i++)
        f->clients[i]->n_good_then = f->clients[i]->n_good;
}

/* There is no partition that could serve it. */
static bool is_excused(const struct fleet *f, const struct fleet_client *c)
{
    if (f->swarm.gone < 0 || c->kind == &fleet_admin)
        return false;
    if (c->kind == &fleet_positions && !fleet_is_servable(f, "__consumer_offsets", 0))
        return true;
    for (int i = 0; i < f->truth.n_topics; i++)
        for (int p = 0; p < TRUTH_PARTITIONS; p++)
            if (may_use(c, i, p))
                return false;
    return true;
}

const char *fleet_clients_missing(const struct fleet *f)
{
    static char text[64];
    for (int i = 0; i < f->n_clients; i++) {
        const struct fleet_client *c = f->clients[i];
        if (c->n_good > c->n_good_then || is_excused(f, c))
            continue;
        snprintf(text, sizeof text, "%s %d has not had what it asks for", c->kind->name, c->number);
        return text;
    }
    return NULL;
}
