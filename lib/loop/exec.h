/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs threads: the system in a program (exec_threads.c), one scheduler with a clock of its own in a test.
 * Nothing else in lib/ or daemon/ starts a thread.
 */
#ifndef KLOG_LOOP_EXEC_H
#define KLOG_LOOP_EXEC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct cond;
struct thread;
struct world;

struct exec {
    /* main(arg) begins, soon: a loop, mostly. NULL and errno (EAGAIN) when there are no more threads. name: at most 15 bytes. */
    struct thread *(*thread_start)(struct exec *e, void (*main)(void *arg), void *arg, const char *name);
    /* Waits for its end and frees it. Not on a loop. */
    void (*thread_join)(struct exec *e, struct thread *t);
    /* Conditions: see lib/loop/thread.h. until_ms INT64_MAX: for ever. */
    void (*cond_init)(struct exec *e, struct cond *c);
    void (*cond_done)(struct exec *e, struct cond *c);
    void (*cond_wait)(struct exec *e, struct cond *c, pthread_mutex_t *mu, int64_t until_ms);
    void (*cond_wake)(struct exec *e, struct cond *c, bool all);
};

/* Threads of this process; all signals are blocked in them. */
struct exec *exec_threads(void);

/* What a program has: the clock, random and machine of lib/base, exec_threads, net_real. io is left to who has a store. */
void world_init_real(struct world *w);

#endif
