/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads big-endian bytes. A reader fails once and stays failed: after that everything reads as zero and
 * nothing is left, so a decoder may run to its end and ask `bad` once. Every byte is taken through rd_take,
 * the one bounds check.
 */
#ifndef KLOG_WIRE_RD_H
#define KLOG_WIRE_RD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/attr.h"
#include "lib/base/slice.h"
#include "lib/base/varint.h"

struct rd {
    const uint8_t *p, *end;
    bool bad;
};

static inline struct rd rd_of(struct slice s)
{
    static const uint8_t nothing[1];
    const uint8_t *p = s.p == NULL ? nothing : s.p;
    return (struct rd){ p, p + s.n, false };
}

static inline size_t rd_left(const struct rd *r)
{
    return (size_t)(r->end - r->p);
}

static inline void rd_fail(struct rd *r)
{
    r->p = r->end;
    r->bad = true;
}

/* The next n bytes; NULL (and failed) when there are fewer. */
static inline const uint8_t *rd_take(struct rd *r, size_t n)
{
    const uint8_t *p = r->p;

    if (unlikely(n > rd_left(r))) {
        rd_fail(r);
        return NULL;
    }
    r->p += n;
    return p;
}

static inline uint8_t rd_u8(struct rd *r)
{
    const uint8_t *p = rd_take(r, 1);
    return p == NULL ? 0 : *p;
}

static inline int16_t rd_i16(struct rd *r)
{
    const uint8_t *p = rd_take(r, 2);
    return p == NULL ? 0 : (int16_t)get_be16(p);
}

static inline int32_t rd_i32(struct rd *r)
{
    const uint8_t *p = rd_take(r, 4);
    return p == NULL ? 0 : (int32_t)get_be32(p);
}

static inline int64_t rd_i64(struct rd *r)
{
    const uint8_t *p = rd_take(r, 8);
    return p == NULL ? 0 : (int64_t)get_be64(p);
}

static inline uint32_t rd_uvarint(struct rd *r)
{
    uint64_t v = 0;

    if (likely(r->p < r->end && *r->p < 0x80))
        return *r->p++;
    const uint8_t *p = uvarint_get(r->p, r->end, VARINT_MAX, &v);
    if (p == NULL)
        rd_fail(r);
    else
        r->p = p;
    return (uint32_t)v;
}

/* A reader of the next n bytes alone; the outer one goes on after them. */
static inline struct rd rd_sub(struct rd *r, size_t n)
{
    const uint8_t *p = rd_take(r, n);

    if (p == NULL)
        return (struct rd){ r->end, r->end, true };
    return (struct rd){ p, p + n, false };
}

/* Takes a section of tagged fields without looking inside. */
static inline void rd_skip_tags(struct rd *r)
{
    for (uint32_t n = rd_uvarint(r); n > 0 && !r->bad; n--) {
        rd_uvarint(r);
        rd_take(r, rd_uvarint(r));
    }
}

#endif
