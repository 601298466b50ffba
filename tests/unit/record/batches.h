/* SPDX-License-Identifier: Apache-2.0 */
/* Batches for the tests of this folder: made with the builder, then bent on purpose. */
#ifndef KLOG_UNIT_BATCHES_H
#define KLOG_UNIT_BATCHES_H

#include "unit.h"

#include "lib/record/build.h"
#include "lib/record/codec.h"
#include "lib/record/iter.h"

enum { NOW_MS = 1700000000 };

/* n records "k0" -> "value 0" ..., timestamps NOW_MS + i, every second one with a header. */
static inline void batch_make(int n, enum codec c, const struct batch_producer *producer, struct bytebuf *ret)
{
    struct batch_builder b;

    batch_builder_init(&b);
    for (int i = 0; i < n; i++) {
        char key[32], value[64];
        snprintf(key, sizeof key, "k%d", i);
        snprintf(value, sizeof value, "value %d", i);
        const struct record_header h = { kstr_of("h"), i % 4 == 0 ? KSTR_NULL : kstr_of("x") };
        batch_builder_add(&b, NOW_MS + i, kstr_of(key), kstr_of(value), &h, i % 2 == 0 ? 1 : 0);
    }
    assert_int_equal(batch_builder_finish(&b, c, 0, producer, 0, ret), 0);
    batch_builder_done(&b);
}

static inline void batch_seal(struct bytebuf *b) /* length and checksum anew */
{
    put_be32(b->p + BATCH_LENGTH, (uint32_t)(b->n - BATCH_LOG_OVERHEAD));
    put_be32(b->p + BATCH_CRC, batch_crc(b->p, b->n));
}

/* A sealed batch around a given records section. */
static inline void batch_wrap(int count, int16_t attributes, const void *payload, size_t n,
                              struct bytebuf *ret)
{
    struct batch_header h = {
        .magic = 2,
        .attributes = attributes,
        .last_offset_delta = count - 1,
        .base_timestamp = NOW_MS,
        .max_timestamp = NOW_MS,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .count = count,
    };
    size_t start = ret->n;

    assert_int_equal(start, 0);
    batch_header_write(bytebuf_extend(ret, BATCH_OVERHEAD), &h);
    bytebuf_add(ret, payload, n);
    batch_seal(ret);
}

#endif
