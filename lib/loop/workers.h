/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that may block: disk, DNS. A pool does so many at a time, on threads of its world, in the order in which they came. */
#ifndef KLOG_LOOP_WORKERS_H
#define KLOG_LOOP_WORKERS_H

#include "lib/loop/loop.h"

struct workers;
struct job {
    void (*run)(struct job *j);  /* on a worker; may block */
    void (*done)(struct job *j); /* on the loop that asked; may free j */
    struct loop *loop;           /* NULL: done runs on the worker, straight after run */
    struct task task;            /* private */
    STAILQ_ENTRY(job) link;      /* private */
};
struct workers *workers_new(const struct world *w, int width, const char *name); /* NULL: the system has no threads */
void workers_submit(struct workers *w, struct job *j);                           /* any thread; FIFO */
/* So many at a time from now on, 1..1024; who is at work ends its job first. One caller at a time. Returns how many there are:
 * fewer when the system gives no more; 0 only of a pool that had none. */
int workers_resize(struct workers *w, int width);
int workers_waiting(struct workers *w); /* jobs that nobody has begun yet; any thread */
void workers_free(struct workers *w); /* runs what is queued, waits for its end; NULL is fine */

/* Resolves "host:port" (or "[v6]:port") on the pool; cb on lp with 0 and addresses, or an EAI_ text. */
struct addrinfo;
void resolve(struct workers *w, struct loop *lp, const char *host, const char *port,
             void (*cb)(void *arg, struct addrinfo *list, const char *err), void *arg);

#endif
