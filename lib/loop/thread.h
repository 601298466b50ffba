/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for what is neither a loop nor a job, and the two ways to wait: a condition under a mutex, and a latch that opens
 * once. All of it goes through the world's exec, so that in a simulated world a thread is a fiber, and waiting lets
 * simulated time go on. Whoever waits holds no other lock than the one that he gives.
 */
#ifndef KLOG_LOOP_THREAD_H
#define KLOG_LOOP_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/lock.h"

struct exec;
struct thread;

/* main(arg) begins, soon; signals are blocked in it. NULL and errno when there are no more threads. name: at most 15 bytes. */
struct thread *thread_start(struct exec *e, void (*main)(void *arg), void *arg, const char *name);
void thread_join(struct exec *e, struct thread *t); /* waits for its end and frees it; NULL is fine */

/* ---- conditions ---- */
struct cond {
    struct exec *exec;
    pthread_cond_t threads; /* exec_threads: on CLOCK_MONOTONIC */
    void *fibers;           /* a simulated one: those who wait */
};

void cond_init(struct cond *c, struct exec *e);
void cond_done(struct cond *c);
/* As pthread_cond_wait: l is released meanwhile, and it may return for no reason. */
void cond_wait(struct cond *c, struct lock *l);
/* Until the monotonic clock shows until_ms at the latest. */
void cond_wait_until(struct cond *c, struct lock *l, int64_t until_ms);
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);

/* ---- latches ---- */
struct latch { /* on the stack of who waits, mostly */
    struct lock mu;
    struct cond opened;
    bool open; /* guarded by mu */
};

void latch_init(struct latch *l, struct exec *e);
void latch_open(struct latch *l); /* any thread; the latch may be gone when this returns */
void latch_wait(struct latch *l); /* until it is open; not on a loop */
void latch_done(struct latch *l);

/* ---- calls into a loop ---- */
struct loop;
/* Runs f(arg) on the loop's thread and waits for it. Not from a loop's thread. */
void loop_call(struct loop *lp, void (*f)(void *arg), void *arg);

#endif
