/* SPDX-License-Identifier: Apache-2.0 */
/* Big-endian integers, and the zig-zag and unsigned variable-length ones of Kafka's protocol. */
#ifndef KLOG_BASE_VARINT_H
#define KLOG_BASE_VARINT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t get_be16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return be16toh(v);
}
static inline uint32_t get_be32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}
static inline uint64_t get_be64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return be64toh(v);
}
static inline void put_be16(void *p, uint16_t v)
{
    v = htobe16(v);
    memcpy(p, &v, 2);
}
static inline void put_be32(void *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, 4);
}
static inline void put_be64(void *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, 8);
}

static inline uint64_t zigzag_encode(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}
static inline int64_t zigzag_decode(uint64_t u)
{
    return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}

#define VARINT_MAX  5
#define VARLONG_MAX 10

/* Returns the position after the number, or NULL when it runs past `end`, is longer than
 * max bytes, or (max 5) does not fit 32 bits. */
static inline const uint8_t *uvarint_get(const uint8_t *p, const uint8_t *end, int max, uint64_t *ret)
{
    uint64_t v = 0;
    for (int i = 0; i < max && p < end; i++) {
        uint8_t b = *p++;
        if (i == 9 && b > 1)
            return NULL;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b < 0x80) {
            if (max == VARINT_MAX && v > UINT32_MAX)
                return NULL;
            *ret = v;
            return p;
        }
    }
    return NULL;
}
static inline const uint8_t *varint_get(const uint8_t *p, const uint8_t *end, int32_t *ret)
{
    uint64_t u;
    p = uvarint_get(p, end, VARINT_MAX, &u);
    if (p != NULL)
        *ret = (int32_t)zigzag_decode(u);
    return p;
}
static inline const uint8_t *varlong_get(const uint8_t *p, const uint8_t *end, int64_t *ret)
{
    uint64_t u;
    p = uvarint_get(p, end, VARLONG_MAX, &u);
    if (p != NULL)
        *ret = zigzag_decode(u);
    return p;
}

/* Writes at most VARLONG_MAX bytes; returns the position after them. */
static inline uint8_t *uvarint_put(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}
static inline uint8_t *varlong_put(uint8_t *p, int64_t v)
{
    return uvarint_put(p, zigzag_encode(v));
}
static inline uint8_t *varint_put(uint8_t *p, int32_t v)
{
    return uvarint_put(p, (uint32_t)zigzag_encode(v));
}
static inline int uvarint_size(uint64_t v)
{
    return v == 0 ? 1 : (70 - __builtin_clzll(v)) / 7;
}
static inline int varlong_size(int64_t v)
{
    return uvarint_size(zigzag_encode(v));
}

#endif
