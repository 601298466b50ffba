/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's threads, in which all signals are blocked, and its conditions, on CLOCK_MONOTONIC. Any thread; no state.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/exec.h"
#include "lib/loop/net.h"
#include "lib/loop/thread.h"

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
