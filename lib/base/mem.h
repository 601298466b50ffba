/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation. What an outsider sized (a frame, a decoded request, an answer) is asked for with the x_try
 * functions, which return NULL: running out is then that request's error. What the process needs for itself
 * comes from xmalloc and friends, which say that memory is out and abort.
 *
 * A process that must go on may keep a reserve: the first of its own small things that finds no memory gets
 * the reserve's, and the x_try functions fail until there is enough to fill it again.
 */
#ifndef KLOG_BASE_MEM_H
#define KLOG_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "lib/base/attr.h"

/* NULL when there is no memory. Any thread. */
void *x_try_malloc(size_t n);
void *x_try_realloc(void *p, size_t n); /* on failure p stays as it was */

/* Keeps n bytes for a moment of shortage. Once, at the start. */
void mem_keep_reserve(size_t n);
/* The reserve is given away and could not be filled again yet. */
bool mem_is_short(void);

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);              /* checks n * size for overflow */
void *xrealloc(void *p, size_t n);
void *xreallocarray(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* CLEANUP(freep) char *s = ...; */
static inline void freep(void *pp)
{
    free(*(void **)pp);
}
void closep(int *fd);                              /* CLEANUP(closep) int fd = -1; keeps errno */

/* Hands an owned pointer over and leaves NULL: return take(&s); */
#define take(pp) ({ __typeof__(*(pp)) take_tmp_ = *(pp); *(pp) = NULL; take_tmp_; })

#endif
