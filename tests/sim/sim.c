/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time, steps and the record of a run; see sim.h. The heap is ordered by (time, tie), where tie is drawn as a step is set, so
 * that no order depends on an address or on who came first.
 */
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

enum {
    RING = 512,         /* events kept for the report of a failure */
    HASH_EVERY = 1000,
};

struct event {
    int64_t at_ns;
    const char *what;
    int64_t a, b, c;
};

struct sim {
    uint64_t seed;
    int64_t now_ns;
    uint64_t n_steps;
    struct rnd order;

    struct sim_step **heap; /* heap[1 .. n]; the next is at 1 */
    size_t n, cap;

    struct event ring[RING];
    uint64_t n_events, hash;
    uint64_t *hashes;
    size_t n_hashes, cap_hashes;
    bool trace;

    void (*on_failure)(void *arg, const char *rule);
    void *on_failure_arg;
};

struct sim *sim_new(uint64_t seed)
{
    struct sim *s = xcalloc(1, sizeof *s);
    s->seed = seed;
    s->order = rnd_of(seed, RND_ORDER, 0);
    s->hash = rnd_mix(seed);
    return s;
}

void sim_free(struct sim *s)
{
    if (s == NULL)
        return;
    free(s->heap);
    free(s->hashes);
    free(s);
}

uint64_t sim_seed(const struct sim *s)
{
    return s->seed;
}

int64_t sim_now(const struct sim *s)
{
    return s->now_ns;
}

uint64_t sim_steps(const struct sim *s)
{
    return s->n_steps;
}

/* ---- the heap ---- */
static bool is_before(const struct sim_step *a, const struct sim_step *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->tie < b->tie;
}

static void place(struct sim *s, size_t i, struct sim_step *st)
{
    s->heap[i] = st;
    st->index = i;
}

static void sift_up(struct sim *s, size_t i)
{
    struct sim_step *st = s->heap[i];
    for (; i > 1 && is_before(st, s->heap[i / 2]); i /= 2)
        place(s, i, s->heap[i / 2]);
    place(s, i, st);
}

static void sift_down(struct sim *s, size_t i)
{
    struct sim_step *st = s->heap[i];
    for (size_t child; (child = 2 * i) <= s->n; i = child) {
        if (child < s->n && is_before(s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_before(s->heap[child], st))
            break;
        place(s, i, s->heap[child]);
    }
    place(s, i, st);
}

void sim_cancel(struct sim *s, struct sim_step *st)
{
    size_t i = st->index;
    if (i == 0)
        return;
    KCHECK(i <= s->n && s->heap[i] == st);
    st->index = 0;
    struct sim_step *last = s->heap[s->n--];
    if (last == st)
        return;
    place(s, i, last);
    sift_up(s, i);
    sift_down(s, last->index);
}

void sim_at(struct sim *s, struct sim_step *st, int64_t at_ns)
{
    sim_cancel(s, st);
    st->at_ns = at_ns < s->now_ns ? s->now_ns : at_ns;
    st->tie = rnd_u64(&s->order);
    if (s->n + 2 > s->cap) {
        s->cap = s->cap == 0 ? 64 : 2 * s->cap;
        s->heap = xreallocarray(s->heap, s->cap, sizeof(struct sim_step *));
    }
    place(s, ++s->n, st);
    sift_up(s, s->n);
}

void sim_in(struct sim *s, struct sim_step *st, int64_t in_ns)
{
    sim_at(s, st, s->now_ns + (in_ns < 0 ? 0 : in_ns));
}

/* ---- steps ---- */
void sim_process_ends(struct sim_process *p)
{
    if (!p->is_up)
        return;
    p->is_up = false;
    sim_note(p->sim, "process ended", p->host, p->life, 0);
    p->ended(p);
}

bool sim_go_on(struct sim *s, int64_t until_ns)
{
    if (s->n == 0 || s->heap[1]->at_ns > until_ns) {
        s->now_ns = s->now_ns > until_ns ? s->now_ns : until_ns;
        return false;
    }
    struct sim_step *st = s->heap[1];
    sim_cancel(s, st);
    KCHECK(st->at_ns >= s->now_ns);
    s->now_ns = st->at_ns;
    s->n_steps++;
    st->run(st);
    return true;
}

/* ---- the record ---- */
static void print_event(const struct event *e)
{
    fprintf(stdout, "%12.6f  %-24s %" PRId64 " %" PRId64 " %" PRId64 "\n", (double)e->at_ns / 1e9, e->what, e->a, e->b, e->c);
}

static void keep_hash(struct sim *s)
{
    if (s->n_hashes == s->cap_hashes) {
        s->cap_hashes = s->cap_hashes == 0 ? 64 : 2 * s->cap_hashes;
        s->hashes = xreallocarray(s->hashes, s->cap_hashes, sizeof *s->hashes);
    }
    s->hashes[s->n_hashes++] = s->hash;
}

static uint64_t hash_text(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (; *text != '\0'; text++)
        h = (h ^ (uint8_t)*text) * 1099511628211u;
    return h;
}

void sim_note(struct sim *s, const char *what, int64_t a, int64_t b, int64_t c)
{
    struct event *e = &s->ring[s->n_events++ % RING];
    *e = (struct event){ s->now_ns, what, a, b, c };
    s->hash = rnd_mix(s->hash ^ (uint64_t)s->now_ns) + hash_text(what);
    s->hash = rnd_mix(s->hash ^ (uint64_t)a);
    s->hash = rnd_mix(s->hash ^ (uint64_t)b) + (uint64_t)c;
    if (s->n_events % HASH_EVERY == 0)
        keep_hash(s);
    if (s->trace)
        print_event(e);
}

uint64_t sim_hash(const struct sim *s)
{
    return s->hash;
}

uint64_t sim_events(const struct sim *s)
{
    return s->n_events;
}

const uint64_t *sim_hashes(const struct sim *s, size_t *ret_n)
{
    *ret_n = s->n_hashes;
    return s->hashes;
}

void sim_trace(struct sim *s, bool on)
{
    s->trace = on;
}

void sim_say(struct sim *s, const char *fmt, ...)
{
    if (!s->trace)
        return;
    va_list ap;
    va_start(ap, fmt);
    fprintf(stdout, "%12.6f  ", (double)s->now_ns / 1e9);
    vfprintf(stdout, fmt, ap);
    fputc('\n', stdout);
    va_end(ap);
}

void sim_print_last(const struct sim *s)
{
    uint64_t from = s->n_events > RING ? s->n_events - RING : 0;
    for (uint64_t i = from; i < s->n_events; i++)
        print_event(&s->ring[i % RING]);
}

/* ---- failures ---- */
void sim_on_failure(struct sim *s, void (*f)(void *arg, const char *rule), void *arg)
{
    s->on_failure = f;
    s->on_failure_arg = arg;
}

void sim_fail(struct sim *s, const char *rule, const char *fmt, ...)
{
    va_list ap;
    if (s->on_failure == NULL && !s->trace)
        sim_print_last(s);
    fprintf(stdout, "seed %" PRIu64 ": %s: ", s->seed, rule);
    va_start(ap, fmt);
    vfprintf(stdout, fmt, ap);
    va_end(ap);
    fprintf(stdout, " (at %.6f s, step %" PRIu64 ")\n", (double)s->now_ns / 1e9, s->n_steps);
    if (s->on_failure != NULL)
        s->on_failure(s->on_failure_arg, rule);
    fflush(stdout);
    _exit(SIM_EXIT_FAILED);
}
