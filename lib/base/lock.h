/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutex of which a thread knows that it holds it: what needs it held says so in code, lock_assert_held(), not in a comment.
 * What is held stands in thread_state, which costs a store and an addition.
 *
 * Locks that are held together are taken by rank, the lower one first. Builds for the simulator and with sanitizers end where
 * they are not (LOCK_ORDER), whether or not another thread waits the other way round just then, and where a thread would wait
 * for itself.
 */
#ifndef KLOG_BASE_LOCK_H
#define KLOG_BASE_LOCK_H

#include <pthread.h>

#include "lib/base/check.h"
#include "lib/base/thread_state.h"

#if defined(KLOG_SIM) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCK_ORDER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOCK_ORDER 1
#endif
#endif

/* Locks of daemon/ are taken before those of the store, these before the loops': each folder numbers its own from there. */
enum {
    LOCK_RANK_DAEMON = 100,
    LOCK_RANK_STORE = 200,
    LOCK_RANK_LOOP = 300,
};

struct lock {
    pthread_mutex_t mu; /* for conditions to wait with */
    int rank;
    const char *name;
};

void lock_init(struct lock *l, int rank, const char *name); /* name: for people; outlives l */
void lock_init_spinning(struct lock *l, int rank, const char *name); /* who finds it taken turns for a while, then sleeps */
void lock_done(struct lock *l);
void lock_check_order(const struct lock *l);
void lock_forget(const struct lock *l);

static inline void lock_take(struct lock *l)
{
#ifdef LOCK_ORDER
    lock_check_order(l);
#endif
    struct thread_state *t = &thread_state;
    KCHECK(t->n_held < LOCKS_HELD_MAX);
    pthread_mutex_lock(&l->mu);
    t->held[t->n_held++] = l;
}

/* False: another thread holds it. */
static inline bool lock_try(struct lock *l)
{
#ifdef LOCK_ORDER
    lock_check_order(l);
#endif
    struct thread_state *t = &thread_state;
    KCHECK(t->n_held < LOCKS_HELD_MAX);
    if (pthread_mutex_trylock(&l->mu) != 0)
        return false;
    t->held[t->n_held++] = l;
    return true;
}

static inline void lock_release(struct lock *l)
{
    struct thread_state *t = &thread_state;
    if (likely(t->n_held > 0 && t->held[t->n_held - 1] == l))
        t->n_held--;
    else
        lock_forget(l); /* it was not the last that was taken */
    pthread_mutex_unlock(&l->mu);
}

static inline bool lock_is_held(const struct lock *l) /* by this thread */
{
    for (int i = thread_state.n_held; i-- > 0;)
        if (thread_state.held[i] == l)
            return true;
    return false;
}

#define lock_assert_held(l) KCHECK(lock_is_held(l))

#endif
