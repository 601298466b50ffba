/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator: everything that one request decodes or answers lives in one
 * arena and goes with it. Not thread-safe: one thread at a time.
 */
#ifndef KLOG_BASE_ARENA_H
#define KLOG_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/attr.h"
#include "lib/base/slice.h"

struct arena {
    struct arena_block *head;
    size_t used_bytes;     /* handed out so far, for limits */
};

void arena_init(struct arena *a);
void arena_done(struct arena *a);          /* frees everything; the arena can be used again */
void *arena_alloc(struct arena *a, size_t n);              /* aligned to 16, zeroed, never NULL */
void *arena_try_alloc(struct arena *a, size_t n);          /* the same; NULL when there is no memory */
/* Makes sure that allocations of n bytes together will be had. False when there is no memory. */
bool arena_try_reserve(struct arena *a, size_t n);
void *arena_array(struct arena *a, size_t n, size_t size); /* zeroed; overflow is checked */
void *arena_dup(struct arena *a, const void *p, size_t n);
char *arena_strdup(struct arena *a, const char *s);
struct kstr arena_kstr(struct arena *a, struct kstr s);    /* copy; null stays null */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
