/* SPDX-License-Identifier: Apache-2.0 */
/* Appends big-endian bytes to a growing buffer. Cannot fail: lengths are checked by the caller. */
#ifndef KLOG_WIRE_WR_H
#define KLOG_WIRE_WR_H

#include <stdint.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/buf.h"
#include "lib/base/varint.h"

/* n more bytes of the buffer, to be filled in. */
static inline uint8_t *wr_room(struct bytebuf *b, size_t n)
{
    if (unlikely(b->cap - b->n < n))
        bytebuf_room(b, n);
    b->n += n;
    return b->p + b->n - n;
}

static inline void wr_u8(struct bytebuf *b, uint8_t v)
{
    *wr_room(b, 1) = v;
}

static inline void wr_i16(struct bytebuf *b, int16_t v)
{
    put_be16(wr_room(b, 2), (uint16_t)v);
}

static inline void wr_i32(struct bytebuf *b, int32_t v)
{
    put_be32(wr_room(b, 4), (uint32_t)v);
}

static inline void wr_i64(struct bytebuf *b, int64_t v)
{
    put_be64(wr_room(b, 8), (uint64_t)v);
}

static inline void wr_uvarint(struct bytebuf *b, uint32_t v)
{
    uint8_t *p = wr_room(b, VARINT_MAX);

    b->n = (size_t)(uvarint_put(p, v) - b->p);
}

static inline void wr_bytes(struct bytebuf *b, const void *p, size_t n)
{
    if (n > 0)
        memcpy(wr_room(b, n), p, n);
}

/* Writes the size of what follows position `at` in front of it. */
static inline void wr_insert_size(struct bytebuf *b, size_t at)
{
    size_t n = b->n - at;
    size_t width = (size_t)uvarint_size(n);

    wr_room(b, width);
    memmove(b->p + at + width, b->p + at, n);
    uvarint_put(b->p + at, n);
}

#endif
