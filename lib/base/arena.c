/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks in a list, newest first; each holds what came after it was made. What is larger than half a block
 * gets one of its own behind the head, so that the rest of the current one is not wasted. Everything is
 * zeroed and aligned to 16 bytes. Nothing is freed singly: all goes with arena_done. One thread at a time.
 * Sizes of outsiders come through arena_try_alloc and arena_try_reserve, which answer NULL and false; the
 * others abort when memory is out.
 */
#include "lib/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

enum { ARENA_ALIGN = 16, ARENA_BLOCK_BYTES = 4096 };

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    _Alignas(ARENA_ALIGN) uint8_t data[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena){ 0 };
}

void arena_done(struct arena *a)
{
    struct arena_block *next;

    for (struct arena_block *b = a->head; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    arena_init(a);
}

/* A block with room for n; NULL when get finds no memory. */
static struct arena_block *arena_block_new(size_t n, void *get(size_t bytes))
{
    size_t cap = MAX(n, (size_t)ARENA_BLOCK_BYTES - sizeof(struct arena_block));
    struct arena_block *b = get(sizeof *b + cap);

    if (b == NULL)
        return NULL;
    b->used = 0;
    b->cap = cap;
    return b;
}

static struct arena_block *arena_grow(struct arena *a, size_t n, void *get(size_t bytes))
{
    struct arena_block *b = arena_block_new(n, get);

    if (b == NULL)
        return NULL;
    if (a->head != NULL && n > ARENA_BLOCK_BYTES / 2) {     /* a big one must not waste the current block */
        b->next = a->head->next;
        a->head->next = b;
    } else {
        b->next = a->head;
        a->head = b;
    }
    return b;
}

static size_t arena_round(size_t n)
{
    KCHECK(n <= SIZE_MAX / 2);
    return (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
}

static inline void *arena_take(struct arena *a, size_t n, void *get(size_t bytes))
{
    n = arena_round(n);
    struct arena_block *b = a->head;
    if (b == NULL || b->cap - b->used < n)
        b = arena_grow(a, n, get);
    if (b == NULL)
        return NULL;
    void *p = b->data + b->used;
    b->used += n;
    a->used_bytes += n;
    return memset(p, 0, n);
}

void *arena_alloc(struct arena *a, size_t n)
{
    return arena_take(a, n, xmalloc);
}

void *arena_try_alloc(struct arena *a, size_t n)
{
    return arena_take(a, n, x_try_malloc);
}

bool arena_try_reserve(struct arena *a, size_t n)
{
    n = arena_round(n);
    if (a->head != NULL && a->head->cap - a->head->used >= n)
        return true;
    struct arena_block *b = arena_block_new(n, x_try_malloc);
    if (b == NULL)
        return false;
    b->next = a->head;
    a->head = b;
    return true;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t bytes;

    KCHECK(!__builtin_mul_overflow(n, size, &bytes));
    return arena_alloc(a, bytes);
}

void *arena_dup(struct arena *a, const void *p, size_t n)
{
    void *copy = arena_alloc(a, n);

    return n > 0 ? memcpy(copy, p, n) : copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_dup(a, s, strlen(s) + 1);
}

struct kstr arena_kstr(struct arena *a, struct kstr s)
{
    if (s.n <= 0)
        return (struct kstr){ s.n == 0 ? "" : NULL, s.n };
    return (struct kstr){ arena_dup(a, s.p, (size_t)s.n), s.n };
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    KCHECK(n >= 0);
    char *s = arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}
