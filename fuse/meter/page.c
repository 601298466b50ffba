/* SPDX-License-Identifier: Apache-2.0 */
/* Telling: /metrics, /healthz and /readyz. On the HTTP server's thread, which only reads what others count. */
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/meter/meter_int.h"
#include "lib/base/attr.h"
#include "lib/base/clock.h"
#include "lib/metrics/http.h"
#include "lib/wire/wire.h"

enum { STUCK_MS = 30000, SERVICE_UNAVAILABLE = 503, OK = 200, SAMPLES_MAX = 10000, SECONDS = 1 };

const struct metric meter_metrics[] = {
#define METRIC(row, name, type, labels, help) { name, METRIC_##type, labels, help },
#include "fuse/meter/metrics.def"
#undef METRIC
};
const size_t n_meter_metrics = ARRAY_LEN(meter_metrics);

enum row {
#define METRIC(row, name, type, labels, help) M_##row,
#include "fuse/meter/metrics.def"
#undef METRIC
};

/* ---- metrics ---- */
static void add_process(struct metrics_text *x, const struct meter *t)
{
    const struct machine *m = t->mount->world.machine;
    metrics_add(x, M_BUILD_INFO, LABELS(PACKAGE_VERSION), 1);
    metrics_add_double(x, M_START_TIME, NO_LABELS, (double)t->started_wall_ms / 1000);
    metrics_add(x, M_OPEN_FDS, NO_LABELS, m->fds_open(m));
    metrics_add(x, M_MAX_FDS, NO_LABELS, m->fd_limit(m));
}

static struct histogram_sum took(const struct meter *t, size_t kind)
{
    struct histogram_sum sum = { 0 };
    for (size_t i = 0; i < LANES; i++)
        histogram_collect(&sum, &t->lanes[i].took[kind]);
    return sum;
}

static void add_errors(struct metrics_text *x, const struct meter *t, size_t kind)
{
    for (int e = 0; e < ERRNOS; e++) {
        const char *name = e == 0 ? NULL : strerrorname_np(e);
        uint64_t n = 0;
        for (size_t i = 0; i < LANES; i++)
            n += counter_get(&t->lanes[i].errors[kind][e]);
        if (n > 0)
            metrics_add(x, M_ERRORS, LABELS(meter_kind_name(kind), name == NULL ? "other" : name), (int64_t)n);
    }
}

/* Kinds that never came have no series. */
static void add_kinds(struct metrics_text *x, const struct meter *t)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct histogram_sum sum = took(t, kind);
        if (sum.count > 0)
            metrics_add_histogram(x, M_SECONDS, LABELS(meter_kind_name(kind)), &sum, SECONDS);
        add_errors(x, t, kind);
    }
}

static void add_files(struct metrics_text *x, const struct meter *t)
{
    uint64_t read_bytes = 0, written = 0, open = 0, open_dirs = 0;
    for (size_t i = 0; i < LANES; i++) {
        const struct lane *l = &t->lanes[i];
        read_bytes += counter_get(&l->read_bytes);
        written += counter_get(&l->written_bytes);
        uint64_t closed = counter_get(&l->closed), closed_dirs = counter_get(&l->closed_dirs); /* before those that were opened */
        open += counter_get(&l->opened) - closed;
        open_dirs += counter_get(&l->opened_dirs) - closed_dirs;
    }
    uint64_t answered = took(t, FUSE_READ).count; /* before those that were taken */
    metrics_add(x, M_READ_BYTES, NO_LABELS, (int64_t)read_bytes);
    metrics_add(x, M_WRITTEN_BYTES, NO_LABELS, (int64_t)written);
    metrics_add(x, M_OPEN_FILES, NO_LABELS, (int64_t)open);
    metrics_add(x, M_OPEN_DIRS, NO_LABELS, (int64_t)open_dirs);
    metrics_add(x, M_BLOCKED_READS, NO_LABELS, (int64_t)(counter_get(&t->taken.reads) - answered));
}

static void add_requests(struct metrics_text *x, const struct meter *t)
{
    const struct wire_api *api;
    for (size_t i = 0; i < APIS_MAX && (api = wire_api_at(i)) != NULL; i++) {
        uint64_t n = counter_get(&t->taken.requests[i]);
        if (n > 0)
            metrics_add(x, M_REQUESTS, LABELS(api->name), (int64_t)n);
    }
    metrics_add(x, M_MISSED, NO_LABELS, atomic_load(&t->missed));
}

static void answer_metrics(const struct meter *t, struct http_answer *ret)
{
    struct metrics_text *x = metrics_text_new(meter_metrics, n_meter_metrics, SAMPLES_MAX);
    ret->status = OK;
    ret->type = "text/plain; version=0.0.4; charset=utf-8";
    add_process(x, t);
    add_kinds(x, t);
    add_files(x, t);
    add_requests(x, t);
    metrics_print(x, &ret->body);
    metrics_text_free(x);
}

/* ---- health ---- */
static void say(struct http_answer *ret, bool good, const char *text)
{
    ret->status = good ? OK : SERVICE_UNAVAILABLE;
    bytebuf_adds(&ret->body, text);
}

static void answer_health(const struct meter *t, struct http_answer *ret)
{
    bool stuck = atomic_load(&t->phase) == METER_SERVING && clock_mono_ms() - atomic_load(&t->beat_mono_ms) > STUCK_MS;
    say(ret, !stuck, stuck ? "the thread that serves the mount has not come round for 30 s\n" : "ok\n");
}

static void answer_ready(const struct meter *t, struct http_answer *ret)
{
    enum meter_phase phase = atomic_load(&t->phase);
    bool missed = atomic_load(&t->missed);
    say(ret, phase == METER_SERVING && !missed,
        phase == METER_STARTING   ? "starting: not mounted yet\n"
        : phase == METER_STOPPING ? "stopping\n"
        : missed                  ? "no broker answers\n"
                                  : "ok\n");
}

static void answer_front(const struct meter *t, struct http_answer *ret)
{
    (void)t;
    ret->status = OK;
    bytebuf_printf(&ret->body, "klogfs %s; see /metrics, /healthz, /readyz\n", PACKAGE_VERSION);
}

static const struct page {
    const char *path;
    void (*answer)(const struct meter *t, struct http_answer *ret);
} pages[] = {
    { "/", answer_front },
    { "/healthz", answer_health },
    { "/readyz", answer_ready },
    { "/metrics", answer_metrics },
};

void meter_answer(void *arg, const char *path, struct http_answer *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        if (strcmp(path, pages[i].path) == 0)
            pages[i].answer(arg, ret);
}
