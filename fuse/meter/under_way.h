/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's requests that have no answer yet: of which kind they are and when they came, by the kernel's number. One thread
 * takes them in, any answers; nobody locks. Rules:
 *   U1  A slot whose number is 0 is free; only the thread that takes requests in fills one, and its number last.
 *   U2  The one who answers frees it, its number last; a number is answered once.
 *   U3  A number has WINDOW places in each block. A further block, twice as large, is made when all of them are taken, and stays.
 */
#ifndef KLOG_FUSE_UNDER_WAY_H
#define KLOG_FUSE_UNDER_WAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { UNDER_WAY_BLOCKS = 16 };

struct under_way_slot;
struct under_way {
    _Atomic(struct under_way_slot *) blocks[UNDER_WAY_BLOCKS]; /* zeroed: empty */
};

/* number is not 0 and not under way. The one thread. False: there is no room for it, with tens of millions under way. */
bool under_way_take(struct under_way *u, uint64_t number, uint32_t kind, int64_t since_ns);
/* False: it is not under way. Any thread. */
bool under_way_answered(struct under_way *u, uint64_t number, uint32_t *ret_kind, int64_t *ret_since_ns);
void under_way_done(struct under_way *u);

#endif
