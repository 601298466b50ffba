/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers: what a thread of a simulated process is. All of them share the one real thread; a fiber runs until it gives way, and
 * everything between two such places happens at one simulated instant. The scheduler (sim_go_on) resumes a fiber as a step.
 *
 * A fiber gives way where a thread would wait: for a mutex or rwlock that is taken (the program is linked with --wrap of
 * the functions of pthreads), for a condition, for its poller, for a disk. Because of the first it may do so with locks held.
 */
#ifndef KLOG_SIM_FIBER_H
#define KLOG_SIM_FIBER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tests/sim/sim.h"

struct fiber;
TAILQ_HEAD(fiber_queue, fiber);

/* The fibers of one process. */
struct fibers {
    struct sim *sim;
    struct rnd rnd;
    LIST_HEAD(, fiber) all;
    struct fiber_queue blocked; /* those who wait for a mutex or rwlock */
    int64_t slow;               /* everything it does takes so many times as long; 1 */
    int64_t stopped_until_ns;   /* as by SIGSTOP: nothing of it runs before */
};

void fibers_init(struct fibers *fs, struct sim *s, struct rnd rnd);
/* All of them are gone, and what was on their stacks is lost; does not return when the caller is one of them. */
void fibers_drop(struct fibers *fs);
void fibers_print(const struct fibers *fs); /* who waits for what: for reports */

/* Begins soon. name: at most 15 bytes. Then it is the caller's until fiber_join or fiber_detach. */
struct fiber *fiber_start(struct fibers *fs, void (*main)(void *arg), void *arg, const char *name);
void fiber_join(struct fiber *f); /* waits for its end, and frees it */
void fiber_detach(struct fiber *f); /* it frees itself */

struct fiber *fiber_now(void); /* NULL: the scheduler's own stack */
struct fibers *fiber_fibers(const struct fiber *f);
const char *fiber_name(const struct fiber *f);
void fiber_sleep(int64_t ns);             /* on a fiber */
/* Until fiber_wake or that time; INT64_MAX: for ever. what: for reports, a literal. False: the time came first. */
bool fiber_wait(int64_t until_ns, const char *what);
void fiber_wake(struct fiber *f);         /* no effect on one that does not wait */

/* Those who wait for one thing. A fiber that leaves by time is taken out by itself. */
bool fiber_wait_in(struct fiber_queue *q, int64_t until_ns, const char *what);
void fiber_wake_one(struct fiber_queue *q);
void fiber_wake_all(struct fiber_queue *q);

#endif
