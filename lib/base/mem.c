/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/slice.h"

static void *need(void *p, size_t n)
{
    KCHECK(p != NULL || n == 0);
    return p;
}

void *xmalloc(size_t n)
{
    return need(malloc(n), n);
}

void *xcalloc(size_t n, size_t size)
{
    return need(calloc(n, size), n * size);
}

void *xrealloc(void *p, size_t n)
{
    return need(realloc(p, n), n);
}

void *xreallocarray(void *p, size_t n, size_t size)
{
    return need(reallocarray(p, n, size), n * size);
}

char *xstrdup(const char *s)
{
    return need(strdup(s), 1);
}

char *xstrndup(const char *s, size_t n)
{
    return need(strndup(s, n), 1);
}

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    KCHECK(n >= 0);
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
    return s.n < 0 ? NULL : strndup(s.n > 0 ? s.p : "", (size_t)s.n);
}
