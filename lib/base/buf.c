/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that grow, and bytes that are shared (see buf.h). A bytebuf grows by half of what it has, at least
 * 64 bytes, so that n bytes added singly cost n copies at most twice over; it belongs to one owner and one
 * thread at a time. An rcbuf's count is atomic: references may be taken and dropped on any thread; who drops
 * the last frees it, and sees all that was written before the other drops. Its bytes are guarded by nothing:
 * they are written before it is shared. Sizes of outsiders go through the _try_ functions, which return
 * failure; the others abort when memory is out.
 */
#include "lib/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

void bytebuf_done(struct bytebuf *b)
{
    free(b->p);
    *b = (struct bytebuf){ 0 };
}

uint8_t *bytebuf_room(struct bytebuf *b, size_t n)
{
    if (b->cap - b->n < n) {
        KCHECK(n <= SIZE_MAX / 2 - b->n);
        b->cap = MAX(b->n + n, MAX(b->cap + b->cap / 2, (size_t)64));
        b->p = xrealloc(b->p, b->cap);
    }
    return b->p == NULL ? NULL : b->p + b->n; /* no room in nothing, as of an empty file */
}

bool bytebuf_try_room(struct bytebuf *b, size_t n)
{
    if (b->cap - b->n >= n)
        return true;
    if (n > SIZE_MAX / 2 - b->n)
        return false;
    size_t cap = MAX(b->n + n, MAX(b->cap + b->cap / 2, (size_t)64));
    uint8_t *p = x_try_realloc(b->p, cap);
    if (p == NULL)
        return false;
    b->cap = cap;
    b->p = p;
    return true;
}

uint8_t *bytebuf_extend(struct bytebuf *b, size_t n)
{
    uint8_t *p = bytebuf_room(b, n);

    b->n += n;
    return p;
}

void bytebuf_add(struct bytebuf *b, const void *p, size_t n)
{
    if (n > 0)
        memcpy(bytebuf_extend(b, n), p, n);
}

void bytebuf_adds(struct bytebuf *b, const char *s)
{
    bytebuf_add(b, s, strlen(s));
}

void bytebuf_printf(struct bytebuf *b, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    KCHECK(n >= 0);
    vsnprintf((char *)bytebuf_room(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
    va_end(again);
    b->n += (size_t)n;
}

void bytebuf_consume(struct bytebuf *b, size_t n)
{
    KCHECK(n <= b->n);
    b->n -= n;
    if (n > 0 && b->n > 0)
        memmove(b->p, b->p + n, b->n);
}

char *bytebuf_cstr(struct bytebuf *b)
{
    *bytebuf_room(b, 1) = '\0';
    return (char *)b->p;
}

struct rcbuf *rcbuf_new(size_t cap)
{
    struct rcbuf *b = xmalloc(sizeof *b);

    atomic_init(&b->refs, 1);
    b->n = 0;
    b->cap = cap;
    b->p = xmalloc(cap);
    return b;
}

struct rcbuf *rcbuf_try_new(size_t cap)
{
    uint8_t *p = x_try_malloc(MAX(cap, (size_t)1));

    if (p == NULL)
        return NULL;
    struct rcbuf *b = xmalloc(sizeof *b);
    atomic_init(&b->refs, 1);
    b->n = 0;
    b->cap = cap;
    b->p = p;
    return b;
}

struct rcbuf *rcbuf_take(struct bytebuf *src)
{
    struct rcbuf *b = xmalloc(sizeof *b);

    atomic_init(&b->refs, 1);
    b->n = src->n;
    b->cap = src->cap;
    b->p = src->p;
    *src = (struct bytebuf){ 0 };
    return b;
}

struct rcbuf *rcbuf_ref(struct rcbuf *b)
{
    int before = atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);

    KCHECK(before > 0);
    return b;
}

void rcbuf_unref(struct rcbuf *b)
{
    if (b == NULL)
        return;
    int before = atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel);
    KCHECK(before > 0);
    if (before == 1) {
        free(b->p);
        free(b);
    }
}
