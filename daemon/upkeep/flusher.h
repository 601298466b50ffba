/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes what was appended durable, by group commit: while a partition's fdatasync runs, everything that is
 * appended to it meanwhile gathers for the next one. Nobody else may sync a hosted log. Rules S4, S8.
 */
#ifndef KLOG_DAEMON_FLUSHER_H
#define KLOG_DAEMON_FLUSHER_H

#include <stdint.h>

struct broker;
struct flusher;
struct partition;

struct flusher *flusher_new(struct broker *b); /* after broker.dirs; starts the threads */
void flusher_free(struct flusher *f);          /* flushes what is queued, joins the threads */

/* Any thread, also under partition.mu. Soon, or (_by) at the latest at clock_mono_ms() == due_ms. */
void flusher_queue(struct flusher *f, struct partition *pt);
void flusher_queue_by(struct flusher *f, struct partition *pt, int64_t due_ms);
/* The partition is being removed: takes it out. A flush of it that runs goes on; it holds a reference. */
void flusher_forget(struct flusher *f, struct partition *pt);

#endif
