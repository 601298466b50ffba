/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h over fibers. Who waits on a condition may wake for no reason, as the real ones may.
 */
#include "tests/sim/simexec.h"

#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/loop/thread.h"

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
        },
        .clock = clock,
    };
    fibers_init(&e->fibers, s, rnd);
}
