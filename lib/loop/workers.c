/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that may block. `mu` guards the queue; a job belongs to its submitter until it is
 * queued, to a worker while it runs, and to its loop from `done` on.
 *
 * A pool grows and shrinks at its end: thread i goes when no more than i are wanted, and is joined by who needs its place
 * or frees the pool. Nobody waits for one that is at work, but the last.
 */
#include "lib/loop/workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

enum { WORKERS_MAX = 1024 };

struct worker {
    struct workers *pool;
    pthread_t thread;
    bool begun; /* to be joined; who resizes */
    bool gone;  /* guarded by mu: it takes no more jobs */
};

struct workers {
    pthread_mutex_t mu;
    pthread_cond_t more;
    STAILQ_HEAD(, job) jobs; /* guarded by mu */
    bool stop;               /* guarded by mu */
    int wanted;              /* guarded by mu */
    char name[13];
    struct worker all[WORKERS_MAX];
};

static void job_done(struct task *t)
{
    struct job *j = container_of(t, struct job, task);
    j->done(j);
}

static bool is_wanted(const struct worker *me) /* under mu */
{
    return me->pool->stop || me - me->pool->all < me->pool->wanted;
}

/* NULL: the thread shall end. */
static struct job *workers_next(struct worker *me)
{
    struct workers *w = me->pool;
    pthread_mutex_lock(&w->mu);
    while (STAILQ_EMPTY(&w->jobs) && !w->stop && is_wanted(me))
        pthread_cond_wait(&w->more, &w->mu);
    struct job *j = is_wanted(me) ? STAILQ_FIRST(&w->jobs) : NULL;
    if (j != NULL)
        STAILQ_REMOVE_HEAD(&w->jobs, link);
    else
        me->gone = true;
    if (!is_wanted(me))
        pthread_cond_signal(&w->more); /* it may have been told of a job that another must take now */
    pthread_mutex_unlock(&w->mu);
    return j;
}

static void *workers_main(void *arg)
{
    for (struct job *j; (j = workers_next(arg)) != NULL;) {
        j->run(j);
        if (j->loop != NULL)
            loop_post(j->loop, &j->task);
        else if (j->done != NULL)
            j->done(j);
    }
    return NULL;
}

/* False: the system has no more threads. */
static bool worker_begin(struct workers *w, int i)
{
    struct worker *one = &w->all[i];
    pthread_mutex_lock(&w->mu);
    bool is_there = one->begun && !one->gone;
    pthread_mutex_unlock(&w->mu);
    if (is_there)
        return true;
    if (one->begun)
        pthread_join(one->thread, NULL);
    one->pool = w;
    one->gone = false;
    one->begun = pthread_create(&one->thread, NULL, workers_main, one) == 0;
    if (!one->begun)
        return false;
    char thread_name[32];
    snprintf(thread_name, sizeof thread_name, "%s/%d", w->name, i);
    thread_name[15] = '\0';
    pthread_setname_np(one->thread, thread_name);
    return true;
}

static void want(struct workers *w, int threads)
{
    pthread_mutex_lock(&w->mu);
    w->wanted = threads;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->mu);
}

int workers_resize(struct workers *w, int threads)
{
    KCHECK(threads > 0 && threads <= WORKERS_MAX);
    int n = 0;
    want(w, threads);

    /* Signals are the main thread's affair. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (n < threads && worker_begin(w, n))
        n++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (n > 0 && n < threads)
        want(w, n);
    return n;
}

struct workers *workers_new(int threads, const char *name)
{
    struct workers *w = xcalloc(1, sizeof *w);
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->more, NULL);
    STAILQ_INIT(&w->jobs);
    snprintf(w->name, sizeof w->name, "%s", name);
    if (workers_resize(w, threads) == 0) {
        workers_free(w);
        return NULL;
    }
    return w;
}

void workers_submit(struct workers *w, struct job *j)
{
    KCHECK(j->run != NULL && (j->loop == NULL || j->done != NULL));
    j->task = (struct task){ .cb = job_done };
    pthread_mutex_lock(&w->mu);
    KCHECK(!w->stop);
    STAILQ_INSERT_TAIL(&w->jobs, j, link);
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->mu);
}

void workers_free(struct workers *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->mu);
    w->stop = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->mu);
    for (int i = 0; i < WORKERS_MAX; i++) {
        if (w->all[i].begun)
            pthread_join(w->all[i].thread, NULL);
    }
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->mu);
    free(w);
}
