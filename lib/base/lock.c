/* SPDX-License-Identifier: Apache-2.0 */
/* What is seldom needed of locks: see lock.h. */
#include "lib/base/lock.h"

#include "lib/base/log.h"

void lock_init(struct lock *l, int rank, const char *name)
{
    pthread_mutex_init(&l->mu, NULL);
    l->rank = rank;
    l->name = name;
}

void lock_init_spinning(struct lock *l, int rank, const char *name)
{
    pthread_mutexattr_t spin_first;
    pthread_mutexattr_init(&spin_first);
    pthread_mutexattr_settype(&spin_first, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&l->mu, &spin_first);
    pthread_mutexattr_destroy(&spin_first);
    l->rank = rank;
    l->name = name;
}

void lock_done(struct lock *l)
{
    pthread_mutex_destroy(&l->mu);
}

void lock_check_order(const struct lock *l)
{
    const struct thread_state *t = &thread_state;
    for (int i = 0; i < t->n_held; i++) {
        if (t->held[i]->rank < l->rank)
            continue;
        log_error("lock %s, of rank %d, is taken while %s, of rank %d, is held", l->name, l->rank, t->held[i]->name,
                  t->held[i]->rank);
        KCHECK(t->held[i]->rank < l->rank);
    }
}

void lock_forget(const struct lock *l)
{
    struct thread_state *t = &thread_state;
    int i = t->n_held;
    while (i > 0 && t->held[i - 1] != l)
        i--;
    KCHECK(i > 0);
    for (t->n_held--; i <= t->n_held; i++)
        t->held[i - 1] = t->held[i];
}
