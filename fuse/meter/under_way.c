/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of slots that never move; rules U1 to U3 of under_way.h. */
#include "fuse/meter/under_way.h"

#include <stdlib.h>

#include "lib/base/mem.h"

enum { FIRST_BITS = 10, WINDOW = 8 };

struct under_way_slot {
    atomic_ullong number;
    int64_t since_ns;
    uint32_t kind;
};

/* The first of its WINDOW places in block i. The kernel counts in steps of two or more. */
static struct under_way_slot *window(struct under_way_slot *block, int i, uint64_t number)
{
    return block + (number * 0x9e3779b97f4a7c15u >> (64 - FIRST_BITS - i));
}

static size_t block_slots(int i)
{
    return ((size_t)1 << (FIRST_BITS + i)) + WINDOW - 1; /* the last window ends with the block */
}

/* The place of those for `at` that has that number (0: a free one); NULL none. */
static struct under_way_slot *find(struct under_way_slot *block, int i, uint64_t at, uint64_t number)
{
    struct under_way_slot *s = window(block, i, at);
    for (int k = 0; k < WINDOW; k++)
        if (atomic_load_explicit(&s[k].number, memory_order_acquire) == number)
            return &s[k];
    return NULL;
}

bool under_way_take(struct under_way *u, uint64_t number, uint32_t kind, int64_t since_ns)
{
    struct under_way_slot *s = NULL;
    for (int i = 0; i < UNDER_WAY_BLOCKS && s == NULL; i++) {
        struct under_way_slot *block = atomic_load_explicit(&u->blocks[i], memory_order_relaxed);
        if (block == NULL) {
            block = xcalloc(block_slots(i), sizeof *block);
            atomic_store_explicit(&u->blocks[i], block, memory_order_release);
        }
        s = find(block, i, number, 0);
    }
    if (s == NULL)
        return false;
    s->kind = kind;
    s->since_ns = since_ns;
    atomic_store_explicit(&s->number, number, memory_order_release);
    return true;
}

bool under_way_answered(struct under_way *u, uint64_t number, uint32_t *ret_kind, int64_t *ret_since_ns)
{
    struct under_way_slot *s = NULL, *block;
    for (int i = 0; i < UNDER_WAY_BLOCKS && s == NULL; i++) {
        block = atomic_load_explicit(&u->blocks[i], memory_order_acquire);
        if (block == NULL)
            return false;
        s = find(block, i, number, number);
    }
    if (s == NULL)
        return false;
    *ret_kind = s->kind;
    *ret_since_ns = s->since_ns;
    atomic_store_explicit(&s->number, 0, memory_order_release);
    return true;
}

void under_way_done(struct under_way *u)
{
    for (int i = 0; i < UNDER_WAY_BLOCKS; i++)
        free(atomic_load(&u->blocks[i]));
}
