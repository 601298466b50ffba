/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit, a lane with a few threads for each log directory: syncs of different files share the disk's
 * own flush, so that many partitions do not wait for one another.
 *
 * A queue holds the partitions to flush now, a list those that may wait until a moment (policy interval). A
 * partition is told at once how far its sync got. It is in the queue once, however much was appended, and
 * never synced by two threads at once: the kernel tells a failed write to one of them only, and the other
 * would take its own 0 for a promise (S4, S8). Each place in a queue or list holds a reference.
 *
 * Lock order: partition.mu, then lane.mu. The threads hold neither while they sync.
 */
#include "daemon/upkeep/flusher.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "daemon/broker.h"
#include "daemon/replica/partition.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum { THREADS_A_LANE = 4, SHORTAGE_REST_MS = 100 };

TAILQ_HEAD(flush_queue, partition);

struct lane { /* one log directory */
    struct flusher *flusher;
    int dir;
    pthread_t threads[THREADS_A_LANE];
    pthread_mutex_t mu;
    pthread_cond_t wake;          /* on CLOCK_MONOTONIC */
    int asleep;                   /* guarded by mu: threads that a signal would wake */
    bool stopping;                /* guarded by mu */
    struct flush_queue queue;     /* guarded by mu */
    LIST_HEAD(, partition) timed; /* guarded by mu */
};

struct flusher {
    struct broker *broker;
    struct lane *lanes;
    int n;
};

/* ---- queueing ---- */
static void lane_wake(struct lane *ln) /* under mu */
{
    if (ln->asleep > 0)
        pthread_cond_signal(&ln->wake);
}

/* True when it joined the queue: then a thread is needed for it. Under mu. */
static bool lane_push(struct lane *ln, struct partition *pt)
{
    if (pt->flush_queued)
        return false;
    pt->flush_queued = true;
    if (pt->flush_running)
        return false; /* it joins the queue when this sync is done */
    partition_ref(pt);
    TAILQ_INSERT_TAIL(&ln->queue, pt, flush_link);
    return true;
}

static void lane_untime(struct partition *pt) /* under mu; the caller drops the reference outside */
{
    LIST_REMOVE(pt, flush_timed_link);
    pt->flush_timed = false;
}

void flusher_queue(struct flusher *f, struct partition *pt)
{
    struct lane *ln = &f->lanes[pt->dir];
    pthread_mutex_lock(&ln->mu);
    if (lane_push(ln, pt))
        lane_wake(ln);
    pthread_mutex_unlock(&ln->mu);
}

void flusher_queue_by(struct flusher *f, struct partition *pt, int64_t due_ms)
{
    struct lane *ln = &f->lanes[pt->dir];
    pthread_mutex_lock(&ln->mu);
    if (!pt->flush_timed) {
        pt->flush_timed = true;
        pt->flush_due_ms = due_ms;
        partition_ref(pt);
        LIST_INSERT_HEAD(&ln->timed, pt, flush_timed_link);
        lane_wake(ln);
    }
    pthread_mutex_unlock(&ln->mu);
}

void flusher_forget(struct flusher *f, struct partition *pt)
{
    if (pt->dir < 0)
        return;
    struct lane *ln = &f->lanes[pt->dir];
    int refs = 0;
    pthread_mutex_lock(&ln->mu);
    if (pt->flush_queued && !pt->flush_running) {
        TAILQ_REMOVE(&ln->queue, pt, flush_link);
        refs++;
    }
    pt->flush_queued = false;
    if (pt->flush_timed) {
        lane_untime(pt);
        refs++;
    }
    pthread_mutex_unlock(&ln->mu);
    while (refs-- > 0)
        partition_unref(pt);
}

/* ---- the thread ---- */
/* Out of descriptors: nothing was done and nothing is lost. */
static void lane_retry(struct lane *ln, struct partition *pt)
{
    pthread_mutex_lock(&ln->mu);
    bool stopping = ln->stopping;
    pthread_mutex_unlock(&ln->mu);
    if (!stopping)
        flusher_queue_by(ln->flusher, pt, clock_mono_ms() + SHORTAGE_REST_MS);
}

static void flush_partition(struct lane *ln, struct partition *pt)
{
    partition_flush_began(pt);
    struct plog_flush *ticket = plog_flush_begin(pt->log);
    struct plog_ends ends;
    if (ticket == NULL) {
        plog_ends(pt->log, &ends);
        partition_flushed(pt, ends.flushed_offset);
        return;
    }

    int rc = plog_flush_run(ticket);
    int64_t flushed = plog_flush_end(pt->log, ticket, rc);
    if (rc == 0) {
        partition_flushed(pt, flushed);
        struct partition_view v;
        partition_view(pt, &v);
        rc = plog_checkpoint(pt->log, v.hw, false);
    }
    if (rc == 0)
        return;
    if (datadir_failed(ln->flusher->broker->dirs[ln->dir])) {
        broker_dir_failed(ln->flusher->broker, ln->dir, -rc);
        return;
    }
    log_warn("%s: flush or checkpoint: %s", plog_name(pt->log), strerror(-rc));
    if (rc == -EMFILE || rc == -ENFILE)
        lane_retry(ln, pt);
}

/* Moves what is due from the list to the queue; returns when the next one will be, INT64_MAX when none waits.
 * Under mu. */
static int64_t lane_take_due(struct lane *ln, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    struct partition *next;
    for (struct partition *pt = LIST_FIRST(&ln->timed); pt != NULL; pt = next) {
        next = LIST_NEXT(pt, flush_timed_link);
        if (pt->flush_due_ms > now_ms && !ln->stopping) {
            next_ms = MIN(next_ms, pt->flush_due_ms);
            continue;
        }
        lane_untime(pt);
        lane_push(ln, pt);
        atomic_fetch_sub(&pt->refs, 1); /* the queue has its own: never the last one */
    }
    return next_ms;
}

static void lane_sleep(struct lane *ln, int64_t until_ms) /* under mu */
{
    ln->asleep++;
    if (until_ms == INT64_MAX) {
        pthread_cond_wait(&ln->wake, &ln->mu);
    } else {
        struct timespec ts = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };
        pthread_cond_timedwait(&ln->wake, &ln->mu, &ts);
    }
    ln->asleep--;
}

/* The next partition to flush, its reference handed over; NULL when the lane stops and nothing is left. */
static struct partition *lane_next(struct lane *ln)
{
    pthread_mutex_lock(&ln->mu);
    struct partition *pt;
    for (;;) {
        int64_t next_ms = lane_take_due(ln, clock_mono_ms());
        pt = TAILQ_FIRST(&ln->queue);
        if (pt != NULL || ln->stopping)
            break;
        lane_sleep(ln, next_ms);
    }
    if (pt != NULL) {
        TAILQ_REMOVE(&ln->queue, pt, flush_link);
        pt->flush_queued = false; /* what is appended from now on queues it again */
        pt->flush_running = true;
    }
    pthread_mutex_unlock(&ln->mu);
    return pt;
}

/* The reference goes back into the queue with it, or is dropped. */
static void lane_done(struct lane *ln, struct partition *pt)
{
    pthread_mutex_lock(&ln->mu);
    pt->flush_running = false;
    bool again = pt->flush_queued;
    if (again)
        TAILQ_INSERT_TAIL(&ln->queue, pt, flush_link);
    pthread_mutex_unlock(&ln->mu);
    if (!again)
        partition_unref(pt);
}

static void *lane_main(void *arg)
{
    struct lane *ln = arg;
    for (struct partition *pt; (pt = lane_next(ln)) != NULL;) {
        flush_partition(ln, pt);
        lane_done(ln, pt);
    }
    return NULL;
}

/* ---- life ---- */
static void lane_start(struct lane *ln)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ln->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&ln->mu, NULL);
    TAILQ_INIT(&ln->queue);
    LIST_INIT(&ln->timed);
    for (int i = 0; i < THREADS_A_LANE; i++) {
        int rc = pthread_create(&ln->threads[i], NULL, lane_main, ln);
        KCHECK(rc == 0);
        pthread_setname_np(ln->threads[i], "klogd-flush");
    }
}

struct flusher *flusher_new(struct broker *b)
{
    struct flusher *f = xcalloc(1, sizeof *f);
    f->broker = b;
    f->n = b->n_dirs;
    f->lanes = xcalloc((size_t)f->n, sizeof *f->lanes);
    for (int i = 0; i < f->n; i++) {
        f->lanes[i].flusher = f;
        f->lanes[i].dir = i;
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
        pthread_mutex_lock(&ln->mu);
        ln->stopping = true;
        pthread_cond_broadcast(&ln->wake);
        pthread_mutex_unlock(&ln->mu);
        for (int k = 0; k < THREADS_A_LANE; k++)
            pthread_join(ln->threads[k], NULL);
        KCHECK(TAILQ_EMPTY(&ln->queue) && LIST_EMPTY(&ln->timed));
        pthread_cond_destroy(&ln->wake);
        pthread_mutex_destroy(&ln->mu);
    }
    free(f->lanes);
    free(f);
}
