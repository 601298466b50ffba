/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h over fibers. A pool keeps its jobs in a queue; a fiber begins when there are more jobs than fibers, and ends when the
 * queue is empty, so that a pool at rest has none. Who waits on a condition may wake for no reason, as the real ones may.
 */
#include "tests/sim/simexec.h"

#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/loop/loop_int.h"
#include "lib/loop/thread.h"
#include "lib/loop/workers.h"

static struct simexec *of(struct exec *e)
{
    return container_of(e, struct simexec, exec);
}

/* ---- threads ---- */
static struct thread *exec_thread_start(struct exec *e, void (*main)(void *arg), void *arg, const char *name)
{
    return (struct thread *)fiber_start(&of(e)->fibers, main, arg, name);
}

static void exec_thread_join(struct exec *e, struct thread *t)
{
    (void)e;
    fiber_join((struct fiber *)t);
}

/* ---- conditions ---- */
static void exec_cond_init(struct exec *e, struct cond *c)
{
    (void)e;
    struct fiber_queue *q = xmalloc(sizeof *q);
    TAILQ_INIT(q);
    c->fibers = q;
}

static void exec_cond_done(struct exec *e, struct cond *c)
{
    (void)e;
    free(c->fibers);
}

static void exec_cond_wait(struct exec *e, struct cond *c, pthread_mutex_t *mu, int64_t until_ms)
{
    struct simexec *se = of(e);
    int64_t until = simclock_when_ms(se->clock, until_ms);
    if (rnd_one_in(&se->fibers.rnd, 200))
        until = MIN(until, sim_now(se->fibers.sim) + rnd_range(&se->fibers.rnd, 0, SIM_MS));
    pthread_mutex_unlock(mu);
    fiber_wait_in(c->fibers, until, "a condition");
    pthread_mutex_lock(mu);
}

static void exec_cond_wake(struct exec *e, struct cond *c, bool all)
{
    (void)e;
    if (all)
        fiber_wake_all(c->fibers);
    else
        fiber_wake_one(c->fibers);
}

/* ---- pools ---- */
struct simpool {
    struct workers workers; /* first */
    const char *name;
    int width, running;
    STAILQ_HEAD(, job) jobs;
    struct fiber_queue idle_waiters; /* workers_free */
};

static struct simpool *pool_of(struct workers *w)
{
    return container_of(w, struct simpool, workers);
}

static void pool_main(void *arg)
{
    struct simpool *p = arg;
    struct job *j;
    while (p->running <= p->width && (j = STAILQ_FIRST(&p->jobs)) != NULL) {
        STAILQ_REMOVE_HEAD(&p->jobs, link);
        job_run(j);
        fiber_sleep(rnd_range(&of(p->workers.exec)->fibers.rnd, 500, 20 * SIM_US));
    }
    p->running--;
    fiber_wake_all(&p->idle_waiters);
}

static struct workers *exec_workers_new(struct exec *e, int width, const char *name)
{
    struct simpool *p = xcalloc(1, sizeof *p);
    p->workers.exec = e;
    p->name = name;
    p->width = width;
    STAILQ_INIT(&p->jobs);
    TAILQ_INIT(&p->idle_waiters);
    return &p->workers;
}

static void pool_begin(struct simpool *p)
{
    if (p->running >= p->width || STAILQ_EMPTY(&p->jobs))
        return;
    p->running++;
    fiber_detach(fiber_start(&of(p->workers.exec)->fibers, pool_main, p, p->name));
}

static void exec_submit(struct workers *w, struct job *j)
{
    struct simpool *p = pool_of(w);
    STAILQ_INSERT_TAIL(&p->jobs, j, link);
    pool_begin(p);
}

static bool exec_cancel(struct workers *w, struct job *j)
{
    struct simpool *p = pool_of(w);
    struct job *one;
    STAILQ_FOREACH (one, &p->jobs, link) {
        if (one == j) {
            STAILQ_REMOVE(&p->jobs, j, job, link);
            return true;
        }
    }
    return false;
}

static int exec_workers_resize(struct workers *w, int width)
{
    struct simpool *p = pool_of(w);
    p->width = width;
    pool_begin(p);
    return width;
}

static void exec_workers_free(struct workers *w)
{
    struct simpool *p = pool_of(w);
    while (p->running > 0)
        fiber_wait_in(&p->idle_waiters, INT64_MAX, "the end of a pool");
    KCHECK(STAILQ_EMPTY(&p->jobs));
    free(p);
}

void simexec_init(struct simexec *e, struct sim *s, const struct simclock *clock, struct rnd rnd)
{
    *e = (struct simexec){
        .exec = {
            .thread_start = exec_thread_start,
            .thread_join = exec_thread_join,
            .cond_init = exec_cond_init,
            .cond_done = exec_cond_done,
            .cond_wait = exec_cond_wait,
            .cond_wake = exec_cond_wake,
            .workers_new = exec_workers_new,
            .submit = exec_submit,
            .cancel = exec_cancel,
            .workers_resize = exec_workers_resize,
            .workers_free = exec_workers_free,
        },
        .clock = clock,
    };
    fibers_init(&e->fibers, s, rnd);
}
