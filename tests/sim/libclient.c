/* SPDX-License-Identifier: Apache-2.0 */
/* See libclient.h. Everything but new and free runs on the process's one fiber. */
#include "tests/sim/libclient.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/producer.h"
#include "tests/sim/marks.h"

enum {
    HOST = SIM_HOSTS - 1,
    NUMBER = TRUTH_CLIENTS - 1, /* among the truth's clients */
    PENDING_MAX = 64,
    VALUE_MAX = 1500,
    DELIVERY_MS = 25000,
};

struct libclient {
    struct play *play;
    struct simdisk *disk; /* nobody uses it */
    struct simhost host;
    struct rnd rnd;
    struct loop *loop;
    struct client *client;
    struct producer *producer;
    struct timer timer;
    int64_t gap_ms;
    int value_max;
    int n_pending;
    bool stops;
};

struct one_send {
    struct producer_send send; /* first */
    struct libclient *lc;
    int32_t batch;
    bool all_was_well; /* when it began: it has no reason to fail */
};

/* ---- what is sent ---- */
static void on_told(struct producer_send *s, int rc, enum kerr err, int64_t offset, int32_t n_committed, const char *text)
{
    struct one_send *one = container_of(s, struct one_send, send);
    struct libclient *lc = one->lc;
    struct truth *t = &lc->play->truth;
    struct truth_batch *b = truth_batch(t, NUMBER, one->batch);
    (void)n_committed;
    sim_note(lc->play->sim, "lib/client tells", one->batch, rc, offset);
    lc->n_pending--;
    if (rc == 0 && offset >= 0 && !truth_is_stale(t, b->topic, b->sent_ns))
        truth_acked(t, b, offset);
    else
        truth_unknown(t, b);
    if (rc < 0 && rc != -EMSGSIZE && one->all_was_well && !t->topics[b->topic].delete_asked)
        sim_fail(lc->play->sim, "C12", "lib/client could not deliver a record to %s-%d: %d, %s, %s; and nothing was wrong",
                 t->topics[b->topic].name, b->partition, rc, kerr_name(err), text);
    MARK_IF(rc == 0, "lib/client delivered a record");
    MARK_IF(rc < 0, "lib/client gave a record up");
    free(one);
}

/* -1: there is none. */
static int draw_topic(struct libclient *lc)
{
    const struct truth *t = &lc->play->truth;
    int n = 0, found = -1;
    for (int i = 0; i < t->n_topics; i++)
        if (!t->topics[i].is_deleted && !t->topics[i].delete_asked && !t->topics[i].internal && rnd_one_in(&lc->rnd, (uint64_t)++n))
            found = i;
    return found;
}

static void send_one(struct libclient *lc, int topic, int partition)
{
    struct truth *t = &lc->play->truth;
    struct sim_batch_spec spec = {
        .client = NUMBER,
        .batch = t->clients[NUMBER].n,
        .count = 1,
        .n_keys = 8,
        .keys = rnd_u64(&lc->rnd),
        .producer_id = INT64_C(1) << 40, /* so that their order is looked at; the true one is lib/client's */
    };
    char key[16], value[64 + VALUE_MAX];
    int n_key = snprintf(key, sizeof key, "k%d", sim_batch_key(&spec, 0));
    int n_value = snprintf(value, 64, "%d.%d.0:", NUMBER, spec.batch);
    for (int64_t k = 0, n = rnd_range(&lc->rnd, 0, lc->value_max); k < n; k++)
        value[n_value++] = (char)('a' + k % 26);
    struct producer_record record = { .timestamp = SIM_WALL_START_MS + sim_now(lc->play->sim) / SIM_MS,
                                      .key = kstr_bytes(key, (size_t)n_key),
                                      .value = kstr_bytes(value, (size_t)n_value) };
    struct one_send *one = xcalloc(1, sizeof *one);
    one->lc = lc;
    one->batch = spec.batch;
    one->all_was_well = lc->play->phase != PLAY_FAULTS && lc->play->broker != NULL &&
                        sim_now(lc->play->sim) > MAX(lc->play->paused_until_ns, lc->play->full_until_ns);
    one->send = (struct producer_send){ .topic = t->topics[topic].name,
                                        .topic_id = t->topics[topic].id,
                                        .partition = partition,
                                        .records = &record,
                                        .n_records = 1,
                                        .flush = rnd_one_in(&lc->rnd, 4),
                                        .cb = on_told };
    truth_new_batch(t, NUMBER, topic, partition, &spec, -1)->is_loose = true;
    lc->n_pending++;
    producer_send(lc->producer, &one->send);
}

static void on_timer(struct timer *tm)
{
    struct libclient *lc = container_of(tm, struct libclient, timer);
    int topic = lc->stops ? -1 : draw_topic(lc);
    if (topic >= 0) {
        int partition = (int)rnd_below(&lc->rnd, (uint64_t)lc->play->truth.topics[topic].n_partitions);
        for (int64_t n = rnd_log(&lc->rnd, 1, 16); n > 0 && lc->n_pending < PENDING_MAX; n--)
            send_one(lc, topic, partition);
    }
    timer_set_in(lc->loop, tm, rnd_range(&lc->rnd, 1, 2 * lc->gap_ms));
}

/* ---- the process ---- */
static void process_main(struct simhost *h)
{
    struct libclient *lc = h->user;
    struct client_config cfg = {
        .brokers = "10.0.0.1:9092",
        .client_id = "lib",
        .request_timeout_ms = 5000,
        .retry_backoff_ms = 50,
        .metadata_max_age_ms = 10000,
    };
    struct producer_config producer = {
        .acks = -1,
        .linger_ms = rnd_one_in(&lc->rnd, 2) ? 0 : rnd_log(&lc->rnd, 1, 200),
        .batch_size = (int32_t)rnd_log(&lc->rnd, 200, 16384),
        .delivery_timeout_ms = DELIVERY_MS,
    };
    lc->loop = loop_new(&h->world);
    lc->client = client_new(lc->loop, NULL, &cfg);
    lc->producer = producer_new(lc->client, &producer);
    lc->timer.cb = on_timer;
    timer_set_in(lc->loop, &lc->timer, 1);
    loop_run(lc->loop);
}

static void on_ended(struct simhost *h)
{
    (void)h;
}

struct libclient *libclient_new(struct play *p)
{
    struct libclient *lc = xcalloc(1, sizeof *lc);
    const struct simdisk_config cfg = { .seed = sim_seed(p->sim), .which = 1 };
    lc->play = p;
    lc->rnd = rnd_of(sim_seed(p->sim), RND_CLIENT, 1000);
    lc->gap_ms = rnd_log(&lc->rnd, 10, 500);
    lc->value_max = (int)rnd_log(&lc->rnd, 1, VALUE_MAX);
    lc->disk = simdisk_new(&cfg);
    simhost_init(&lc->host, p->sim, p->nw, lc->disk, HOST);
    lc->host.user = lc;
    lc->host.ended = on_ended;
    simhost_start(&lc->host, process_main);
    return lc;
}

void libclient_stop(struct libclient *lc)
{
    if (lc != NULL)
        lc->stops = true;
}

int libclient_pending(const struct libclient *lc)
{
    return lc == NULL ? 0 : lc->n_pending;
}

/* What it had in memory goes with the program, as that of a killed broker does. */
void libclient_free(struct libclient *lc)
{
    if (lc == NULL)
        return;
    simhost_end(&lc->host, HOST_KILLED);
    simdisk_free(lc->disk);
    free(lc);
}
