/* SPDX-License-Identifier: Apache-2.0 */
/* What all raw clients do alike: frames, order of answers, patience; see client.h. */
#include "tests/sim/client.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "tests/sim/play.h"

enum { PATIENCE_S = 20 };

struct sim *client_sim(const struct rawclient *c)
{
    return c->sim;
}

struct truth *client_truth(const struct rawclient *c)
{
    return c->truth;
}

/* ---- life ---- */
static void on_timer(struct sim_step *st)
{
    struct rawclient *c = container_of(st, struct rawclient, timer);
    const struct asked *first = TAILQ_FIRST(&c->asked);
    if (c->end != NULL && first != NULL && !c->reads_nothing && sim_now(client_sim(c)) - first->sent_ns > first->patience_ns) {
        sim_note(client_sim(c), "no answer", c->number, first->api, first->correlation);
        client_close(c);
    }
    c->kind->tick(c);
    if (!sim_step_is_set(st))
        client_tick_in(c, 500 * SIM_MS);
}

struct rawclient *rawclient_new_to(const struct rawclient *like, const struct client_kind *kind, uint64_t stream)
{
    struct rawclient *c = xcalloc(1, kind->size);
    c->play = like->play;
    c->sim = like->sim;
    c->nw = like->nw;
    c->truth = like->truth;
    c->kind = kind;
    c->number = like->number;
    c->host = like->host;
    c->to_host = like->to_host;
    c->rnd = rnd_of(sim_seed(c->sim), RND_CLIENT, stream);
    c->timer.run = on_timer;
    TAILQ_INIT(&c->asked);
    kind->start(c);
    if (!sim_step_is_set(&c->timer))
        client_tick_in(c, rnd_range(&c->rnd, 0, 200 * SIM_MS));
    return c;
}

struct rawclient *rawclient_new(struct play *play, const struct client_kind *kind, int number, int host)
{
    struct rawclient like = { .play = play, .sim = play->sim, .nw = play->nw, .truth = &play->truth, .number = number,
                              .host = host, .to_host = PLAY_BROKER_HOST };
    return rawclient_new_to(&like, kind, (uint64_t)number);
}

static void drop_connection(struct rawclient *c)
{
    c->end = NULL;
    c->is_open = false;
    c->n_closed++;
    bytebuf_done(&c->in);
    bytebuf_done(&c->out);
    bytebuf_done(&c->tap);
    c->in = c->out = c->tap = (struct bytebuf){ 0 };
    c->out_at = 0;
    c->n_tapped = 0;
    for (struct asked *q; (q = TAILQ_FIRST(&c->asked)) != NULL;) {
        TAILQ_REMOVE(&c->asked, q, link);
        c->n_asked--;
        if (c->kind->lost != NULL)
            c->kind->lost(c, q);
        free(q);
    }
    if (c->kind->closed != NULL)
        c->kind->closed(c);
}

void rawclient_free(struct rawclient *c)
{
    if (c == NULL)
        return;
    sim_cancel(client_sim(c), &c->timer);
    if (c->end != NULL)
        simend_close(c->end);
    for (struct asked *q; (q = TAILQ_FIRST(&c->asked)) != NULL;) {
        TAILQ_REMOVE(&c->asked, q, link);
        free(q);
    }
    bytebuf_done(&c->in);
    bytebuf_done(&c->out);
    bytebuf_done(&c->tap);
    free(c);
}

void client_close(struct rawclient *c)
{
    if (c->end == NULL)
        return;
    simend_close(c->end);
    drop_connection(c);
}

void client_tick_in(struct rawclient *c, int64_t ns)
{
    sim_in(client_sim(c), &c->timer, ns);
}

/* ---- writing ---- */
static void flush(struct rawclient *c)
{
    if (!c->is_open)
        return;
    while (c->out_at < c->out.n) {
        size_t k = simend_write(c->end, c->out.p + c->out_at, c->out.n - c->out_at);
        if (k == 0)
            return;
        c->out_at += k;
    }
    c->out.n = c->out_at = 0;
}

void client_send_bytes(struct rawclient *c, const void *p, size_t n)
{
    bytebuf_add(&c->out, p, n);
    flush(c);
}

struct asked *client_ask(struct rawclient *c, const struct wire_message *m, int version, const void *body)
{
    struct wire_out out = { 0 };
    const char *field = NULL;
    struct wire_request_header h = { .api_key = m->api_key,
                                     .api_version = (int16_t)version,
                                     .correlation_id = c->next_correlation,
                                     .client_id = kstr_of("sim") };
    wire_request_header_write(&h, &out);
    int rc = wire_encode(m, version, body, &out, &field);
    if (rc < 0)
        sim_fail(client_sim(c), "SIM", "%s v%d cannot be encoded: %s", m->name, version, field);
    wire_frame_close(&out);

    struct asked *q = xcalloc(1, sizeof *q);
    q->api = m->api_key;
    q->version = (int16_t)version;
    q->correlation = c->next_correlation++;
    q->sent_ns = sim_now(client_sim(c));
    q->patience_ns = PATIENCE_S * SIM_S;
    TAILQ_INSERT_TAIL(&c->asked, q, link);
    c->n_asked++;
    sim_note(client_sim(c), m->name, c->number, q->correlation, (int64_t)out.b.n);
    client_send_bytes(c, out.b.p, out.b.n);
    wire_out_done(&out);
    return q;
}

void client_forget(struct rawclient *c, struct asked *q)
{
    TAILQ_REMOVE(&c->asked, q, link);
    c->n_asked--;
    free(q);
}

/* ---- reading ---- */
static void *decode(struct rawclient *c, const struct asked *q, struct slice frame, struct arena *a)
{
    const struct wire_message *m = wire_api_find(q->api)->response;
    struct slice body;
    int32_t correlation = -1;
    if (wire_response_header_read(q->api, q->version, frame, &correlation, &body) < 0 || correlation != q->correlation)
        sim_fail(client_sim(c), "ORDER", "client %d: the answer to %d (%s) has number %d", c->number, q->correlation, m->name,
                 correlation);
    void *rsp = arena_alloc(a, wire_msg_size(m));
    if (wire_decode(m, q->version, body, a, rsp) < 0)
        sim_fail(client_sim(c), "ORDER", "client %d: the answer to %s v%d cannot be decoded", c->number, m->name, q->version);
    return rsp;
}

/* The next whole frame of b, without its size; false: not there yet. */
static bool next_frame(struct rawclient *c, const struct bytebuf *b, size_t at, struct slice *ret)
{
    if (b->n - at < 4)
        return false;
    uint32_t size = get_be32(b->p + at);
    if (size > 100 * 1024 * 1024)
        sim_fail(client_sim(c), "ORDER", "client %d is sent a frame of %u bytes", c->number, size);
    if (b->n - at - 4 < size)
        return false;
    *ret = slice_of(b->p + at + 4, size);
    return true;
}

static void cut_front(struct bytebuf *b, size_t n)
{
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}

static void take_answer(struct rawclient *c, struct slice frame)
{
    struct asked *q = TAILQ_FIRST(&c->asked);
    struct arena a;
    if (q == NULL)
        sim_fail(client_sim(c), "ORDER", "client %d is sent an answer to nothing", c->number);
    arena_init(&a);
    void *rsp = decode(c, q, frame, &a);
    TAILQ_REMOVE(&c->asked, q, link);
    c->n_asked--;
    if (c->n_tapped > 0)
        c->n_tapped--;
    c->n_answers++;
    sim_note(client_sim(c), "answer", c->number, q->correlation, q->api);
    c->kind->answered(c, q, rsp, &a);
    arena_done(&a);
    free(q);
}

static void on_readable(void *user)
{
    struct rawclient *c = user;
    uint8_t some[16384];
    size_t k, at = 0;
    struct slice frame;
    while (!c->reads_nothing && (k = simend_read(c->end, some, sizeof some)) > 0)
        bytebuf_add(&c->in, some, k);
    /* an answer may make its client close, and begin anew */
    int64_t life = c->n_closed;
    while (life == c->n_closed && next_frame(c, &c->in, at, &frame)) {
        struct bytebuf one = { 0 };
        bytebuf_add(&one, frame.p, frame.n);
        cut_front(&c->in, frame.n + 4);
        take_answer(c, slice_of(one.p, one.n));
        bytebuf_done(&one);
    }
}

static void look_at_written(struct rawclient *c, struct slice frame)
{
    struct asked *q = TAILQ_FIRST(&c->asked);
    struct arena a;
    for (int i = 0; i < c->n_tapped && q != NULL; i++)
        q = TAILQ_NEXT(q, link);
    c->n_tapped++;
    if (q == NULL || q->api != API_PRODUCE)
        return;
    arena_init(&a);
    c->kind->written(c, q, decode(c, q, frame, &a));
    arena_done(&a);
}

static void on_written_to(void *user, const uint8_t *p, size_t n)
{
    struct rawclient *c = user;
    struct slice frame;
    if (c->kind->written == NULL)
        return;
    bytebuf_add(&c->tap, p, n);
    while (next_frame(c, &c->tap, 0, &frame)) {
        look_at_written(c, frame);
        cut_front(&c->tap, frame.n + 4);
    }
}

static void on_opened(void *user)
{
    struct rawclient *c = user;
    c->is_open = true;
    c->kind->opened(c);
    if (c->end != NULL)
        flush(c);
}

static void on_writable(void *user)
{
    flush(user);
}

static void on_gone(void *user, int err)
{
    struct rawclient *c = user;
    sim_note(client_sim(c), "client lost its connection", c->number, err, c->n_asked);
    c->end = NULL;
    drop_connection(c);
}

void client_connect(struct rawclient *c)
{
    static const struct simend_ops ops = {
        .opened = on_opened,
        .readable = on_readable,
        .writable = on_writable,
        .gone = on_gone,
        .written_to = on_written_to,
    };
    KCHECK(c->end == NULL);
    c->end = simend_connect(c->nw, c->host, c->to_host, PLAY_BROKER_PORT, &ops, c);
}

/* ---- what several kinds ask ---- */
struct asked *client_ask_metadata(struct rawclient *c)
{
    struct metadata_request q;
    wire_defaults(&wire_metadata_request, &q);
    q.topics = NULL;
    q.n_topics = -1;
    q.allow_auto_topic_creation = false;
    struct asked *asked = client_ask(c, &wire_metadata_request, 12, &q);
    asked->a = client_truth(c)->n_topics; /* those are known now */
    return asked;
}

void client_heard_metadata(struct rawclient *c, const struct asked *q, const struct metadata_response *rsp)
{
    struct truth *t = client_truth(c);
    bool shown[TRUTH_TOPICS] = { false };
    for (int32_t i = 0; i < rsp->n_topics; i++) {
        const struct metadata_response_topics *mt = &rsp->topics[i];
        char name[32];
        if (mt->error_code != 0 || mt->name.n <= 0 || mt->name.n >= (int)sizeof name)
            continue;
        memcpy(name, mt->name.p, (size_t)mt->name.n);
        name[mt->name.n] = '\0';
        int topic = truth_topic_by_id(t, &mt->topic_id);
        if (topic >= 0 && t->topics[topic].is_deleted && t->topics[topic].deleted_ns >= q->sent_ns)
            continue; /* it went while this was under way */
        topic = truth_topic_shown(t, name, &mt->topic_id, mt->n_partitions, q->sent_ns);
        if (topic >= 0)
            shown[topic] = true;
    }
    for (int i = 0; i < q->a; i++)
        if (!shown[i] && !t->topics[i].is_deleted && t->topics[i].is_known && t->topics[i].known_ns < q->sent_ns)
            truth_topic_missing(t, i, q->sent_ns);
}

int client_draw_topic(struct rawclient *c)
{
    struct truth *t = client_truth(c);
    int n = 0, found = -1;
    for (int i = 0; i < t->n_topics; i++)
        if (!t->topics[i].is_deleted && !t->topics[i].delete_asked && !t->topics[i].internal && rnd_one_in(&c->rnd, (uint64_t)++n))
            found = i;
    return found;
}
