/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that may block. `mu` guards the queue; a job belongs to its submitter until it is queued, to a worker while it runs,
 * and to its loop from `done` on.
 *
 * A pool grows and shrinks at its end: thread i goes when no more than i are wanted, and is joined by who needs its place
 * or frees the pool. Nobody waits for one that is at work, but the last.
 */
#include "lib/loop/workers.h"

#include <stdio.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/lock.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"

enum { WORKERS_MAX = 1024 };

struct worker {
    struct workers *pool;
    struct thread *thread; /* NULL: there is none to be joined. Who resizes */
    bool gone;             /* guarded by mu: it takes no more jobs */
};

struct workers {
    struct exec *exec;
    struct lock mu;
    struct cond more;
    STAILQ_HEAD(, job) jobs; /* guarded by mu */
    int n_jobs;              /* guarded by mu: of them */
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

static bool is_wanted(const struct worker *me)
{
    lock_assert_held(&me->pool->mu);
    return me->pool->stop || me - me->pool->all < me->pool->wanted;
}

/* NULL: the thread shall end. */
static struct job *workers_next(struct worker *me)
{
    struct workers *w = me->pool;
    lock_take(&w->mu);
    while (STAILQ_EMPTY(&w->jobs) && !w->stop && is_wanted(me))
        cond_wait(&w->more, &w->mu);
    struct job *j = is_wanted(me) ? STAILQ_FIRST(&w->jobs) : NULL;
    if (j != NULL) {
        STAILQ_REMOVE_HEAD(&w->jobs, link);
        w->n_jobs--;
    }
    else
        me->gone = true;
    if (!is_wanted(me))
        cond_signal(&w->more); /* it may have been told of a job that another must take now */
    lock_release(&w->mu);
    return j;
}

static void worker_main(void *arg)
{
    for (struct job *j; (j = workers_next(arg)) != NULL;) {
        j->run(j);
        if (j->loop != NULL)
            loop_post(j->loop, &j->task);
        else if (j->done != NULL)
            j->done(j);
    }
}

/* False: the system has no more threads. */
static bool worker_begin(struct workers *w, int i)
{
    struct worker *one = &w->all[i];
    lock_take(&w->mu);
    bool is_there = one->thread != NULL && !one->gone;
    lock_release(&w->mu);
    if (is_there)
        return true;
    thread_join(w->exec, one->thread);
    one->pool = w;
    one->gone = false;
    char name[32];
    snprintf(name, sizeof name, "%s/%d", w->name, i);
    one->thread = thread_start(w->exec, worker_main, one, name);
    return one->thread != NULL;
}

static void want(struct workers *w, int width)
{
    lock_take(&w->mu);
    w->wanted = width;
    cond_broadcast(&w->more);
    lock_release(&w->mu);
}

int workers_resize(struct workers *w, int width)
{
    KCHECK(width > 0 && width <= WORKERS_MAX);
    int n = 0;
    want(w, width);
    while (n < width && worker_begin(w, n))
        n++;
    if (n > 0 && n < width)
        want(w, n);
    return n;
}

struct workers *workers_new(const struct world *world, int width, const char *name)
{
    struct workers *w = xcalloc(1, sizeof *w);
    w->exec = world->exec;
    lock_init(&w->mu, LOCK_RANK_LOOP, "workers");
    cond_init(&w->more, w->exec);
    STAILQ_INIT(&w->jobs);
    snprintf(w->name, sizeof w->name, "%s", name);
    if (workers_resize(w, width) > 0)
        return w;
    workers_free(w);
    return NULL;
}

void workers_submit(struct workers *w, struct job *j)
{
    KCHECK(j->run != NULL && (j->loop == NULL || j->done != NULL));
    j->task = (struct task){ .cb = job_done };
    lock_take(&w->mu);
    KCHECK(!w->stop);
    STAILQ_INSERT_TAIL(&w->jobs, j, link);
    w->n_jobs++;
    cond_signal(&w->more);
    lock_release(&w->mu);
}

int workers_waiting(struct workers *w)
{
    lock_take(&w->mu);
    int n = w->n_jobs;
    lock_release(&w->mu);
    return n;
}

void workers_free(struct workers *w)
{
    if (w == NULL)
        return;
    lock_take(&w->mu);
    w->stop = true;
    cond_broadcast(&w->more);
    lock_release(&w->mu);
    for (int i = 0; i < WORKERS_MAX; i++)
        thread_join(w->exec, w->all[i].thread);
    cond_done(&w->more);
    lock_done(&w->mu);
    free(w);
}
