/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of memory that all connections share (queued.max.request.bytes): frames being received, requests worked
 * on, answers that wait to be taken. Runs on the session's loop; only struct budget is shared.
 *
 * M1. A frame of some kilobytes is always read: who asks for little is served while others take all.
 * M2. Above the budget no larger frame grows, but that of the one session that may go over it. So one always comes to
 *     its end, whatever the others hold, and the sum is bounded by the budget and one frame and its work.
 * M3. Of those who wait the one with the least left comes next, so that claims of much do not hold up who has a little;
 *     every fourth time it is the oldest, so that each comes to its turn.
 * M4. While it is short, who holds much and lets us wait for STALLED_MS (a frame that does not go on, answers that are
 *     not taken) is closed, and earlier the one that may go over, since others wait for it. Has that one sent all and
 *     does not come to an end within OVER_MS, it is answered early where the request allows it, or closed. All
 *     reactors look, whichever of them found it short.
 * M5. The count of a session is brought up to date in steps, since all reactors write to the same word.
 */
#include "daemon/server/server_int.h"

enum {
    SMALL_BYTES = 64 * 1024, /* nobody is closed, and no answer refused, for less */
    STEP_BYTES = 32 * 1024,
    TICK_MS = 20,
    RETRIES_A_TICK = 16,
    LOOK_MS = 250, /* between two looks for those who do not go on */
    STALLED_MS = 2000,
    OVER_STALLED_MS = 500,
    OLDEST_EVERY = 4,
    OVER_MS = 10000,
    TELL_AGAIN_MS = 60000,
};

static struct budget *budget_of(const struct session *s)
{
    return &s->reactor->server->budget;
}

static bool budget_is_short(struct budget *b)
{
    return atomic_load_explicit(&b->used_bytes, memory_order_relaxed) > b->max_bytes;
}

static void charge(struct session *s, int64_t n)
{
    if (n == 0)
        return;
    s->charged_bytes = (size_t)((int64_t)s->charged_bytes + n);
    atomic_fetch_add(&budget_of(s)->used_bytes, n);
}

bool memory_is_short(const struct session *s)
{
    struct budget *b = budget_of(s);
    return budget_is_short(b) && atomic_load(&b->over) != s;
}

/* ---- the one that may go over ---- */
static bool may_go_over(struct session *s)
{
    struct budget *b = budget_of(s);
    struct session *nobody = NULL;
    if (atomic_load(&b->over) == s)
        return true;
    if (!atomic_compare_exchange_strong(&b->over, &nobody, s))
        return false;
    s->over_ms = loop_now_ms(s->reactor->loop);
    return true;
}

static void give_back_over(struct session *s)
{
    struct session *me = s;
    atomic_compare_exchange_strong(&budget_of(s)->over, &me, NULL);
}

/* ---- asking ---- */
static void tell_short(struct session *s)
{
    struct budget *b = budget_of(s);
    long long now = loop_now_ms(s->reactor->loop), told = atomic_load(&b->told_ms);
    if ((told == 0 || now - told >= TELL_AGAIN_MS) && atomic_compare_exchange_strong(&b->told_ms, &told, now))
        log_warn("requests and answers under way take all of queued.max.request.bytes=%lld: larger ones wait, and "
                 "clients that do not go on are closed",
                 (long long)b->max_bytes);
}

static void relieve_soon(struct reactor *rx)
{
    if (!timer_is_set(&rx->relief))
        timer_set(rx->loop, &rx->relief, loop_now_ms(rx->loop) + TICK_MS);
}

static void begin_relief(struct session *s)
{
    struct server *server = s->reactor->server;
    tell_short(s);
    for (int i = 0, n = atomic_load(&server->n_reactors); i < n; i++)
        if (&server->reactors[i] != s->reactor)
            loop_post(server->reactors[i].loop, &server->reactors[i].relieve);
    relieve_soon(s->reactor);
}

static bool take_room(struct session *s, size_t n)
{
    struct budget *b = budget_of(s);
    int64_t used = atomic_load_explicit(&b->used_bytes, memory_order_relaxed);
    if (used > b->max_bytes || (int64_t)n > b->max_bytes - used) {
        begin_relief(s);
        if (!may_go_over(s))
            return false;
    }
    charge(s, (int64_t)n);
    return true;
}

bool memory_take(struct session *s, size_t n)
{
    return n <= SMALL_BYTES || take_room(s, n); /* the next recount has what is small */
}

static void starve(struct session *s)
{
    s->starved = true;
    TAILQ_INSERT_TAIL(&s->reactor->starved, s, starved_link);
    relieve_soon(s->reactor);
}

bool memory_may_take(struct session *s, size_t n)
{
    bool others_first = !TAILQ_EMPTY(&s->reactor->starved) && !s->granted && conn_input_bytes(s->conn) == 0;
    s->granted = false;
    if (!others_first && take_room(s, n))
        return true;
    starve(s);
    return false;
}

static void unstarve(struct session *s)
{
    if (!s->starved)
        return;
    s->starved = false;
    TAILQ_REMOVE(&s->reactor->starved, s, starved_link);
}

void memory_recount(struct session *s)
{
    size_t held = s->request_bytes + conn_input_bytes(s->conn) + conn_output_memory(s->conn);
    int64_t delta = (int64_t)held - (int64_t)s->charged_bytes;
    if (delta >= STEP_BYTES || delta <= -STEP_BYTES)
        charge(s, delta);
    if (atomic_load_explicit(&budget_of(s)->over, memory_order_relaxed) == s &&
        (held < SMALL_BYTES || !budget_is_short(budget_of(s))))
        give_back_over(s);
}

void memory_forget(struct session *s)
{
    unstarve(s);
    charge(s, -(int64_t)s->charged_bytes);
    give_back_over(s);
}

/* ---- relief ---- */
static bool has_unfinished(const struct session *s)
{
    const struct request *r;
    TAILQ_FOREACH(r, &s->requests, link)
        if (r->finish != NULL)
            return true;
    return false;
}

/* Its requests wait and keep memory meanwhile: they are answered now, where they can be. s may be gone then. */
static void end_going_over(struct session *s)
{
    s->over_ms = loop_now_ms(s->reactor->loop);
    if (has_unfinished(s))
        session_drain(s);
    else
        session_evict(s, "its requests and answers took memory for too long while it is short "
                         "(queued.max.request.bytes)");
}

static bool goes_over(const struct session *s)
{
    return atomic_load_explicit(&budget_of(s)->over, memory_order_relaxed) == s;
}

static bool holds_too_long(const struct session *s)
{
    int64_t ms = conn_stalled_ms(s->conn);
    return s->charged_bytes > SMALL_BYTES && (ms >= STALLED_MS || (ms >= OVER_STALLED_MS && goes_over(s)));
}

static void look_for_stalled(struct reactor *rx)
{
    struct session *next;
    int64_t now = loop_now_ms(rx->loop);
    rx->looked_ms = now;
    for (struct session *s = LIST_FIRST(&rx->sessions); s != NULL; s = next) {
        next = LIST_NEXT(s, link);
        if (holds_too_long(s))
            session_evict(s, "it holds memory, which is short (queued.max.request.bytes), and does not go on");
        else if (goes_over(s) && now - s->over_ms >= OVER_MS)
            end_going_over(s);
    }
}

static struct session *next_starved(struct reactor *rx)
{
    struct session *best = TAILQ_FIRST(&rx->starved), *s;
    if (best == NULL || rx->turns++ % OLDEST_EVERY == 0)
        return best;
    TAILQ_FOREACH(s, &rx->starved, starved_link)
        if (conn_input_wanted(s->conn) < conn_input_wanted(best->conn))
            best = s;
    return best;
}

/* Those whose turn it is ask again: some while there is room, else the next one, if it may go over. */
static void ask_again(struct reactor *rx)
{
    struct budget *b = &rx->server->budget;
    bool is_short = budget_is_short(b);
    struct session *s;
    for (int left = is_short ? 1 : RETRIES_A_TICK; left > 0 && !TAILQ_EMPTY(&rx->starved); left--) {
        if (is_short && atomic_load(&b->over) != NULL)
            return;
        s = next_starved(rx);
        unstarve(s);
        s->granted = true;
        conn_retry(s->conn);
    }
}

static void on_relief(struct timer *t)
{
    struct reactor *rx = container_of(t, struct reactor, relief);
    if (!budget_is_short(&rx->server->budget) && TAILQ_EMPTY(&rx->starved))
        return;
    ask_again(rx);
    if (loop_now_ms(rx->loop) - rx->looked_ms >= LOOK_MS)
        look_for_stalled(rx);
    relieve_soon(rx);
}

static void on_relieve(struct task *t)
{
    relieve_soon(container_of(t, struct reactor, relieve));
}

/* ---- life ---- */
void memory_init(struct server *s)
{
    s->budget.max_bytes = broker_config_queued_bytes(s->deps.config);
}

void memory_start(struct reactor *rx)
{
    TAILQ_INIT(&rx->starved);
    rx->relief.cb = on_relief;
    rx->relieve.cb = on_relieve;
}

void memory_stop(struct reactor *rx)
{
    timer_clear(rx->loop, &rx->relief);
    loop_cancel(rx->loop, &rx->relieve);
}
