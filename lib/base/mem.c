/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation, and the reserve for a shortage (see mem.h). The reserve is a pair of atomics: who exchanges it
 * for NULL has it, and frees it for the allocation that failed; who next asks whether memory is short tries
 * to fill it again. While it is away the x_try functions fail, so that what outsiders size goes without
 * before the process itself does. Any thread, without a lock.
 */
#include "lib/base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/slice.h"

/* ---- the reserve ---- */

static _Atomic(void *) reserve;     /* NULL: given away, or none is kept */
static atomic_size_t reserve_bytes; /* 0: none is kept */

/* The compiler leaves out a malloc that is only freed again, so the memory is written to. */
static void *reserve_get(size_t n)
{
    void *p = malloc(n);

    if (p != NULL)
        memset(p, 0xa5, n);
    return p;
}

void mem_keep_reserve(size_t n)
{
    atomic_store(&reserve_bytes, n);
    atomic_store(&reserve, reserve_get(n));
}

/* Gives the reserve away. False: there is none. */
static bool reserve_spend(void)
{
    void *p = atomic_exchange(&reserve, NULL);

    free(p);
    return p != NULL;
}

bool mem_is_short(void)
{
    size_t n = atomic_load_explicit(&reserve_bytes, memory_order_relaxed);

    if (likely(n == 0 || atomic_load_explicit(&reserve, memory_order_relaxed) != NULL))
        return false;
    void *p = reserve_get(n), *nothing = NULL;
    if (p != NULL && !atomic_compare_exchange_strong(&reserve, &nothing, p))
        free(p); /* another thread was faster */
    return p == NULL;
}

/* ---- sizes of outsiders ---- */

void *x_try_malloc(size_t n)
{
    return mem_is_short() ? NULL : malloc(n);
}

void *x_try_realloc(void *p, size_t n)
{
    return mem_is_short() ? NULL : realloc(p, n);
}

/* ---- the process's own ---- */

NORETURN COLD static void out_of_memory(size_t n)
{
    log_error("out of memory: %zu bytes could not be had; give this machine, or this process (ulimit -v, "
              "MemoryMax), more of it",
              n);
    abort();
}

static void *again(void *p, size_t n)
{
    reserve_spend();
    p = realloc(p, n);
    if (p == NULL && n > 0)
        out_of_memory(n);
    return p;
}

void *xmalloc(size_t n)
{
    void *p = malloc(n);

    return likely(p != NULL || n == 0) ? p : again(NULL, n);
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (likely(p != NULL || n == 0 || size == 0))
        return p;
    size_t bytes;
    KCHECK(!__builtin_mul_overflow(n, size, &bytes));
    return memset(again(NULL, bytes), 0, bytes);
}

void *xrealloc(void *p, size_t n)
{
    void *q = realloc(p, n);

    return likely(q != NULL || n == 0) ? q : again(p, n);
}

void *xreallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;

    KCHECK(!__builtin_mul_overflow(n, size, &bytes));
    return xrealloc(p, bytes);
}

char *xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;

    return memcpy(xmalloc(n), s, n);
}

char *xstrndup(const char *s, size_t n)
{
    n = strnlen(s, n);
    char *copy = xmalloc(n + 1);

    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory(strlen(fmt));
    return s;
}

void closep(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

char *kstr_dup(struct kstr s)
{
    return s.n < 0 ? NULL : xstrndup(s.n > 0 ? s.p : "", (size_t)s.n);
}
