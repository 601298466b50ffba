/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reactor: one round waits for descriptors, then runs their callbacks, due timers, posted
 * tasks and what was put off to the end of the round, in this order; then it wakes the loops that it gave tasks to.
 *
 * Everything is touched by the loop's thread alone, except what stands under "guarded by mu".
 * Invariants: a callback may delete any descriptor, timer or task, its own included; what was
 * deleted is not called any more, this round included. A round does a bounded amount of work:
 * what callbacks add to a queue waits for the next round, and so do tasks when those before them took long, since
 * descriptors and timers wait meanwhile.
 */
#include "lib/loop/loop.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>

#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/lock.h"
#include "lib/base/mem.h"
#include "lib/loop/loop_int.h"
#include "lib/loop/net.h"

enum {
    EVENTS_MAX = 256,
    TASKS_MS = 5, /* of a round: no further task is begun after that */
    WAKES_MAX = 16,
};

struct loop {
    const struct world *world;
    struct poller *poller;
    int64_t now_ms;

    struct poll_event events[EVENTS_MAX];
    int n_events, next_event; /* of this round; the ones before next_event are done */

    struct timer **heap; /* heap[1 .. n_timers]; the earliest is at 1 */
    size_t n_timers, heap_cap;

    TAILQ_HEAD(, deferred) deferred;
    size_t n_deferred;

    struct loop *to_wake[WAKES_MAX]; /* loops that were given tasks in this round and sleep */
    int n_to_wake;

    uint8_t *scratch;
    struct rcbuf *cache[LOOP_CACHE_SLOTS];
    unsigned cache_hand; /* slot to give up next */

    struct lock mu;
    STAILQ_HEAD(, task) tasks; /* guarded by mu */
    size_t n_tasks;            /* guarded by mu */
    bool sleeping;             /* guarded by mu: in poller_wait, so a post has to wake it */
    bool stop;                 /* guarded by mu */
};

/* ---- waking ---- */
/* Does a sleeper have to be woken? That itself comes after mu, since it would wake a thread that wants mu at once. */
static bool loop_must_wake(struct loop *lp)
{
    lock_assert_held(&lp->mu);
    bool sleeping = lp->sleeping;
    lp->sleeping = false;
    return sleeping;
}

static void loop_wake(struct loop *lp)
{
    loop_net(lp)->poller_wake(lp->poller);
}

/* Waking who sleeps on an idle processor takes longer than sending an answer: out of a round it is put off until the round's
 * output has gone. */
static void loop_wake_soon(struct loop *lp)
{
    struct loop *mine = thread_state.loop;
    if (mine != NULL && mine->n_to_wake < WAKES_MAX)
        mine->to_wake[mine->n_to_wake++] = lp;
    else
        loop_wake(lp);
}

static void loop_wake_others(struct loop *lp)
{
    for (int i = 0; i < lp->n_to_wake; i++)
        loop_wake(lp->to_wake[i]);
    lp->n_to_wake = 0;
}

/* ---- life ---- */
struct loop *loop_new(const struct world *w)
{
    struct poller *poller = w->net->poller_new(w->net);
    if (poller == NULL)
        return NULL;
    struct loop *lp = xcalloc(1, sizeof *lp);
    lp->world = w;
    lp->poller = poller;
    lp->now_ms = world_mono_ms(w);
    lock_init(&lp->mu, LOCK_RANK_LOOP, "loop");
    STAILQ_INIT(&lp->tasks);
    TAILQ_INIT(&lp->deferred);
    return lp;
}

void loop_free(struct loop *lp)
{
    if (lp == NULL)
        return;
    /* Closed connections free themselves at the end of a round: this is the last one. */
    for (struct deferred *d; (d = TAILQ_FIRST(&lp->deferred)) != NULL;) {
        loop_defer_cancel(lp, d);
        d->cb(d);
    }
    for (int i = 0; i < LOOP_CACHE_SLOTS; i++)
        rcbuf_unref(lp->cache[i]);
    loop_net(lp)->poller_free(lp->poller);
    lock_done(&lp->mu);
    free(lp->heap);
    free(lp->scratch);
    free(lp);
}

bool loop_is_mine(const struct loop *lp)
{
    return thread_state.loop == lp;
}

int64_t loop_now_ms(const struct loop *lp)
{
    return lp->now_ms;
}

const struct world *loop_world(const struct loop *lp)
{
    return lp->world;
}

/* ---- descriptors ---- */
int loop_fd_add(struct loop *lp, struct loop_fd *w)
{
    return loop_net(lp)->poller_add(lp->poller, w);
}

void loop_fd_mod(struct loop *lp, struct loop_fd *w, uint32_t events)
{
    if (w->events == events)
        return;
    w->events = events;
    loop_net(lp)->poller_mod(lp->poller, w);
}

void loop_fd_del(struct loop *lp, struct loop_fd *w)
{
    loop_net(lp)->poller_del(lp->poller, w);
    for (int i = lp->next_event; i < lp->n_events; i++) {
        if (lp->events[i].w == w)
            lp->events[i].w = NULL;
    }
}

static void loop_run_fds(struct loop *lp, int n)
{
    lp->n_events = n;
    for (lp->next_event = 0; lp->next_event < lp->n_events;) {
        struct poll_event *ev = &lp->events[lp->next_event++];
        if (ev->w != NULL)
            ev->w->cb(ev->w, ev->events);
    }
    lp->n_events = lp->next_event = 0;
}

/* ---- timers: a binary heap ---- */
static void heap_place(struct loop *lp, size_t i, struct timer *t)
{
    lp->heap[i] = t;
    t->heap_index = (int)i;
}

static void heap_sift_up(struct loop *lp, size_t i)
{
    struct timer *t = lp->heap[i];
    for (; i > 1 && lp->heap[i / 2]->due_ms > t->due_ms; i /= 2)
        heap_place(lp, i, lp->heap[i / 2]);
    heap_place(lp, i, t);
}

static void heap_sift_down(struct loop *lp, size_t i)
{
    struct timer *t = lp->heap[i];
    for (;;) {
        size_t child = 2 * i;
        if (child > lp->n_timers)
            break;
        if (child < lp->n_timers && lp->heap[child + 1]->due_ms < lp->heap[child]->due_ms)
            child++;
        if (lp->heap[child]->due_ms >= t->due_ms)
            break;
        heap_place(lp, i, lp->heap[child]);
        i = child;
    }
    heap_place(lp, i, t);
}

void timer_set(struct loop *lp, struct timer *t, int64_t due_ms)
{
    bool later = t->heap_index != 0 && due_ms > t->due_ms;
    t->due_ms = due_ms;
    if (t->heap_index == 0) {
        if (lp->n_timers + 2 > lp->heap_cap) {
            lp->heap_cap = MAX((size_t)16, lp->heap_cap * 2);
            lp->heap = xreallocarray(lp->heap, lp->heap_cap, sizeof *lp->heap);
        }
        KCHECK(lp->n_timers < INT_MAX - 1);
        heap_place(lp, ++lp->n_timers, t);
    }
    KCHECK(lp->heap[t->heap_index] == t);
    if (later)
        heap_sift_down(lp, (size_t)t->heap_index);
    else
        heap_sift_up(lp, (size_t)t->heap_index);
}

void timer_set_in(struct loop *lp, struct timer *t, int64_t in_ms)
{
    timer_set(lp, t, time_add(lp->now_ms, MAX(in_ms, 0)));
}

void timer_clear(struct loop *lp, struct timer *t)
{
    size_t i = (size_t)t->heap_index;
    if (i == 0)
        return;
    KCHECK(i <= lp->n_timers && lp->heap[i] == t);
    t->heap_index = 0;
    struct timer *last = lp->heap[lp->n_timers--];
    if (last == t)
        return;
    heap_place(lp, i, last);
    heap_sift_up(lp, i);
    heap_sift_down(lp, (size_t)last->heap_index);
}

void loop_clear_timers(struct loop *lp)
{
    for (size_t i = 1; i <= lp->n_timers; i++)
        lp->heap[i]->heap_index = 0;
    lp->n_timers = 0;
}

static void loop_run_timers(struct loop *lp)
{
    for (size_t left = lp->n_timers; left > 0 && lp->n_timers > 0; left--) {
        struct timer *t = lp->heap[1];
        if (t->due_ms > lp->now_ms)
            return;
        timer_clear(lp, t);
        t->cb(t);
    }
}

/* ---- tasks ---- */
void loop_post(struct loop *lp, struct task *t)
{
    bool wake = false;
    lock_take(&lp->mu);
    if (!t->queued) {
        t->queued = true;
        STAILQ_INSERT_TAIL(&lp->tasks, t, link);
        lp->n_tasks++;
        wake = loop_must_wake(lp);
    }
    lock_release(&lp->mu);
    if (wake)
        loop_wake_soon(lp);
}

void loop_cancel(struct loop *lp, struct task *t)
{
    lock_take(&lp->mu);
    if (t->queued) {
        t->queued = false;
        STAILQ_REMOVE(&lp->tasks, t, task, link);
        lp->n_tasks--;
    }
    lock_release(&lp->mu);
}

static struct task *loop_take_task(struct loop *lp)
{
    lock_take(&lp->mu);
    struct task *t = STAILQ_FIRST(&lp->tasks);
    if (t != NULL) {
        STAILQ_REMOVE_HEAD(&lp->tasks, link);
        t->queued = false;
        lp->n_tasks--;
    }
    lock_release(&lp->mu);
    return t;
}

static void loop_run_tasks(struct loop *lp, size_t at_most)
{
    int64_t until_ms = world_mono_ms(lp->world) + TASKS_MS;
    struct task *t;
    while (at_most-- > 0 && (t = loop_take_task(lp)) != NULL) {
        t->cb(t);
        if (world_mono_ms(lp->world) >= until_ms)
            return;
    }
}

/* ---- the end of the round ---- */
void loop_defer(struct loop *lp, struct deferred *d)
{
    if (d->queued)
        return;
    d->queued = true;
    TAILQ_INSERT_TAIL(&lp->deferred, d, link);
    lp->n_deferred++;
}

void loop_defer_cancel(struct loop *lp, struct deferred *d)
{
    if (!d->queued)
        return;
    d->queued = false;
    TAILQ_REMOVE(&lp->deferred, d, link);
    lp->n_deferred--;
}

static void loop_run_deferred(struct loop *lp)
{
    for (size_t left = lp->n_deferred; left > 0 && lp->n_deferred > 0; left--) {
        struct deferred *d = TAILQ_FIRST(&lp->deferred);
        loop_defer_cancel(lp, d);
        d->cb(d);
    }
}

/* ---- rounds ---- */
static int loop_wait_ms(struct loop *lp, int at_most_ms)
{
    if (lp->n_deferred > 0)
        return 0;
    if (lp->n_timers == 0)
        return at_most_ms;
    int64_t left = lp->heap[1]->due_ms - lp->now_ms;
    if (left <= 0)
        return 0;
    if (at_most_ms >= 0 && at_most_ms < left)
        return at_most_ms;
    return (int)MIN(left, (int64_t)INT_MAX);
}

/* False when the loop was told to stop. */
static bool loop_round(struct loop *lp, int timeout_ms)
{
    int wait_ms = loop_wait_ms(lp, timeout_ms);
    lock_take(&lp->mu);
    bool stop = lp->stop;
    size_t n_tasks = lp->n_tasks;
    lp->stop = false;
    if (stop || n_tasks > 0)
        wait_ms = 0;
    lp->sleeping = wait_ms != 0;
    lock_release(&lp->mu);
    if (stop) { /* answers that were posted meanwhile own what they carry */
        for (struct task *t; n_tasks > 0 && (t = loop_take_task(lp)) != NULL; n_tasks--)
            t->cb(t);
        loop_wake_others(lp);
        return false;
    }

    int n = loop_net(lp)->poller_wait(lp->poller, lp->events, EVENTS_MAX, wait_ms);
    lp->now_ms = world_mono_ms(lp->world);

    lock_take(&lp->mu);
    lp->sleeping = false;
    n_tasks = lp->n_tasks;
    lock_release(&lp->mu);

    loop_run_fds(lp, n);
    loop_run_timers(lp);
    if (n_tasks > 0)
        loop_run_tasks(lp, n_tasks);
    loop_run_deferred(lp);
    loop_run_deferred(lp); /* what the first pass put off: a batch it built is sent in this round */
    loop_wake_others(lp);
    return true;
}

/* sendfile has no MSG_NOSIGNAL: a peer that goes away must not kill the process. */
static void block_sigpipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void loop_run(struct loop *lp)
{
    block_sigpipe();
    while (loop_run_once(lp, -1))
        continue;
}

bool loop_run_once(struct loop *lp, int timeout_ms)
{
    struct loop *outer = thread_state.loop;
    thread_state.loop = lp;
    lp->now_ms = world_mono_ms(lp->world);
    bool goes_on = loop_round(lp, timeout_ms);
    thread_state.loop = outer;
    return goes_on;
}

void loop_stop(struct loop *lp)
{
    lock_take(&lp->mu);
    lp->stop = true;
    bool wake = loop_must_wake(lp);
    lock_release(&lp->mu);
    if (wake)
        loop_wake(lp);
}

/* ---- buffers ---- */
uint8_t *loop_scratch(struct loop *lp)
{
    if (lp->scratch == NULL)
        lp->scratch = xmalloc(LOOP_SCRATCH_BYTES);
    return lp->scratch;
}

struct rcbuf *loop_cache_get(struct loop *lp, size_t n)
{
    struct rcbuf *best = NULL;
    for (int i = 0; i < LOOP_CACHE_SLOTS; i++) {
        struct rcbuf *b = lp->cache[i];
        if (b == NULL || b->cap < n || atomic_load_explicit(&b->refs, memory_order_acquire) != 1)
            continue;
        if (best == NULL || b->cap < best->cap)
            best = b;
    }
    if (best == NULL)
        return NULL;
    best->n = 0;
    return rcbuf_ref(best);
}

void loop_cache_put(struct loop *lp, struct rcbuf *b)
{
    if (b->cap < LOOP_CACHE_MIN_BYTES || b->cap > LOOP_CACHE_MAX_BYTES)
        return;
    unsigned slot = lp->cache_hand;
    for (unsigned i = 0; i < LOOP_CACHE_SLOTS; i++) {
        if (lp->cache[i] == b)
            return;
        if (lp->cache[i] == NULL)
            slot = i;
    }
    if (lp->cache[slot] != NULL)
        lp->cache_hand = (slot + 1) % LOOP_CACHE_SLOTS;
    rcbuf_unref(lp->cache[slot]);
    lp->cache[slot] = rcbuf_ref(b);
}
