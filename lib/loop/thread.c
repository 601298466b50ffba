/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions and latches over the world's exec; exec_threads.c has what stands behind them in a program. A latch is opened
 * under its mutex, so that who waits cannot go, and take the latch away with its stack, while the other one still needs it.
 */
#include "lib/loop/thread.h"

#include "lib/base/check.h"
#include "lib/base/world.h"
#include "lib/loop/exec.h"
#include "lib/loop/loop.h"

struct thread *thread_start(struct exec *e, void (*main)(void *arg), void *arg, const char *name)
{
    return e->thread_start(e, main, arg, name);
}

void thread_join(struct exec *e, struct thread *t)
{
    if (t != NULL)
        e->thread_join(e, t);
}

/* ---- conditions ---- */
void cond_init(struct cond *c, struct exec *e)
{
    c->exec = e;
    c->fibers = NULL;
    e->cond_init(e, c);
}

void cond_done(struct cond *c)
{
    c->exec->cond_done(c->exec, c);
}

void cond_wait(struct cond *c, struct lock *l)
{
    cond_wait_until(c, l, INT64_MAX);
}

/* Who waits keeps l in its list of locks: it has it again when it goes on. */
void cond_wait_until(struct cond *c, struct lock *l, int64_t until_ms)
{
    lock_assert_held(l);
    c->exec->cond_wait(c->exec, c, &l->mu, until_ms);
}

void cond_signal(struct cond *c)
{
    c->exec->cond_wake(c->exec, c, false);
}

void cond_broadcast(struct cond *c)
{
    c->exec->cond_wake(c->exec, c, true);
}

/* ---- latches ---- */
void latch_init(struct latch *l, struct exec *e)
{
    lock_init(&l->mu, LOCK_RANK_LOOP, "latch");
    cond_init(&l->opened, e);
    l->open = false;
}

void latch_open(struct latch *l)
{
    lock_take(&l->mu);
    l->open = true;
    cond_broadcast(&l->opened);
    lock_release(&l->mu);
}

/* A loop may not: it wakes those that it has posted to at the end of its round. */
void latch_wait(struct latch *l)
{
    KCHECK(thread_state.loop == NULL);
    lock_take(&l->mu);
    while (!l->open)
        cond_wait(&l->opened, &l->mu);
    lock_release(&l->mu);
}

void latch_done(struct latch *l)
{
    cond_done(&l->opened);
    lock_done(&l->mu);
}

/* ---- calls into a loop ---- */
struct loop_call {
    struct task task;
    void (*f)(void *arg);
    void *arg;
    struct latch done;
};

static void call_run(struct task *t)
{
    struct loop_call *call = container_of(t, struct loop_call, task);
    call->f(call->arg);
    latch_open(&call->done);
}

void loop_call(struct loop *lp, void (*f)(void *arg), void *arg)
{
    struct loop_call call = { .task.cb = call_run, .f = f, .arg = arg };
    latch_init(&call.done, loop_world(lp)->exec);
    loop_post(lp, &call.task);
    latch_wait(&call.done);
    latch_done(&call.done);
}
