/* SPDX-License-Identifier: Apache-2.0 */
/* See throttle.h. */
#include "daemon/replica/throttle.h"

#include "daemon/config/ranks.h"
#include "lib/base/attr.h"

enum { SECOND_MS = 1000 };

void throttle_init(struct throttle *t)
{
    lock_init(&t->mu, LOCK_RANK_THROTTLE, "throttle");
    atomic_init(&t->rate, INT64_MAX);
    t->left = 0;
    t->at_ms = -1;
}

void throttle_done(struct throttle *t)
{
    lock_done(&t->mu);
}

void throttle_set_rate(struct throttle *t, int64_t bytes_per_second)
{
    atomic_store_explicit(&t->rate, bytes_per_second, memory_order_relaxed);
}

/* What has come since, at most a second's. */
static void bring_up(struct throttle *t, int64_t rate, int64_t now_ms)
{
    lock_assert_held(&t->mu);
    int64_t ms = t->at_ms < 0 ? SECOND_MS : MIN(now_ms - t->at_ms, (int64_t)SECOND_MS);

    if (ms <= 0)
        return;
    t->left = MIN(t->left + (int64_t)((double)rate * (double)ms / SECOND_MS), rate);
    t->at_ms = now_ms;
}

static int64_t rate_of(struct throttle *t)
{
    return atomic_load_explicit(&t->rate, memory_order_relaxed);
}

/* A debt of a bound that has been lowered since is forgiven down to ten seconds of the new one. */
static int64_t left_now(struct throttle *t, int64_t rate, int64_t now_ms)
{
    lock_take(&t->mu);
    if (rate < INT64_MAX / 16)
        t->left = MAX(t->left, -10 * rate);
    bring_up(t, rate, now_ms);
    int64_t left = t->left;
    lock_release(&t->mu);
    return left;
}

int64_t throttle_room(struct throttle *t, int64_t now_ms)
{
    int64_t rate = rate_of(t);

    return rate == INT64_MAX ? INT64_MAX : MAX(left_now(t, rate, now_ms), 0);
}

void throttle_passed(struct throttle *t, int64_t bytes, int64_t now_ms)
{
    int64_t rate = rate_of(t);

    if (rate == INT64_MAX)
        return;
    lock_take(&t->mu);
    bring_up(t, rate, now_ms);
    t->left -= bytes;
    lock_release(&t->mu);
}

int64_t throttle_wait_ms(struct throttle *t, int64_t now_ms)
{
    int64_t rate = rate_of(t), left = rate == INT64_MAX ? 1 : left_now(t, rate, now_ms);

    if (left > 0)
        return 1;
    return rate == 0 ? SECOND_MS : MAX(1, MIN((int64_t)((double)-left * SECOND_MS / (double)rate) + 1, (int64_t)SECOND_MS));
}
