/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reactor: descriptors, timers, and tasks posted from other threads. One thread runs
 * it; only loop_post, loop_stop and loop_is_mine may be called from others. Nothing that runs on it
 * may block. loop_run blocks SIGPIPE on its thread, since sendfile has no MSG_NOSIGNAL.
 */
#ifndef KLOG_LOOP_LOOP_H
#define KLOG_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

struct loop;
struct world;

struct loop *loop_new(const struct world *w); /* NULL and errno when descriptors are out */
void loop_free(struct loop *lp);              /* not while it runs; pending tasks are dropped */
void loop_run(struct loop *lp);               /* until loop_stop; to have it run elsewhere: exec.h */
void loop_stop(struct loop *lp);              /* any thread; tasks posted before it still run */
/* One round, for synchronous callers (klog). False: the loop was told to stop. */
bool loop_run_once(struct loop *lp, int timeout_ms);
bool loop_is_mine(const struct loop *lp);   /* is the caller inside one of its rounds? */
int64_t loop_now_ms(const struct loop *lp); /* monotonic, read once a round */
const struct world *loop_world(const struct loop *lp);

/* ---- descriptors ---- */
struct loop_fd {
    int fd;
    uint32_t events; /* EPOLLIN | EPOLLOUT ..., level-triggered */
    void (*cb)(struct loop_fd *w, uint32_t events);
};
int loop_fd_add(struct loop *lp, struct loop_fd *w); /* caller fills the struct and owns it */
void loop_fd_mod(struct loop *lp, struct loop_fd *w, uint32_t events);
void loop_fd_del(struct loop *lp, struct loop_fd *w); /* cb is never called after it, this round included */

/* ---- timers ---- */
struct timer {
    void (*cb)(struct timer *t);
    int64_t due_ms; /* loop_now_ms() scale */
    int heap_index; /* private; 0 = not set. Zero-initialise the struct */
};
void timer_set(struct loop *lp, struct timer *t, int64_t due_ms); /* sets or moves it */
void timer_clear(struct loop *lp, struct timer *t);               /* fine when it is not set */
/* in_ms from now; negative is at once, and what no clock reaches is never. */
void timer_set_in(struct loop *lp, struct timer *t, int64_t in_ms);
/* All of them: the loop has ended, and what they are part of may now be freed in any order. */
void loop_clear_timers(struct loop *lp);
static inline bool timer_is_set(const struct timer *t)
{
    return t->heap_index != 0;
}

/* ---- tasks ---- */
struct task {
    void (*cb)(struct task *t);
    STAILQ_ENTRY(task) link;
    bool queued; /* private; guarded by the loop's mutex */
};
/* Any thread. Runs cb once on the loop's thread, soon; no effect while it is queued. Wakes the loop, from another loop's
 * thread at the end of that one's round: until then neither may be freed. */
void loop_post(struct loop *lp, struct task *t);
/* Loop's thread only. After it cb does not run unless posted again. */
void loop_cancel(struct loop *lp, struct task *t);

/* ---- the end of the round ---- */
struct deferred {
    void (*cb)(struct deferred *d);
    TAILQ_ENTRY(deferred) link;
    bool queued; /* private */
};
/* Loop's thread only. Runs cb once, after this round's descriptors, timers and tasks; no effect while it is
 * queued already. What is deferred while the deferred run comes in this round too, but only once. */
void loop_defer(struct loop *lp, struct deferred *d);
void loop_defer_cancel(struct loop *lp, struct deferred *d);

#endif
