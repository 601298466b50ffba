/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics: the rows of metrics.def filled from a survey and from the figures of server, flusher and workers. */
#include <stdio.h>
#include <string.h>

#include "daemon/server/server.h"
#include "daemon/storage/flusher.h"
#include "daemon/storage/logdirs.h"
#include "daemon/watch/watch_int.h"
#include "lib/base/attr.h"
#include "lib/base/kerr.h"
#include "lib/base/world.h"
#include "lib/loop/workers.h"

/* A series that a stranger can make is one of at most so many: a thousand topics of ten partitions, or as many groups. */
enum { SAMPLES_MAX = 10000, MILLISECONDS = 1000 };

const struct metric watch_metrics[] = {
#define METRIC(row, name, type, labels, help) { name, METRIC_##type, labels, help },
#include "daemon/watch/metrics.def"
#undef METRIC
};
const size_t n_watch_metrics = ARRAY_LEN(watch_metrics);

enum row {
#define METRIC(row, name, type, labels, help) M_##row,
#include "daemon/watch/metrics.def"
#undef METRIC
};

/* ---- process ---- */
static void add_process(struct metrics_text *t, const struct watch_facts *f)
{
    const struct machine *m = f->world->machine;
    metrics_add(t, M_BUILD_INFO, LABELS(PACKAGE_VERSION), 1);
    metrics_add(t, M_BROKER_STATE, NO_LABELS, 3);
    metrics_add_double(t, M_START_TIME, NO_LABELS, (double)f->started_wall_ms / 1000);
    metrics_add(t, M_OPEN_FDS, NO_LABELS, m->fds_open(m));
    metrics_add(t, M_MAX_FDS, NO_LABELS, m->fd_limit(m));
}

/* ---- server, storage ---- */
static void add_api(void *arg, const char *api, const struct histogram_sum *took)
{
    metrics_add_histogram(arg, M_REQUEST_MS, LABELS(api), took, MILLISECONDS);
}

static void add_error(void *arg, const char *api, int code, uint64_t n)
{
    metrics_add(arg, M_REQUEST_ERRORS, LABELS(api, kerr_name(code)), (int64_t)n);
}

static void add_server(struct metrics_text *t, const struct server *s)
{
    struct server_connections c;
    server_each_api(s, add_api, t);
    server_each_error(s, add_error, t);
    metrics_add(t, M_REQUESTS, NO_LABELS, server_requests(s));
    metrics_add(t, M_REQUEST_BYTES, NO_LABELS, server_memory_bytes(s));
    for (size_t i = 0; server_connections(s, i, &c); i++) {
        metrics_add(t, M_CONNECTIONS, LABELS(c.listener), (int64_t)c.open);
        metrics_add(t, M_CONNECTIONS_MADE, LABELS(c.listener), (int64_t)c.created);
    }
}

static void add_dirs(struct metrics_text *t, const struct logdirs *dirs)
{
    int n_failed = 0;
    for (int i = 0; i < logdirs_count(dirs); i++) {
        struct datadir *dd = logdirs_at(dirs, i);
        int64_t total, free_bytes;
        if (datadir_failed(dd)) {
            n_failed++;
            continue;
        }
        datadir_space(dd, &total, &free_bytes);
        metrics_add(t, M_DIR_TOTAL, LABELS(datadir_path(dd)), total);
        metrics_add(t, M_DIR_FREE, LABELS(datadir_path(dd)), free_bytes);
    }
    metrics_add(t, M_OFFLINE_DIRS, NO_LABELS, n_failed);
}

static void add_storage(struct metrics_text *t, const struct watch_sources *src)
{
    struct histogram_sum took = { 0 };
    int64_t waiting;
    flusher_figures(src->flusher, &took, &waiting);
    metrics_add_histogram(t, M_FLUSH_MS, NO_LABELS, &took, MILLISECONDS);
    metrics_add(t, M_FLUSH_QUEUE, NO_LABELS, waiting);
    metrics_add(t, M_WORKER_QUEUE, NO_LABELS, workers_waiting(src->workers));
    add_dirs(t, src->dirs);
}

/* ---- topics ---- */
static void add_totals(struct metrics_text *t, struct partitions *ps)
{
    struct traffic all;
    partitions_traffic(ps, &all);
    metrics_add(t, M_MESSAGES_IN, NO_LABELS, (int64_t)all.records_in);
    metrics_add(t, M_BYTES_IN, NO_LABELS, (int64_t)all.bytes_in);
    metrics_add(t, M_BYTES_OUT, NO_LABELS, (int64_t)all.bytes_out);
    metrics_add(t, M_REPLICATION_IN, NO_LABELS, (int64_t)all.copied_in);
    metrics_add(t, M_REPLICATION_OUT, NO_LABELS, (int64_t)all.copied_out);
}

static void add_log(struct metrics_text *t, const char *topic, int32_t id, const struct survey_partition *p)
{
    char number[12];
    snprintf(number, sizeof number, "%d", id);
    metrics_add(t, M_LOG_SIZE, LABELS(topic, number), p->size_bytes);
    metrics_add(t, M_LOG_START, LABELS(topic, number), p->start_offset);
    metrics_add(t, M_LOG_END, LABELS(topic, number), p->end_offset);
}

static void add_topic(struct metrics_text *t, const struct survey_topic *st)
{
    const char *name = st->topic->name;
    if (st->n_hosted == 0)
        return;
    metrics_add(t, M_MESSAGES_IN, LABELS(name), (int64_t)st->traffic.records_in);
    metrics_add(t, M_BYTES_IN, LABELS(name), (int64_t)st->traffic.bytes_in);
    metrics_add(t, M_BYTES_OUT, LABELS(name), (int64_t)st->traffic.bytes_out);
    for (int32_t i = 0; i < st->topic->n_partitions; i++)
        if (st->partitions[i].hosted)
            add_log(t, name, i, &st->partitions[i]);
}

static void add_replicas(struct metrics_text *t, const struct watch_sources *src, const struct survey *s)
{
    struct isr_changes isr = partitions_isr_changes(src->partitions);
    bool controls = s->image->controller_id == src->id;
    metrics_add(t, M_PARTITIONS, NO_LABELS, (int64_t)s->n_hosted);
    metrics_add(t, M_LEADERS, NO_LABELS, (int64_t)s->n_led);
    metrics_add(t, M_UNDER_REPLICATED, NO_LABELS, (int64_t)s->n_under_replicated);
    metrics_add(t, M_UNDER_MIN_ISR, NO_LABELS, (int64_t)s->n_under_min_isr);
    metrics_add(t, M_OFFLINE_REPLICAS, NO_LABELS, (int64_t)s->n_broken);
    metrics_add(t, M_ISR_SHRINKS, NO_LABELS, (int64_t)isr.shrinks);
    metrics_add(t, M_ISR_EXPANDS, NO_LABELS, (int64_t)isr.expands);
    metrics_add(t, M_CONTROLLERS, NO_LABELS, controls);
    metrics_add(t, M_OFFLINE_PARTITIONS, NO_LABELS, controls ? (int64_t)s->n_offline : 0);
    metrics_add(t, M_GLOBAL_TOPICS, NO_LABELS, controls ? (int64_t)s->image->n_topics : 0);
    metrics_add(t, M_GLOBAL_PARTITIONS, NO_LABELS, controls ? (int64_t)s->n_partitions : 0);
    metrics_add(t, M_BROKERS, NO_LABELS, (int64_t)s->image->n_brokers);
}

/* ---- groups ---- */
static void add_group(struct metrics_text *t, const struct survey_group *g)
{
    metrics_add(t, M_GROUP_MEMBERS, LABELS(g->id), g->n_members);
    for (size_t i = 0; i < g->n_positions; i++) {
        const struct survey_position *p = &g->positions[i];
        char number[12];
        snprintf(number, sizeof number, "%d", p->partition);
        metrics_add(t, M_GROUP_OFFSET, LABELS(g->id, p->topic, number), p->offset);
        if (p->lag >= 0)
            metrics_add(t, M_GROUP_LAG, LABELS(g->id, p->topic, number), p->lag);
    }
}

static void add_groups(struct metrics_text *t, const struct survey *s)
{
    metrics_add(t, M_GROUPS, NO_LABELS, (int64_t)(s->n_groups + s->groups_left_out));
    for (size_t i = 0; i < s->n_groups; i++)
        add_group(t, &s->groups[i]);
}

/* ---- the page ---- */
static void add_left_out(struct metrics_text *t, const struct survey *s)
{
    for (size_t row = 0; row < n_watch_metrics; row++) {
        size_t n = metrics_left_out(t, row);
        n += row == M_GROUP_MEMBERS ? s->groups_left_out : row == M_GROUP_OFFSET ? s->positions_left_out : 0;
        if (n > 0)
            metrics_add(t, M_LEFT_OUT, LABELS(watch_metrics[row].name), (int64_t)n);
    }
}

void metrics_page(const struct watch_facts *f, const struct watch_sources *src, struct bytebuf *ret)
{
    struct metrics_text *t = metrics_text_new(watch_metrics, n_watch_metrics, SAMPLES_MAX);
    struct survey s;
    survey_make(src, &s);
    add_process(t, f);
    add_server(t, src->server);
    add_storage(t, src);
    add_totals(t, src->partitions);
    for (size_t i = 0; i < s.image->n_topics; i++)
        add_topic(t, &s.topics[i]);
    add_replicas(t, src, &s);
    add_groups(t, &s);
    add_left_out(t, &s);
    metrics_print(t, ret);
    metrics_text_free(t);
    survey_done(&s);
}
