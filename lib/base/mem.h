/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that cannot fail quietly. Sizes that come from outside are checked
 * against limits before they get here, so running out is the machine's end, not
 * a request's error: xmalloc and friends abort with a message.
 */
#ifndef KLOG_BASE_MEM_H
#define KLOG_BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>

#include "lib/base/attr.h"

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
