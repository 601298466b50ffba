/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Administration: topics are made, deleted, made anew under the same name, grown; records deleted; settings changed. One
 * question at a time; between them it looks at what is there (Metadata).
 */
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/kerr.h"
#include "tests/sim/marks.h"
#include "tests/sim/play.h"

enum { NAMES = 4 };

struct admin {
    struct rawclient c; /* first */
    int topic;       /* that the question is about; -1 */
    char name[16];
    bool compacts, retains, is_lazy;
};

static struct admin *of(struct rawclient *c)
{
    return container_of(c, struct admin, c);
}

static void start(struct rawclient *c)
{
    of(c)->topic = -1;
}

/* ---- questions ---- */
static void ask_create(struct admin *ad)
{
    struct rawclient *c = &ad->c;
    const struct swarm *sw = &c->play->swarm;
    struct create_topics_request_configs configs[8];
    char segment[24], interval[24];
    int n = 0;
    ad->compacts = sw->compaction && rnd_one_in(&c->rnd, 3);
    ad->retains = sw->retention && rnd_one_in(&c->rnd, 3);
    ad->is_lazy = sw->lazy && !rnd_one_in(&c->rnd, 3);
    snprintf(segment, sizeof segment, "%lld", (long long)sw->segment_bytes);
    snprintf(interval, sizeof interval, "%lld", (long long)sw->index_interval_bytes);
    if (!sw->changes_settings || rnd_one_in(&c->rnd, 2))
        configs[n++] = (struct create_topics_request_configs){ kstr_of("segment.bytes"), kstr_of(segment) };
    configs[n++] = (struct create_topics_request_configs){ kstr_of("index.interval.bytes"), kstr_of(interval) };
    configs[n++] = (struct create_topics_request_configs){ kstr_of("message.timestamp.after.max.ms"), kstr_of("9223372036854775807") };
    configs[n++] = (struct create_topics_request_configs){ kstr_of("retention.ms"), kstr_of("-1") };
    if (ad->compacts) {
        configs[n++] = (struct create_topics_request_configs){ kstr_of("cleanup.policy"), kstr_of("compact") };
        configs[n++] = (struct create_topics_request_configs){ kstr_of("min.cleanable.dirty.ratio"), kstr_of("0.1") };
    } else if (ad->retains) {
        configs[n++] = (struct create_topics_request_configs){ kstr_of("retention.bytes"), kstr_of("20000") };
        configs[n++] = (struct create_topics_request_configs){ kstr_of("segment.ms"), kstr_of("700") }; /* retention rolls them */
    }
    struct create_topics_request_topics topic = { .name = kstr_of(ad->name),
                                                  .num_partitions = (int32_t)rnd_range(&c->rnd, 1, 3),
                                                  .replication_factor = 1,
                                                  .configs = configs };
    if (ad->is_lazy) {
        bool async = rnd_one_in(&c->rnd, 2);
        configs[n++] = (struct create_topics_request_configs){ kstr_of("flush.policy"), kstr_of(async ? "async" : "interval") };
    }
    ad->is_lazy |= sw->changes_policy; /* its records may come to be so */
    truth_topic_asked(client_truth(c), ad->name, ad->compacts, ad->retains, ad->is_lazy);
    struct create_topics_request q = { .topics = &topic, .n_topics = 1, .timeout_ms = 15000 };
    topic.n_configs = n;
    client_ask(c, &wire_create_topics_request, 7, &q);
}

static void ask_delete(struct admin *ad)
{
    struct rawclient *c = &ad->c;
    struct truth_topic *t = &client_truth(c)->topics[ad->topic];
    struct delete_topics_request_topics topic = { .name = KSTR_NULL, .topic_id = t->id };
    struct delete_topics_request q = { .topics = &topic, .n_topics = 1, .timeout_ms = 15000 };
    t->delete_asked = true;
    sim_note(client_sim(c), "deletion asked", ad->topic, 0, 0);
    client_ask(c, &wire_delete_topics_request, 6, &q);
}

/* What nobody may do: all positions would go, or be looked for in the wrong partition. */
static void ask_for_positions(struct admin *ad)
{
    struct rawclient *c = &ad->c;
    struct kstr name = kstr_of("__consumer_offsets");
    ad->topic = -1;
    if (rnd_one_in(&c->rnd, 2)) {
        struct delete_topics_request_topics topic = { .name = name };
        struct delete_topics_request q = { .topics = &topic, .n_topics = 1, .timeout_ms = 15000 };
        client_ask(c, &wire_delete_topics_request, 6, &q);
        return;
    }
    struct create_partitions_request_topics topic = { .name = name, .count = 100, .n_assignments = -1 };
    struct create_partitions_request q = { .topics = &topic, .n_topics = 1, .timeout_ms = 15000 };
    client_ask(c, &wire_create_partitions_request, 3, &q);
}

/* False: it was about another topic. */
static bool heard_of_positions(struct admin *ad, int16_t err)
{
    if (ad->topic >= 0)
        return false;
    if (err == 0)
        sim_fail(client_sim(&ad->c), "C11", "the topic of all positions was deleted, or grown");
    MARK_IF(err == KERR_INVALID_TOPIC_EXCEPTION, "deleting or growing the topic of positions was refused");
    return true;
}

static void ask_grow(struct admin *ad)
{
    struct rawclient *c = &ad->c;
    struct truth_topic *t = &client_truth(c)->topics[ad->topic];
    struct create_partitions_request_topics topic = { .name = kstr_of(t->name),
                                                      .count = MIN(t->n_partitions + 1, TRUTH_PARTITIONS),
                                                      .n_assignments = -1 };
    struct create_partitions_request q = { .topics = &topic, .n_topics = 1, .timeout_ms = 15000 };
    struct asked *asked = client_ask(c, &wire_create_partitions_request, 3, &q);
    asked->a = topic.count;
}

/* By name, which may be another topic's by the time: only where nobody deletes any. */
static void ask_delete_records(struct admin *ad)
{
    struct rawclient *c = &ad->c;
    struct truth *t = client_truth(c);
    struct truth_topic *tt = &t->topics[ad->topic];
    int partition = (int)rnd_below(&c->rnd, (uint64_t)tt->n_partitions);
    const struct truth_partition *p = &tt->parts[partition];
    int64_t to = rnd_range(&c->rnd, 0, p->committed);
    to = to > p->committed - p->committed / 8 ? p->committed : to; /* all there is: a power cut may take what stood behind the start */
    struct delete_records_request_partitions part = { .partition_index = partition, .offset = to };
    struct delete_records_request_topics topic = { .name = kstr_of(tt->name), .partitions = &part, .n_partitions = 1 };
    struct delete_records_request q = { .topics = &topic, .n_topics = 1, .timeout_ms = 15000 };
    if (rnd_one_in(&c->rnd, 4))
        part.offset = MAX(p->start_asked, p->committed - 5);
    truth_start_asked(t, ad->topic, partition, part.offset);
    struct asked *asked = client_ask(c, &wire_delete_records_request, 2, &q);
    asked->a = partition;
}

static void ask_alter(struct admin *ad)
{
    struct rawclient *c = &ad->c;
    const struct truth_topic *t = &client_truth(c)->topics[ad->topic];
    char value[24];
    snprintf(value, sizeof value, "%lld", (long long)rnd_log(&c->rnd, 1024, 64 * 1024));
    struct incremental_alter_configs_request_configs conf = { .name = kstr_of("segment.bytes"), .value = kstr_of(value) };
    struct incremental_alter_configs_request_resources res = { .resource_type = 2,
                                                               .resource_name = kstr_of(t->name),
                                                               .configs = &conf,
                                                               .n_configs = 1 };
    struct incremental_alter_configs_request q = { .resources = &res, .n_resources = 1 };
    client_ask(c, &wire_incremental_alter_configs_request, 1, &q);
}

static void go_on(struct admin *ad)
{
    struct rawclient *c = &ad->c;
    struct truth *t = client_truth(c);
    if (!c->is_open || c->n_asked > 0)
        return;
    int what = (int)rnd_below(&c->rnd, 12);
    snprintf(ad->name, sizeof ad->name, "t%d", (int)rnd_below(&c->rnd, NAMES));
    ad->topic = truth_topic_live(t, ad->name);
    if (c->stops || what < 4)
        client_ask_metadata(c);
    else if (rnd_one_in(&c->rnd, 16))
        ask_for_positions(ad);
    else if (ad->topic < 0 || t->topics[ad->topic].delete_asked)
        ask_create(ad);
    else if (what < 6 && t->n_topics < TRUTH_TOPICS - 8)
        ask_delete(ad);
    else if (what < 8 && t->topics[ad->topic].n_partitions < TRUTH_PARTITIONS)
        ask_grow(ad);
    else if (what < 10 && c->play->swarm.n_admins == 1)
        ask_delete_records(ad);
    else
        ask_alter(ad);
}

static void opened(struct rawclient *c)
{
    go_on(of(c));
}

static void tick(struct rawclient *c)
{
    if (c->end == NULL)
        client_connect(c);
    go_on(of(c));
    client_tick_in(c, rnd_log(&c->rnd, 10 * SIM_MS, 4 * SIM_S));
}

/* ---- answers ---- */
static void answered_create(struct admin *ad, const struct create_topics_response *rsp)
{
    struct rawclient *c = &ad->c;
    const struct create_topics_response_topics *t = &rsp->topics[0];
    play_mark_error(c->play, API_CREATE_TOPICS, t->error_code);
    int known = truth_topic_by_id(client_truth(c), &t->topic_id);
    if (t->error_code != 0 || (known >= 0 && client_truth(c)->topics[known].is_deleted)) /* the answer took its time */
        return;
    int i = truth_topic_shown(client_truth(c), ad->name, &t->topic_id, t->num_partitions, 0);
    if (i >= 0) {
        client_truth(c)->topics[i].compacts |= ad->compacts;
        client_truth(c)->topics[i].retains |= ad->retains;
        client_truth(c)->topics[i].is_lazy |= ad->is_lazy;
    }
}

static void answered_delete(struct admin *ad, const struct delete_topics_response *rsp)
{
    int16_t err = rsp->responses[0].error_code;
    play_mark_error(ad->c.play, API_DELETE_TOPICS, err);
    if (heard_of_positions(ad, err))
        return;
    if (err == 0 || err == KERR_UNKNOWN_TOPIC_ID)
        truth_topic_deleted(client_truth(&ad->c), ad->topic);
}

static void answered(struct rawclient *c, struct asked *q, void *answer, struct arena *a)
{
    struct admin *ad = of(c);
    (void)a;
    switch (q->api) {
    case API_METADATA:
        client_heard_metadata(c, q, answer);
        return;
    case API_CREATE_TOPICS:
        answered_create(ad, answer);
        return;
    case API_DELETE_TOPICS:
        answered_delete(ad, answer);
        return;
    case API_CREATE_PARTITIONS: {
        const struct create_partitions_response *rsp = answer;
        play_mark_error(c->play, q->api, rsp->results[0].error_code);
        if (!heard_of_positions(ad, rsp->results[0].error_code) && rsp->results[0].error_code == 0)
            truth_topic_grown(client_truth(c), ad->topic, (int)q->a);
        return;
    }
    case API_DELETE_RECORDS: {
        const struct delete_records_response *rsp = answer;
        const struct delete_records_response_partitions *p = &rsp->topics[0].partitions[0];
        play_mark_error(c->play, q->api, p->error_code);
        if (p->error_code == 0 && !truth_is_stale(client_truth(c), ad->topic, q->sent_ns))
            truth_start_acked(client_truth(c), ad->topic, (int)q->a, p->low_watermark);
        return;
    }
    default:
        return;
    }
}

const struct client_kind client_admin = {
    .name = "admin",
    .size = sizeof(struct admin),
    .start = start,
    .opened = opened,
    .answered = answered,
    .tick = tick,
};
