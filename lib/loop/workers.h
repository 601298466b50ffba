/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of threads for what may block: disk, DNS. */
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
struct workers *workers_new(int threads, const char *name);
void workers_submit(struct workers *w, struct job *j); /* any thread; FIFO */
/* So many threads from now on, 1..1024; who is at work ends its job first. One caller at a time. Returns how many there are:
 * fewer when the system gives no more; 0 only of a pool that had none. */
int workers_resize(struct workers *w, int threads);
void workers_free(struct workers *w);                  /* runs what is queued, joins */

/* Resolves "host:port" (or "[v6]:port") on the pool; cb on lp with 0 and addresses, or an EAI_ text. */
struct addrinfo;
void resolve(struct workers *w, struct loop *lp, const char *host, const char *port,
             void (*cb)(void *arg, struct addrinfo *list, const char *err), void *arg);

#endif
