/* SPDX-License-Identifier: Apache-2.0 */
/* Views of memory that somebody else owns. */
#ifndef KLOG_BASE_SLICE_H
#define KLOG_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes; p may be NULL only when n is 0. */
struct slice {
    const uint8_t *p;
    size_t n;
};

/* A string or byte field of the wire protocol; n is -1 for null. Not NUL-terminated. */
struct kstr {
    const char *p;
    int32_t n;
};

#define KSTR_NULL ((struct kstr){ NULL, -1 })

static inline struct slice slice_of(const void *p, size_t n)
{
    return (struct slice){ p, n };
}

static inline struct kstr kstr_of(const char *s) /* s may be NULL */
{
    return (struct kstr){ s, s == NULL ? -1 : (int32_t)strlen(s) };
}

static inline struct kstr kstr_bytes(const void *p, size_t n)
{
    return (struct kstr){ p, (int32_t)n };
}

static inline bool kstr_is_null(struct kstr s)
{
    return s.n < 0;
}

static inline bool kstr_eq(struct kstr a, struct kstr b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

/* As memcmp orders their bytes; a shorter one is before what it begins. */
static inline int kstr_cmp(struct kstr a, struct kstr b)
{
    int32_t n = a.n < b.n ? a.n : b.n;
    int d = n > 0 ? memcmp(a.p, b.p, (size_t)n) : 0;
    return d != 0 ? d : (a.n > b.n) - (a.n < b.n);
}
static inline bool kstr_eqz(struct kstr a, const char *z)
{
    return kstr_eq(a, kstr_of(z));
}

/* printf("%.*s", KSTR_FMT(s)) */
#define KSTR_FMT(s) ((s).n > 0 ? (s).n : 0), ((s).n > 0 ? (s).p : "")

char *kstr_dup(struct kstr s); /* NUL-terminated copy, NULL for null or out of memory; free() it */

#endif
