/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on bytes a second: what may pass is saved up for at most a second. Whoever has passed more than there was leaves a
 * debt, which time pays, so that over seconds the rate holds whatever the size of the pieces. Any thread.
 */
#ifndef KLOG_DAEMON_THROTTLE_H
#define KLOG_DAEMON_THROTTLE_H

#include <stdatomic.h>
#include <stdint.h>

#include "lib/base/lock.h"

struct throttle {
    struct lock mu;
    atomic_int_fast64_t rate; /* bytes a second; INT64_MAX: no bound */
    int64_t left;             /* guarded by mu: may pass now; below 0: a debt */
    int64_t at_ms;            /* guarded by mu: the time that `left` is of */
};

void throttle_init(struct throttle *t); /* without a bound */
void throttle_done(struct throttle *t);
void throttle_set_rate(struct throttle *t, int64_t bytes_per_second);
/* Bytes that may pass at that time (monotonic), 0 none; INT64_MAX: there is no bound. */
int64_t throttle_room(struct throttle *t, int64_t now_ms);
void throttle_passed(struct throttle *t, int64_t bytes, int64_t now_ms);
/* How long until something may pass again, at least 1 and at most 1000. */
int64_t throttle_wait_ms(struct throttle *t, int64_t now_ms);

#endif
