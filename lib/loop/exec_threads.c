/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of the process, and pools of them. All signals are blocked in them.
 *
 * In a pool `mu` guards the queue; a job belongs to its submitter until it is queued, to a worker while it runs, and to its
 * loop from `done` on. A pool grows and shrinks at its end: thread i goes when no more than i are wanted, and is joined by
 * who needs its place or frees the pool. Nobody waits for one that is at work, but the last.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/lock.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/exec.h"
#include "lib/loop/loop_int.h"
#include "lib/loop/net.h"
#include "lib/loop/thread.h"
#include "lib/loop/workers.h"

/* ---- threads ---- */
/* Signals are the main thread's affair. 0 or -EAGAIN: the system has no more threads. */
static int thread_begin(pthread_t *ret, void *(*main)(void *arg), void *arg, const char *name)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(ret, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return -EAGAIN;
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(*ret, short_name);
    return 0;
}

struct thread {
    pthread_t id;
    void (*main)(void *arg);
    void *arg;
};

static void *thread_main(void *arg)
{
    struct thread *t = arg;
    t->main(t->arg);
    return NULL;
}

static struct thread *threads_start(struct exec *e, void (*main)(void *arg), void *arg, const char *name)
{
    (void)e;
    struct thread *t = xmalloc(sizeof *t);
    t->main = main;
    t->arg = arg;
    int rc = thread_begin(&t->id, thread_main, t, name);
    if (rc == 0)
        return t;
    free(t);
    errno = -rc;
    return NULL;
}

static void threads_join(struct exec *e, struct thread *t)
{
    (void)e;
    pthread_join(t->id, NULL);
    free(t);
}

/* ---- conditions ---- */
static void threads_cond_init(struct exec *e, struct cond *c)
{
    (void)e;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->threads, &attr);
    pthread_condattr_destroy(&attr);
}

static void threads_cond_done(struct exec *e, struct cond *c)
{
    (void)e;
    pthread_cond_destroy(&c->threads);
}

static void threads_cond_wait(struct exec *e, struct cond *c, pthread_mutex_t *mu, int64_t until_ms)
{
    (void)e;
    if (until_ms == INT64_MAX) {
        pthread_cond_wait(&c->threads, mu);
        return;
    }
    struct timespec until = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };
    pthread_cond_timedwait(&c->threads, mu, &until);
}

static void threads_cond_wake(struct exec *e, struct cond *c, bool all)
{
    (void)e;
    if (all)
        pthread_cond_broadcast(&c->threads);
    else
        pthread_cond_signal(&c->threads);
}

/* ---- pools ---- */
struct worker {
    struct pool *pool;
    pthread_t thread;
    bool begun; /* to be joined; who resizes */
    bool gone;  /* guarded by mu: it takes no more jobs */
};

struct pool {
    struct workers pub;
    struct lock mu;
    pthread_cond_t more;
    STAILQ_HEAD(, job) jobs; /* guarded by mu */
    bool stop;               /* guarded by mu */
    int wanted;              /* guarded by mu */
    char name[13];
    struct worker all[WORKERS_MAX];
};

static struct pool *pool_of(struct workers *w)
{
    return container_of(w, struct pool, pub);
}

static bool is_wanted(const struct worker *me)
{
    lock_assert_held(&me->pool->mu);
    return me->pool->stop || me - me->pool->all < me->pool->wanted;
}

/* NULL: the thread shall end. */
static struct job *pool_next(struct worker *me)
{
    struct pool *p = me->pool;
    lock_take(&p->mu);
    while (STAILQ_EMPTY(&p->jobs) && !p->stop && is_wanted(me))
        pthread_cond_wait(&p->more, &p->mu.mu);
    struct job *j = is_wanted(me) ? STAILQ_FIRST(&p->jobs) : NULL;
    if (j != NULL)
        STAILQ_REMOVE_HEAD(&p->jobs, link);
    else
        me->gone = true;
    if (!is_wanted(me))
        pthread_cond_signal(&p->more); /* it may have been told of a job that another must take now */
    lock_release(&p->mu);
    return j;
}

static void *worker_main(void *arg)
{
    for (struct job *j; (j = pool_next(arg)) != NULL;)
        job_run(j);
    return NULL;
}

/* False: the system has no more threads. */
static bool worker_begin(struct pool *p, int i)
{
    struct worker *one = &p->all[i];
    lock_take(&p->mu);
    bool is_there = one->begun && !one->gone;
    lock_release(&p->mu);
    if (is_there)
        return true;
    if (one->begun)
        pthread_join(one->thread, NULL);
    one->pool = p;
    one->gone = false;
    char name[32];
    snprintf(name, sizeof name, "%s/%d", p->name, i);
    one->begun = thread_begin(&one->thread, worker_main, one, name) == 0;
    return one->begun;
}

static void want(struct pool *p, int width)
{
    lock_take(&p->mu);
    p->wanted = width;
    pthread_cond_broadcast(&p->more);
    lock_release(&p->mu);
}

static int pool_resize(struct workers *w, int width)
{
    struct pool *p = pool_of(w);
    int n = 0;
    want(p, width);
    while (n < width && worker_begin(p, n))
        n++;
    if (n > 0 && n < width)
        want(p, n);
    return n;
}

static void pool_free(struct workers *w)
{
    struct pool *p = pool_of(w);
    lock_take(&p->mu);
    p->stop = true;
    pthread_cond_broadcast(&p->more);
    lock_release(&p->mu);
    for (int i = 0; i < WORKERS_MAX; i++) {
        if (p->all[i].begun)
            pthread_join(p->all[i].thread, NULL);
    }
    pthread_cond_destroy(&p->more);
    lock_done(&p->mu);
    free(p);
}

static struct workers *pool_new(struct exec *e, int width, const char *name)
{
    struct pool *p = xcalloc(1, sizeof *p);
    p->pub.exec = e;
    lock_init(&p->mu, LOCK_RANK_LOOP, "workers");
    pthread_cond_init(&p->more, NULL);
    STAILQ_INIT(&p->jobs);
    snprintf(p->name, sizeof p->name, "%s", name);
    if (pool_resize(&p->pub, width) > 0)
        return &p->pub;
    pool_free(&p->pub);
    return NULL;
}

static void pool_submit(struct workers *w, struct job *j)
{
    struct pool *p = pool_of(w);
    lock_take(&p->mu);
    KCHECK(!p->stop);
    STAILQ_INSERT_TAIL(&p->jobs, j, link);
    pthread_cond_signal(&p->more);
    lock_release(&p->mu);
}

static bool pool_cancel(struct workers *w, struct job *j)
{
    struct pool *p = pool_of(w);
    struct job *one;
    lock_take(&p->mu);
    STAILQ_FOREACH (one, &p->jobs, link) {
        if (one == j)
            break;
    }
    if (one != NULL)
        STAILQ_REMOVE(&p->jobs, j, job, link);
    lock_release(&p->mu);
    return one != NULL;
}

/* ---- the world of a program ---- */
struct exec *exec_threads(void)
{
    static struct exec threads = {
        .thread_start = threads_start,
        .thread_join = threads_join,
        .cond_init = threads_cond_init,
        .cond_done = threads_cond_done,
        .cond_wait = threads_cond_wait,
        .cond_wake = threads_cond_wake,
        .workers_new = pool_new,
        .submit = pool_submit,
        .cancel = pool_cancel,
        .workers_resize = pool_resize,
        .workers_free = pool_free,
    };
    return &threads;
}

void world_init_real(struct world *w)
{
    *w = (struct world){
        .clock = &clock_real,
        .random = &random_real,
        .machine = &machine_real,
        .exec = exec_threads(),
        .net = &net_real,
    };
}
