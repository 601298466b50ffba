/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server knows of its own work. A reactor counts on cache lines of its own, and those who ask add up. Without anybody
 * who watches no clock is read and no answer is looked through.
 */
#include "daemon/server/server_int.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

/* Codes -1 to CODES - 3; the last place is for all others. */
enum { CODES = 160 };

static size_t n_apis(void)
{
    size_t n = 0;
    while (wire_api_at(n) != NULL)
        n++;
    return n;
}

static size_t place_of(const struct wire_api *api)
{
    return (size_t)(api - wire_api_at(0));
}

/* ---- counting ---- */
atomic_ullong *figures_new_errors(void)
{
    return xcalloc(n_apis() * CODES, sizeof(atomic_ullong));
}

static void on_beat(struct task *t)
{
    struct reactor *rx = container_of(t, struct reactor, beat);
    atomic_store(&rx->beat_ms, 0);
}

void figures_start(struct reactor *rx)
{
    rx->beat.cb = on_beat;
    if (rx->server->deps.watched)
        rx->figures.took = xcalloc(n_apis(), sizeof *rx->figures.took);
}

void figures_done(struct reactor *rx)
{
    free(rx->figures.took);
}

void figures_began(struct request *r)
{
    struct reactor *rx = r->session->reactor;
    counter_add(&rx->figures.began, 1);
    if (rx->figures.took != NULL)
        r->began_ns = world_mono_ns(rx->server->deps.world);
}

void figures_answered(struct request *r)
{
    struct reactor *rx = r->session->reactor;
    if (rx->figures.took != NULL && r->api != NULL)
        histogram_add(&rx->figures.took[place_of(r->api)], (world_mono_ns(rx->server->deps.world) - r->began_ns) / 1000);
}

static void count_error(void *arg, int16_t code)
{
    atomic_ullong *of_api = arg;
    atomic_fetch_add_explicit(&of_api[code < -1 || code > CODES - 3 ? CODES - 1 : code + 1], 1, memory_order_relaxed);
}

void figures_errors(const struct request *r, const void *response)
{
    atomic_ullong *errors = r->session->reactor->server->errors;
    if (errors != NULL)
        wire_each_error(r->api->response, r->api_version, response, count_error, &errors[place_of(r->api) * CODES]);
}

/* ---- telling ---- */
static int n_reactors(const struct server *s)
{
    return atomic_load(&s->n_reactors);
}

void server_each_api(const struct server *s, void (*f)(void *arg, const char *api, const struct histogram_sum *took), void *arg)
{
    for (size_t i = 0; s->deps.watched && wire_api_at(i) != NULL; i++) {
        struct histogram_sum sum = { 0 };
        for (int k = 0; k < n_reactors(s); k++)
            histogram_collect(&sum, &s->reactors[k].figures.took[i]);
        if (sum.count > 0)
            f(arg, wire_api_at(i)->name, &sum);
    }
}

void server_each_error(const struct server *s, void (*f)(void *arg, const char *api, int code, uint64_t n), void *arg)
{
    for (size_t i = 0; s->errors != NULL && wire_api_at(i) != NULL; i++)
        for (int code = 0; code < CODES; code++) {
            uint64_t n = counter_get(&s->errors[i * CODES + (size_t)code]);
            if (n > 0)
                f(arg, wire_api_at(i)->name, code == CODES - 1 ? INT16_MAX : code - 1, n);
        }
}

bool server_connections(const struct server *s, size_t i, struct server_connections *ret)
{
    if (i >= s->n)
        return false;
    uint64_t closed = 0;
    *ret = (struct server_connections){ .listener = s->confs[i].name };
    for (int k = 0; k < n_reactors(s); k++)
        closed += counter_get(&s->reactors[k].figures.closed[i]);
    for (int k = 0; k < n_reactors(s); k++)
        ret->created += counter_get(&s->reactors[k].figures.opened[i]);
    ret->open = ret->created > closed ? ret->created - closed : 0;
    return true;
}

int64_t server_requests(const struct server *s)
{
    uint64_t began = 0, ended = 0;
    for (int k = 0; k < n_reactors(s); k++)
        ended += counter_get(&s->reactors[k].figures.ended);
    for (int k = 0; k < n_reactors(s); k++)
        began += counter_get(&s->reactors[k].figures.began);
    return began > ended ? (int64_t)(began - ended) : 0;
}

int64_t server_memory_bytes(const struct server *s)
{
    return atomic_load_explicit(&s->budget.used_bytes, memory_order_relaxed);
}

int64_t server_beat(struct server *s, int64_t now_ms)
{
    int64_t longest_ms = 0;
    for (int i = 0; i < n_reactors(s); i++) {
        struct reactor *rx = &s->reactors[i];
        int64_t asked_ms = atomic_load(&rx->beat_ms);
        if (asked_ms != 0) {
            longest_ms = MAX(longest_ms, now_ms - asked_ms);
            continue;
        }
        atomic_store(&rx->beat_ms, MAX(now_ms, (int64_t)1));
        loop_post(rx->loop, &rx->beat);
    }
    return longest_ms;
}
