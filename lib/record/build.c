/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds batches: the plain records are written behind a space for the header, and the header and, if asked
 * for, the compressed form come when the batch is closed. One thread a builder. Sizes are the caller's to
 * bound: a batch beyond 2 GiB is a bug of the caller.
 */
#include "lib/record/build.h"

#include <limits.h>

#include "lib/base/check.h"
#include "lib/record/codec.h"

void batch_builder_init(struct batch_builder *b)
{
    *b = (struct batch_builder){ 0 };
    batch_builder_reset(b);
}

void batch_builder_done(struct batch_builder *b)
{
    bytebuf_done(&b->out);
}

void batch_builder_reset(struct batch_builder *b)
{
    b->out.n = 0;
    bytebuf_extend(&b->out, BATCH_OVERHEAD);
    b->base_timestamp = b->max_timestamp = -1;
    b->count = 0;
}

size_t batch_builder_size(const struct batch_builder *b)
{
    return b->out.n;
}

static size_t bytes_size(struct kstr s)
{
    return (size_t)varlong_size(s.n) + (size_t)(s.n > 0 ? s.n : 0);
}

static uint8_t *bytes_put(uint8_t *p, struct kstr s)
{
    p = varint_put(p, s.n < 0 ? -1 : s.n);
    if (s.n > 0)
        memcpy(p, s.p, (size_t)s.n);
    return p + (s.n > 0 ? s.n : 0);
}

static size_t headers_size(const struct record_header *headers, int32_t n_headers)
{
    size_t n = (size_t)varlong_size(n_headers);

    for (int32_t i = 0; i < n_headers; i++) {
        KCHECK(!kstr_is_null(headers[i].key));
        n += bytes_size(headers[i].key) + bytes_size(headers[i].value);
    }
    return n;
}

void batch_builder_add(struct batch_builder *b, int64_t timestamp, struct kstr key, struct kstr value,
                       const struct record_header *headers, int32_t n_headers)
{
    if (b->count == 0)
        b->base_timestamp = timestamp;
    b->max_timestamp = MAX(b->max_timestamp, timestamp);

    int64_t delta = (int64_t)((uint64_t)timestamp - (uint64_t)b->base_timestamp);
    size_t n = 1 + (size_t)varlong_size(delta) + (size_t)varlong_size(b->count) + bytes_size(key) +
               bytes_size(value) + headers_size(headers, n_headers);
    KCHECK(n <= INT32_MAX - VARINT_MAX && b->out.n <= INT32_MAX - VARINT_MAX - n);

    uint8_t *p = bytebuf_extend(&b->out, n + (size_t)varlong_size((int64_t)n));
    p = varint_put(p, (int32_t)n);
    *p++ = 0;
    p = varlong_put(p, delta);
    p = varint_put(p, b->count++);
    p = bytes_put(p, key);
    p = bytes_put(p, value);
    p = varint_put(p, n_headers);
    for (int32_t i = 0; i < n_headers; i++)
        p = bytes_put(bytes_put(p, headers[i].key), headers[i].value);
    KCHECK(p == b->out.p + b->out.n);
}

static struct batch_header builder_header(const struct batch_builder *b, size_t n, enum codec codec,
                                          const struct batch_producer *producer, int16_t attributes)
{
    struct batch_header h = {
        .length = (int32_t)(n - BATCH_LOG_OVERHEAD),
        .leader_epoch = -1,
        .magic = 2,
        .attributes = (int16_t)(attributes | (int16_t)codec),
        .last_offset_delta = b->count - 1,
        .base_timestamp = b->base_timestamp,
        .max_timestamp = b->max_timestamp,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .count = b->count,
    };

    if (producer != NULL && producer->id >= 0) {
        h.producer_id = producer->id;
        h.producer_epoch = producer->epoch;
        h.base_sequence = producer->base_sequence;
        h.attributes |= producer->transactional ? BATCH_ATTR_TRANSACTIONAL : 0;
    }
    return h;
}

int batch_builder_finish(struct batch_builder *b, enum codec codec, int level,
                         const struct batch_producer *producer, int16_t attributes, struct bytebuf *ret)
{
    const size_t start = ret->n;
    int rc = 0;

    KCHECK(b->count > 0);
    if (codec == CODEC_NONE) {
        bytebuf_add(ret, b->out.p, b->out.n);
    } else {
        bytebuf_extend(ret, BATCH_OVERHEAD);
        rc = codec_compress(codec, level, slice_of(b->out.p + BATCH_OVERHEAD, b->out.n - BATCH_OVERHEAD), ret);
    }

    if (rc == 0) {
        size_t n = ret->n - start;
        struct batch_header h = builder_header(b, n, codec, producer, attributes);
        batch_header_write(ret->p + start, &h);
        put_be32(ret->p + start + BATCH_CRC, batch_crc(ret->p + start, n));
    } else {
        ret->n = start;
    }
    batch_builder_reset(b);
    return rc;
}
