/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit, a lane with a few threads for each log directory: syncs of different files share the disk's
 * own flush, so that many logs do not wait for one another.
 *
 * A queue holds the entries to flush now, a list those that may wait until a moment (policy interval). An entry is
 * in the queue once, however much was appended, and never synced by two threads at once: the kernel tells a failed
 * write to one of them only, and the other would take its own 0 for a promise (S4, S8). Each place in a queue or
 * list holds a reference.
 *
 * Lock order: the owner's (partition.mu), then lane.mu. The threads hold neither while they sync.
 */
#include "daemon/storage/flusher.h"

#include "daemon/config/ranks.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"
#include "lib/metrics/histogram.h"

enum { THREADS_A_LANE = 4, SHORTAGE_REST_MS = 100 };

TAILQ_HEAD(flush_queue, flush_entry);

struct flush_thread {
    struct lane *lane;
    struct thread *thread;
    struct histogram took; /* its thread adds */
    char apart[CACHE_LINE];
};

struct lane { /* one log directory */
    struct flusher *flusher;
    struct flush_thread *threads; /* THREADS_A_LANE of them */
    struct lock mu;
    struct cond wake;
    int asleep;                     /* guarded by mu: threads that a signal would wake */
    bool stopping;                  /* guarded by mu */
    struct flush_queue queue;       /* guarded by mu */
    int64_t n_queue;                /* guarded by mu: in it */
    LIST_HEAD(, flush_entry) timed; /* guarded by mu */
};

struct flusher {
    const struct world *world;
    struct lane *lanes;
    int n;
};

/* ---- queueing ---- */
static void lane_wake(struct lane *ln)
{
    lock_assert_held(&ln->mu);
    if (ln->asleep > 0)
        cond_signal(&ln->wake);
}

/* True when it joined the queue: then a thread is needed for it. */
static bool lane_push(struct lane *ln, struct flush_entry *e)
{
    lock_assert_held(&ln->mu);
    if (e->queued)
        return false;
    e->queued = true;
    if (e->running)
        return false; /* it joins the queue when this sync is done */
    e->ops->ref(e);
    TAILQ_INSERT_TAIL(&ln->queue, e, link);
    ln->n_queue++;
    return true;
}

/* The caller drops the reference, outside mu. */
static void lane_untime(struct lane *ln, struct flush_entry *e)
{
    lock_assert_held(&ln->mu);
    LIST_REMOVE(e, timed_link);
    e->timed = false;
}

void flusher_queue(struct flusher *f, struct flush_entry *e)
{
    struct lane *ln = &f->lanes[e->lane];
    lock_take(&ln->mu);
    if (lane_push(ln, e))
        lane_wake(ln);
    lock_release(&ln->mu);
}

void flusher_queue_by(struct flusher *f, struct flush_entry *e, int64_t due_ms)
{
    struct lane *ln = &f->lanes[e->lane];
    lock_take(&ln->mu);
    if (!e->timed) {
        e->timed = true;
        e->due_ms = due_ms;
        e->ops->ref(e);
        LIST_INSERT_HEAD(&ln->timed, e, timed_link);
        lane_wake(ln);
    }
    lock_release(&ln->mu);
}

void flusher_forget(struct flusher *f, struct flush_entry *e)
{
    if (e->lane < 0)
        return;
    struct lane *ln = &f->lanes[e->lane];
    int refs = 0;
    lock_take(&ln->mu);
    if (e->queued && !e->running) {
        TAILQ_REMOVE(&ln->queue, e, link);
        ln->n_queue--;
        refs++;
    }
    e->queued = false;
    if (e->timed) {
        lane_untime(ln, e);
        refs++;
    }
    lock_release(&ln->mu);
    while (refs-- > 0)
        e->ops->unref(e);
}

void flusher_figures(struct flusher *f, struct histogram_sum *took, int64_t *ret_waiting)
{
    *ret_waiting = 0;
    for (int i = 0; i < f->n; i++) {
        struct lane *ln = &f->lanes[i];
        lock_take(&ln->mu);
        *ret_waiting += ln->n_queue;
        lock_release(&ln->mu);
        for (int k = 0; k < THREADS_A_LANE; k++)
            histogram_collect(took, &ln->threads[k].took);
    }
}

/* ---- the thread ---- */
/* Out of descriptors: nothing was done and nothing is lost. */
static void lane_retry(struct lane *ln, struct flush_entry *e)
{
    lock_take(&ln->mu);
    bool stopping = ln->stopping;
    lock_release(&ln->mu);
    if (!stopping)
        flusher_queue_by(ln->flusher, e, world_mono_ms(ln->flusher->world) + SHORTAGE_REST_MS);
}

/* Moves what is due from the list to the queue; returns when the next one will be, INT64_MAX when none waits. */
static int64_t lane_take_due(struct lane *ln, int64_t now_ms)
{
    lock_assert_held(&ln->mu);
    int64_t next_ms = INT64_MAX;
    struct flush_entry *next;
    for (struct flush_entry *e = LIST_FIRST(&ln->timed); e != NULL; e = next) {
        next = LIST_NEXT(e, timed_link);
        if (e->due_ms > now_ms && !ln->stopping) {
            next_ms = MIN(next_ms, e->due_ms);
            continue;
        }
        lane_untime(ln, e);
        lane_push(ln, e);
        e->ops->unref(e); /* the queue has its own: never the last one */
    }
    return next_ms;
}

static void lane_sleep(struct lane *ln, int64_t until_ms)
{
    ln->asleep++;
    cond_wait_until(&ln->wake, &ln->mu, until_ms);
    ln->asleep--;
}

/* The next entry to flush, its reference handed over; NULL when the lane stops and nothing is left. */
static struct flush_entry *lane_next(struct lane *ln)
{
    lock_take(&ln->mu);
    struct flush_entry *e;
    for (;;) {
        int64_t next_ms = lane_take_due(ln, world_mono_ms(ln->flusher->world));
        e = TAILQ_FIRST(&ln->queue);
        if (e != NULL || ln->stopping)
            break;
        lane_sleep(ln, next_ms);
    }
    if (e != NULL) {
        TAILQ_REMOVE(&ln->queue, e, link);
        ln->n_queue--;
        e->queued = false; /* what is appended from now on queues it again */
        e->running = true;
    }
    lock_release(&ln->mu);
    return e;
}

/* The reference goes back into the queue with it, or is dropped. */
static void lane_done(struct lane *ln, struct flush_entry *e)
{
    lock_take(&ln->mu);
    e->running = false;
    bool again = e->queued;
    if (again) {
        TAILQ_INSERT_TAIL(&ln->queue, e, link);
        ln->n_queue++;
    }
    lock_release(&ln->mu);
    if (!again)
        e->ops->unref(e);
}

static void lane_main(void *arg)
{
    struct flush_thread *t = arg;
    struct lane *ln = t->lane;
    const struct world *w = ln->flusher->world;
    for (struct flush_entry *e; (e = lane_next(ln)) != NULL;) {
        int64_t began_ns = world_mono_ns(w);
        if (e->ops->flush(e))
            histogram_add(&t->took, (world_mono_ns(w) - began_ns) / 1000);
        else
            lane_retry(ln, e);
        lane_done(ln, e);
    }
}

/* ---- life ---- */
static void lane_start(struct lane *ln)
{
    struct exec *e = ln->flusher->world->exec;
    cond_init(&ln->wake, e);
    lock_init(&ln->mu, LOCK_RANK_LANE, "lane of the flusher");
    TAILQ_INIT(&ln->queue);
    LIST_INIT(&ln->timed);
    ln->threads = xcalloc(THREADS_A_LANE, sizeof *ln->threads);
    for (int i = 0; i < THREADS_A_LANE; i++) {
        struct flush_thread *t = &ln->threads[i];
        t->lane = ln;
        t->thread = thread_start(e, lane_main, t, "klogd-flush");
        KCHECK(t->thread != NULL);
    }
}

struct flusher *flusher_new(const struct world *w, int lanes)
{
    struct flusher *f = xcalloc(1, sizeof *f);
    f->world = w;
    f->n = lanes;
    f->lanes = xcalloc((size_t)f->n, sizeof *f->lanes);
    for (int i = 0; i < f->n; i++) {
        f->lanes[i].flusher = f;
        lane_start(&f->lanes[i]);
    }
    return f;
}

void flusher_free(struct flusher *f)
{
    if (f == NULL)
        return;
    for (int i = 0; i < f->n; i++) {
        struct lane *ln = &f->lanes[i];
        lock_take(&ln->mu);
        ln->stopping = true;
        cond_broadcast(&ln->wake);
        lock_release(&ln->mu);
        for (int k = 0; k < THREADS_A_LANE; k++)
            thread_join(f->world->exec, ln->threads[k].thread);
        KCHECK(TAILQ_EMPTY(&ln->queue) && LIST_EMPTY(&ln->timed));
        free(ln->threads);
        cond_done(&ln->wake);
        lock_done(&ln->mu);
    }
    free(f->lanes);
    free(f);
}
