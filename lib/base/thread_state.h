/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that is thread-local and bears on what a program does: in one place, so that whoever runs several threads of a
 * simulated world on one real thread can exchange it. (The codecs' contexts are caches, and stay out.)
 */
#ifndef KLOG_BASE_THREAD_STATE_H
#define KLOG_BASE_THREAD_STATE_H

#include <stdbool.h>

struct lock;
struct loop;

enum { LOCKS_HELD_MAX = 16 };

struct thread_state {
    struct loop *loop; /* the one in whose round it is (lib/loop/loop.c); NULL: none */
    bool may_not_wait; /* see plog_thread_may_not_wait */
    int n_held;
    const struct lock *held[LOCKS_HELD_MAX]; /* in the order in which they were taken (lib/base/lock.h) */
};

extern _Thread_local struct thread_state thread_state;

#endif
