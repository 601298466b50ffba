/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that may block. `mu` guards the queue; a job belongs to its submitter until it is
 * queued, to a worker while it runs, and to its loop from `done` on.
 */
#include "lib/loop/workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

struct workers {
    pthread_mutex_t mu;
    pthread_cond_t more;
    STAILQ_HEAD(, job) jobs; /* guarded by mu */
    bool stop;               /* guarded by mu */
    int n_threads;
    pthread_t threads[];
};

static void job_done(struct task *t)
{
    struct job *j = container_of(t, struct job, task);
    j->done(j);
}

static struct job *workers_next(struct workers *w)
{
    pthread_mutex_lock(&w->mu);
    while (STAILQ_EMPTY(&w->jobs) && !w->stop)
        pthread_cond_wait(&w->more, &w->mu);
    struct job *j = STAILQ_FIRST(&w->jobs);
    if (j != NULL)
        STAILQ_REMOVE_HEAD(&w->jobs, link);
    pthread_mutex_unlock(&w->mu);
    return j;
}

static void *workers_main(void *arg)
{
    struct workers *w = arg;
    for (struct job *j; (j = workers_next(w)) != NULL;) {
        j->run(j);
        if (j->loop != NULL)
            loop_post(j->loop, &j->task);
        else if (j->done != NULL)
            j->done(j);
    }
    return NULL;
}

struct workers *workers_new(int threads, const char *name)
{
    KCHECK(threads > 0 && threads <= 1024);
    struct workers *w = xcalloc(1, sizeof *w + (size_t)threads * sizeof w->threads[0]);
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->more, NULL);
    STAILQ_INIT(&w->jobs);

    /* Signals are the main thread's affair. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; w->n_threads < threads; w->n_threads++) {
        if (pthread_create(&w->threads[w->n_threads], NULL, workers_main, w) != 0)
            break;
        char thread_name[16];
        snprintf(thread_name, sizeof thread_name, "%.12s/%d", name, w->n_threads);
        pthread_setname_np(w->threads[w->n_threads], thread_name);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (w->n_threads == 0) {
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
    for (int i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->mu);
    free(w);
}
