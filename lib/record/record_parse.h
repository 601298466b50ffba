/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one plain record off the front of bytes. Inline, because the validator meets every
 * record that is produced: almost all numbers in a record are one or two bytes long, so these are
 * tried first and the general reader is called only for the rest. Private to this folder.
 */
#ifndef KLOG_RECORD_PARSE_H
#define KLOG_RECORD_PARSE_H

#include "lib/base/attr.h"
#include "lib/base/slice.h"
#include "lib/base/varint.h"

struct parsed_record {
    int64_t timestamp_delta;
    int32_t offset_delta;
    struct kstr key, value;
    int32_t n_headers;
    const uint8_t *headers; /* n_headers of them, up to end */
    const uint8_t *end;     /* of the record */
};

/* One past the last byte; an empty slice may have no address. */
static inline const uint8_t *slice_end(struct slice s)
{
    return s.n == 0 ? s.p : s.p + s.n;
}

/* Reads a number of one or two bytes, NULL when it is longer or cut off. */
static inline const uint8_t *parse_short(const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
    if (likely(p < end) && p[0] < 0x80) {
        *ret = p[0];
        return p + 1;
    }
    if (likely(end - p >= 2) && likely(p[1] < 0x80)) {
        *ret = (p[0] & 0x7fu) | (uint32_t)p[1] << 7;
        return p + 2;
    }
    return NULL;
}

/* Both return the position after the number, or NULL; p may be NULL, so that reads can be chained. */
static inline const uint8_t *parse_varint(const uint8_t *p, const uint8_t *end, int32_t *ret)
{
    uint32_t u;

    if (unlikely(p == NULL))
        return NULL;
    const uint8_t *after = parse_short(p, end, &u);
    if (unlikely(after == NULL))
        return varint_get(p, end, ret);
    *ret = (int32_t)zigzag_decode(u);
    return after;
}

static inline const uint8_t *parse_varlong(const uint8_t *p, const uint8_t *end, int64_t *ret)
{
    uint32_t u;

    if (unlikely(p == NULL))
        return NULL;
    const uint8_t *after = parse_short(p, end, &u);
    if (unlikely(after == NULL))
        return varlong_get(p, end, ret);
    *ret = zigzag_decode(u);
    return after;
}

/* A length of -1 is null where `nullable`, then that many bytes. */
static inline const uint8_t *parse_bytes(const uint8_t *p, const uint8_t *end, bool nullable,
                                         struct kstr *ret)
{
    int32_t n;

    p = parse_varint(p, end, &n);
    if (unlikely(p == NULL || n > end - p))
        return NULL;
    if (unlikely(n < 0)) {
        *ret = KSTR_NULL;
        return nullable && n == -1 ? p : NULL;
    }
    *ret = (struct kstr){ (const char *)p, n };
    return p + n;
}

/* Fills ret and returns the position after the record, or NULL when its bytes contradict themselves. The
 * headers are not walked: see parse_headers. */
static inline const uint8_t *parse_record(const uint8_t *p, const uint8_t *end, struct parsed_record *ret)
{
    int32_t n;

    p = parse_varint(p, end, &n);
    if (unlikely(p == NULL || n < 1 || n > end - p))
        return NULL;
    ret->end = p + n;
    p++; /* attributes: no bit of them is used */
    p = parse_varlong(p, ret->end, &ret->timestamp_delta);
    p = parse_varint(p, ret->end, &ret->offset_delta);
    p = parse_bytes(p, ret->end, true, &ret->key);
    p = parse_bytes(p, ret->end, true, &ret->value);
    p = parse_varint(p, ret->end, &ret->n_headers);
    if (unlikely(p == NULL || ret->n_headers < 0))
        return NULL;
    ret->headers = p;
    return ret->end;
}

/* One header; the position after it, or NULL. */
static inline const uint8_t *parse_header(const uint8_t *p, const uint8_t *end, struct kstr *key,
                                          struct kstr *value)
{
    p = parse_bytes(p, end, false, key);
    return parse_bytes(p, end, true, value);
}

/* Do exactly n_headers headers fill the record's rest? */
static inline bool parse_headers(const struct parsed_record *r)
{
    const uint8_t *p = r->headers;
    struct kstr key, value;

    for (int32_t i = 0; i < r->n_headers && p != NULL; i++)
        p = parse_header(p, r->end, &key, &value);
    return p == r->end;
}

#endif
