/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of lib/loop share about a loop: its network, and on its thread the read scratch and the cache of receive
 * buffers.
 */
#ifndef KLOG_LOOP_LOOP_INT_H
#define KLOG_LOOP_LOOP_INT_H

#include "lib/base/buf.h"
#include "lib/base/world.h"
#include "lib/loop/loop.h"

static inline const struct net *loop_net(const struct loop *lp)
{
    return loop_world(lp)->net;
}

/* One read buffer for all connections of the loop: its content does not outlive the callback. */
enum { LOOP_SCRATCH_BYTES = 64 * 1024 };
uint8_t *loop_scratch(struct loop *lp);

/* Big buffers are used again and again, since memory fresh from the kernel costs more than the copy out of
 * the socket. The cache holds a reference of its own on each buffer it has seen; one that nobody else holds
 * any more is free. */
enum {
    LOOP_CACHE_SLOTS = 8,
    LOOP_CACHE_MIN_BYTES = 64 * 1024, /* smaller ones are malloc's business */
    LOOP_CACHE_MAX_BYTES = 2 * 1024 * 1024 + 64 * 1024,
};
struct rcbuf *loop_cache_get(struct loop *lp, size_t n); /* one reference, n = 0, cap >= n; NULL: none free */
void loop_cache_put(struct loop *lp, struct rcbuf *b);   /* remembers b when its size fits */

#endif
