/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes what was appended durable, by group commit: while a log's fdatasync runs, everything that is appended to it
 * meanwhile gathers for the next one. Nobody else may sync a hosted log. Rules S4, S8. What is synced, and who is told, is
 * the owner's of the struct flush_entry: the flusher knows when, and in which order.
 */
#ifndef KLOG_DAEMON_FLUSHER_H
#define KLOG_DAEMON_FLUSHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct flusher;
struct flush_entry;
struct world;

struct flush_ops {
    /* Makes durable what was appended before this call, and says so to whom it concerns. Blocks; one call an entry at a
     * time. False: nothing could be done for want of descriptors, and it has to be tried again. */
    bool (*flush)(struct flush_entry *e);
    /* Each place in a queue holds a reference; ref is called with the lane's lock held. */
    void (*ref)(struct flush_entry *e);
    void (*unref)(struct flush_entry *e);
};

/* Part of what is to be flushed. The owner sets ops and lane once; the rest is the flusher's, guarded by its lock. */
struct flush_entry {
    const struct flush_ops *ops;
    int lane;
    bool queued, running, timed;
    int64_t due_ms;
    TAILQ_ENTRY(flush_entry) link;
    LIST_ENTRY(flush_entry) timed_link;
};

/* A lane for each log directory. Starts the threads. */
struct flusher *flusher_new(const struct world *w, int lanes);
void flusher_free(struct flusher *f); /* flushes what is queued, joins the threads */

/* Any thread, also under the owner's lock. Soon, or (_by) at the latest at the monotonic due_ms. */
void flusher_queue(struct flusher *f, struct flush_entry *e);
void flusher_queue_by(struct flusher *f, struct flush_entry *e, int64_t due_ms);
/* The owner goes: takes it out. A flush of it that runs goes on; it holds a reference. */
void flusher_forget(struct flusher *f, struct flush_entry *e);
/* How long syncs took, added to *took, and how many entries wait for one. Any thread. */
struct histogram_sum;
void flusher_figures(struct flusher *f, struct histogram_sum *took, int64_t *ret_waiting);
/* In no queue, and nobody works on it: the owner may be freed. */
static inline bool flush_entry_is_idle(const struct flush_entry *e)
{
    return !e->queued && !e->running && !e->timed;
}

#endif
