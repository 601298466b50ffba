/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /status.json and /history.json, which the status page reads: made by hand, since they are a handful of shapes and long. Names
 * are strangers' and go through metrics_json_string(). On the HTTP server's thread.
 */
#include <inttypes.h>

#include "daemon/server/server.h"
#include "daemon/storage/flusher.h"
#include "daemon/storage/logdirs.h"
#include "daemon/watch/watch_int.h"
#include "lib/base/attr.h"
#include "lib/base/world.h"

enum {
    TOPICS_MAX = 1000, /* on the page; more are counted */
    PARTITIONS_MAX = 5000,
    GROUPS_MAX = 500,
    POSITIONS_MAX = 5000,
};

/* ---- samples ---- */
static void count_requests(void *arg, const char *api, const struct histogram_sum *took)
{
    (void)api;
    uint64_t *n = arg;
    *n += took->count;
}

void sample_take(const struct watch_facts *f, const struct watch_sources *src, struct sample *ret)
{
    *ret = (struct sample){ .mono_ms = world_mono_ms(f->world), .wall_ms = world_wall_ms(f->world) };
    partitions_traffic(src->partitions, &ret->traffic);
    server_each_api(src->server, count_requests, &ret->requests);
}

static void print_sample(const struct sample *s, struct bytebuf *b)
{
    bytebuf_printf(b, "[%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", s->mono_ms, s->wall_ms,
                   s->traffic.records_in, s->traffic.bytes_in, s->traffic.bytes_out, s->requests);
}

void history_page(const struct history *h, struct bytebuf *ret)
{
    bytebuf_adds(ret, "{\"fields\":[\"mono_ms\",\"wall_ms\",\"records_in\",\"bytes_in\",\"bytes_out\",\"requests\"],\"samples\":[");
    for (size_t i = 0; i < h->n; i++) {
        bytebuf_adds(ret, i > 0 ? "," : "");
        print_sample(&h->samples[(h->next + HISTORY_MAX - h->n + i) % HISTORY_MAX], ret);
    }
    bytebuf_adds(ret, "]}\n");
}

/* ---- the broker ---- */
static void print_brokers(const struct survey *s, struct bytebuf *b)
{
    bytebuf_adds(b, ",\"brokers\":[");
    for (size_t i = 0; i < s->image->n_brokers; i++) {
        const struct cluster_broker *br = &s->image->brokers[i];
        bytebuf_printf(b, "%s{\"id\":%" PRId32 ",\"host\":", i > 0 ? "," : "", br->id);
        metrics_json_string(b, br->endpoints[0].host);
        bytebuf_printf(b, ",\"port\":%" PRId32 ",\"rack\":", br->endpoints[0].port);
        metrics_json_string(b, br->rack == NULL ? "" : br->rack);
        bytebuf_printf(b, ",\"controller\":%s}", br->id == s->image->controller_id ? "true" : "false");
    }
    bytebuf_adds(b, "]");
}

static void print_dirs(const struct logdirs *dirs, struct bytebuf *b)
{
    bytebuf_adds(b, ",\"directories\":[");
    for (int i = 0; i < logdirs_count(dirs); i++) {
        struct datadir *dd = logdirs_at(dirs, i);
        int64_t total = 0, free_bytes = 0;
        bool failed = datadir_failed(dd);
        if (!failed)
            datadir_space(dd, &total, &free_bytes);
        bytebuf_adds(b, i > 0 ? ",{\"path\":" : "{\"path\":");
        metrics_json_string(b, datadir_path(dd));
        bytebuf_printf(b, ",\"failed\":%s,\"total_bytes\":%" PRId64 ",\"free_bytes\":%" PRId64 "}", failed ? "true" : "false", total,
                       free_bytes);
    }
    bytebuf_adds(b, "]");
}

struct api_printer {
    struct bytebuf *b;
    bool begun;
};

/* A quantile that lies above every bound is told as null. */
static void print_ms(struct bytebuf *b, uint64_t us)
{
    if (us == UINT64_MAX)
        bytebuf_adds(b, "null");
    else
        bytebuf_printf(b, "%g", (double)us / 1000);
}

static void print_api(void *arg, const char *api, const struct histogram_sum *took)
{
    struct api_printer *p = arg;
    bytebuf_printf(p->b, "%s{\"name\":\"%s\",\"count\":%" PRIu64 ",\"p50_ms\":", p->begun ? "," : "", api, took->count);
    print_ms(p->b, histogram_quantile_us(took, 0.5));
    bytebuf_adds(p->b, ",\"p99_ms\":");
    print_ms(p->b, histogram_quantile_us(took, 0.99));
    bytebuf_adds(p->b, "}");
    p->begun = true;
}

static void print_apis(const struct server *s, struct bytebuf *b)
{
    struct api_printer p = { .b = b };
    bytebuf_adds(b, ",\"apis\":[");
    server_each_api(s, print_api, &p);
    bytebuf_adds(b, "]");
}

static int64_t connections_open(const struct server *s)
{
    struct server_connections c;
    int64_t n = 0;
    for (size_t i = 0; server_connections(s, i, &c); i++)
        n += (int64_t)c.open;
    return n;
}

static void print_broker(const struct watch_facts *f, const struct watch_sources *src, struct bytebuf *b)
{
    struct histogram_sum took = { 0 };
    int64_t waiting;
    flusher_figures(src->flusher, &took, &waiting);
    bytebuf_printf(b, "\"version\":\"%s\",\"broker\":%" PRId32 ",\"cluster\":", PACKAGE_VERSION, src->id);
    metrics_json_string(b, src->cluster_id);
    bytebuf_printf(b, ",\"started_ms\":%" PRId64 ",\"connections\":%" PRId64 ",\"requests_under_way\":%" PRId64
                      ",\"request_bytes\":%" PRId64 ",\"flush_queue\":%" PRId64 ",\"flush_p99_ms\":",
                   f->started_wall_ms, connections_open(src->server), server_requests(src->server),
                   server_memory_bytes(src->server), waiting);
    print_ms(b, histogram_quantile_us(&took, 0.99));
    struct sample now;
    sample_take(f, src, &now);
    bytebuf_adds(b, ",\"sample\":");
    print_sample(&now, b);
}

/* ---- topics ---- */
static void print_partition(int32_t id, const struct survey_partition *p, struct bytebuf *b)
{
    bytebuf_printf(b, "{\"id\":%" PRId32 ",\"leader\":%" PRId32 ",\"replicas\":%" PRId32 ",\"in_sync\":%" PRId32 ",\"hosted\":%s", id,
                   p->leader, p->n_replicas, p->n_isr, p->hosted ? "true" : "false");
    if (p->hosted)
        bytebuf_printf(b, ",\"broken\":%s,\"start\":%" PRId64 ",\"end\":%" PRId64 ",\"bytes\":%" PRId64, p->broken ? "true" : "false",
                       p->start_offset, p->end_offset, p->size_bytes);
    bytebuf_adds(b, "}");
}

static void print_topic(const struct survey_topic *t, size_t *room, struct bytebuf *b)
{
    bytebuf_adds(b, "{\"name\":");
    metrics_json_string(b, t->topic->name);
    bytebuf_printf(b, ",\"internal\":%s,\"n_partitions\":%" PRId32 ",\"hosted\":%" PRId32 ",\"under_replicated\":%" PRId32
                      ",\"offline\":%" PRId32 ",\"bytes\":%" PRId64 ",\"records_in\":%" PRIu64 ",\"bytes_in\":%" PRIu64
                      ",\"bytes_out\":%" PRIu64 ",\"partitions\":[",
                   t->topic->internal ? "true" : "false", t->topic->n_partitions, t->n_hosted, t->n_under_replicated, t->n_offline,
                   t->size_bytes, t->traffic.records_in, t->traffic.bytes_in, t->traffic.bytes_out);
    for (int32_t i = 0; i < t->topic->n_partitions && *room > 0; i++, (*room)--) {
        bytebuf_adds(b, i > 0 ? "," : "");
        print_partition(i, &t->partitions[i], b);
    }
    bytebuf_adds(b, "]}");
}

static void print_topics(const struct survey *s, struct bytebuf *b)
{
    size_t room = PARTITIONS_MAX;
    bytebuf_printf(b, ",\"n_topics\":%zu,\"n_partitions\":%zu,\"under_replicated\":%zu,\"offline\":%zu,\"broken\":%zu,\"topics\":[",
                   s->image->n_topics, s->n_partitions, s->n_under_replicated, s->n_offline, s->n_broken);
    for (size_t i = 0; i < MIN(s->image->n_topics, (size_t)TOPICS_MAX); i++) {
        bytebuf_adds(b, i > 0 ? "," : "");
        print_topic(&s->topics[i], &room, b);
    }
    bytebuf_adds(b, "]");
}

/* ---- groups ---- */
static void print_position(const struct survey_position *p, struct bytebuf *b)
{
    bytebuf_adds(b, "{\"topic\":");
    metrics_json_string(b, p->topic);
    bytebuf_printf(b, ",\"partition\":%" PRId32 ",\"offset\":%" PRId64 ",\"lag\":", p->partition, p->offset);
    if (p->lag < 0)
        bytebuf_adds(b, "null}");
    else
        bytebuf_printf(b, "%" PRId64 "}", p->lag);
}

static void print_group(const struct survey_group *g, size_t *room, struct bytebuf *b)
{
    int64_t lag = 0;
    bool known = true;
    for (size_t i = 0; i < g->n_positions; i++) {
        lag += MAX(g->positions[i].lag, (int64_t)0);
        known &= g->positions[i].lag >= 0;
    }
    bytebuf_adds(b, "{\"id\":");
    metrics_json_string(b, g->id);
    bytebuf_printf(b, ",\"state\":\"%s\",\"members\":%" PRId32 ",\"lag\":%" PRId64 ",\"lag_known\":%s,\"positions\":[", g->state,
                   g->n_members, lag, known ? "true" : "false");
    for (size_t i = 0; i < g->n_positions && *room > 0; i++, (*room)--) {
        bytebuf_adds(b, i > 0 ? "," : "");
        print_position(&g->positions[i], b);
    }
    bytebuf_adds(b, "]}");
}

static void print_groups(const struct survey *s, struct bytebuf *b)
{
    size_t room = POSITIONS_MAX;
    bytebuf_printf(b, ",\"n_groups\":%zu,\"groups\":[", s->n_groups + s->groups_left_out);
    for (size_t i = 0; i < MIN(s->n_groups, (size_t)GROUPS_MAX); i++) {
        bytebuf_adds(b, i > 0 ? "," : "");
        print_group(&s->groups[i], &room, b);
    }
    bytebuf_adds(b, "]");
}

void status_page(const struct watch_facts *f, const struct watch_sources *src, struct bytebuf *ret)
{
    struct survey s;
    survey_make(src, &s);
    bytebuf_adds(ret, "{");
    print_broker(f, src, ret);
    print_brokers(&s, ret);
    print_dirs(src->dirs, ret);
    print_apis(src->server, ret);
    print_topics(&s, ret);
    print_groups(&s, ret);
    bytebuf_adds(ret, "}\n");
    survey_done(&s);
}
