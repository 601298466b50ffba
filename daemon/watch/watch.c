/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life, paths and the history of the last hour. The HTTP server's thread runs everything but watch_new(), watch_serve(),
 * watch_stop() and watch_free(), which the broker calls; the middle two do their work by a call into that thread, so that no
 * lock is needed.
 */
#include "daemon/watch/watch.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/server/server.h"
#include "daemon/watch/watch_int.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/loop.h"
#include "lib/loop/thread.h"
#include "lib/metrics/http.h"

enum { STUCK_MS = 30000, SERVICE_UNAVAILABLE = 503, OK = 200 };

enum phase { STARTING, SERVING, STOPPING };

struct watch {
    struct watch_facts facts;
    struct http_server *http;
    enum phase phase;
    struct watch_sources src; /* while SERVING */
    struct history history;
    struct timer sample;
    int64_t stuck_ms; /* how long a reactor had not come round when that was last asked */
};

/* ---- history ---- */
static void take_sample(struct watch *w)
{
    struct history *h = &w->history;
    sample_take(&w->facts, &w->src, &h->samples[h->next]);
    h->next = (h->next + 1) % HISTORY_MAX;
    h->n = MIN(h->n + 1, (size_t)HISTORY_MAX);
}

static void on_sample(struct timer *t)
{
    struct watch *w = container_of(t, struct watch, sample);
    take_sample(w);
    w->stuck_ms = server_beat(w->src.server, world_mono_ms(w->facts.world));
    timer_set_in(http_server_loop(w->http), &w->sample, HISTORY_STEP_MS);
}

/* ---- paths ---- */
static void say(struct http_answer *ret, bool good, const char *text)
{
    ret->status = good ? OK : SERVICE_UNAVAILABLE;
    bytebuf_adds(&ret->body, text);
}

/* Alive as long as this process answers and its reactors come round: else only a restart helps. */
static void answer_health(struct watch *w, struct http_answer *ret)
{
    bool stuck = w->phase == SERVING && w->stuck_ms > STUCK_MS;
    say(ret, !stuck, stuck ? "a thread that serves connections has not come round for 30 s\n" : "ok\n");
}

static void answer_ready(struct watch *w, struct http_answer *ret)
{
    bool registered = w->phase == SERVING && cluster_broker_epoch(w->src.cluster) >= 0;
    say(ret, registered,
        w->phase == STARTING   ? "starting: logs are being opened\n"
        : w->phase == STOPPING ? "stopping\n"
        : registered           ? "ok\n"
                               : "this broker is not registered in its cluster\n");
}

static void answer_front(struct watch *w, struct http_answer *ret)
{
    (void)w;
    ret->status = OK;
    ret->type = "text/html; charset=utf-8";
    bytebuf_add(&ret->body, status_html, status_html_bytes);
}

static void answer_metrics(struct watch *w, struct http_answer *ret)
{
    ret->status = OK;
    ret->type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_page(&w->facts, &w->src, &ret->body);
}

static void answer_status(struct watch *w, struct http_answer *ret)
{
    ret->status = OK;
    ret->type = "application/json";
    status_page(&w->facts, &w->src, &ret->body);
}

static void answer_history(struct watch *w, struct http_answer *ret)
{
    ret->status = OK;
    ret->type = "application/json";
    history_page(&w->history, &ret->body);
}

static const struct page {
    const char *path;
    bool always; /* also while the broker starts and stops */
    void (*answer)(struct watch *w, struct http_answer *ret);
} pages[] = {
    { "/", true, answer_front },
    { "/healthz", true, answer_health },
    { "/readyz", true, answer_ready },
    { "/metrics", false, answer_metrics },
    { "/status.json", false, answer_status },
    { "/history.json", false, answer_history },
};

static void on_request(void *arg, const char *path, struct http_answer *ret)
{
    struct watch *w = arg;
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        if (strcmp(path, pages[i].path) != 0)
            continue;
        if (w->phase == SERVING || pages[i].always)
            pages[i].answer(w, ret);
        else
            say(ret, false, w->phase == STARTING ? "starting\n" : "stopping\n");
        return;
    }
}

/* ---- life ---- */
struct watch *watch_new(const struct world *world, const struct broker_config *config, char *err, size_t err_size)
{
    struct watch *w = xcalloc(1, sizeof *w);
    w->facts = (struct watch_facts){ .world = world, .started_wall_ms = world_wall_ms(world) };
    w->sample.cb = on_sample;
    w->http = http_server_new(world, config->http_listener, "http.listener", on_request, w, err, err_size);
    if (w->http != NULL)
        return w;
    free(w);
    return NULL;
}

static void serve_on_loop(void *arg)
{
    struct watch *w = arg;
    w->phase = SERVING;
    on_sample(&w->sample);
}

void watch_serve(struct watch *w, const struct watch_sources *src)
{
    if (w == NULL)
        return;
    w->src = *src; /* nobody looks at it before the phase says so */
    loop_call(http_server_loop(w->http), serve_on_loop, w);
}

static void stop_on_loop(void *arg)
{
    struct watch *w = arg;
    w->phase = STOPPING;
    timer_clear(http_server_loop(w->http), &w->sample);
}

void watch_stop(struct watch *w)
{
    if (w != NULL)
        loop_call(http_server_loop(w->http), stop_on_loop, w);
}

void watch_free(struct watch *w)
{
    if (w == NULL)
        return;
    http_server_free(w->http);
    free(w);
}

const char *watch_address(const struct watch *w)
{
    return http_server_address(w->http);
}
