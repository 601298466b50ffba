/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 61 bytes in front of every batch: read, written, patched, and checked against the bytes
 * that follow. Pure functions, any thread. Knows nothing of the records inside.
 *
 * Rule S1 (docs/DISK-FORMAT.md) stands on batch_check: only a whole batch with a good checksum is
 * a batch; anything else at the end of a log is a torn write.
 */
#include "lib/record/batch.h"

#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"

/* The smallest legal value of the length field: the header's rest and no record. */
enum { LENGTH_MIN = BATCH_OVERHEAD - BATCH_LOG_OVERHEAD };

_Static_assert(LENGTH_MIN == 49, "the header of a batch is 61 bytes");

void batch_header_read(const uint8_t *p, struct batch_header *ret)
{
    ret->base_offset = (int64_t)get_be64(p + BATCH_BASE_OFFSET);
    ret->length = (int32_t)get_be32(p + BATCH_LENGTH);
    ret->leader_epoch = (int32_t)get_be32(p + BATCH_LEADER_EPOCH);
    ret->magic = (int8_t)p[BATCH_MAGIC];
    ret->crc = get_be32(p + BATCH_CRC);
    ret->attributes = (int16_t)get_be16(p + BATCH_ATTRIBUTES);
    ret->last_offset_delta = (int32_t)get_be32(p + BATCH_LAST_OFFSET_DELTA);
    ret->base_timestamp = (int64_t)get_be64(p + BATCH_BASE_TIMESTAMP);
    ret->max_timestamp = (int64_t)get_be64(p + BATCH_MAX_TIMESTAMP);
    ret->producer_id = (int64_t)get_be64(p + BATCH_PRODUCER_ID);
    ret->producer_epoch = (int16_t)get_be16(p + BATCH_PRODUCER_EPOCH);
    ret->base_sequence = (int32_t)get_be32(p + BATCH_BASE_SEQUENCE);
    ret->count = (int32_t)get_be32(p + BATCH_COUNT);
}

void batch_header_write(uint8_t *p, const struct batch_header *h)
{
    put_be64(p + BATCH_BASE_OFFSET, (uint64_t)h->base_offset);
    put_be32(p + BATCH_LENGTH, (uint32_t)h->length);
    put_be32(p + BATCH_LEADER_EPOCH, (uint32_t)h->leader_epoch);
    p[BATCH_MAGIC] = (uint8_t)h->magic;
    put_be32(p + BATCH_CRC, h->crc);
    put_be16(p + BATCH_ATTRIBUTES, (uint16_t)h->attributes);
    put_be32(p + BATCH_LAST_OFFSET_DELTA, (uint32_t)h->last_offset_delta);
    put_be64(p + BATCH_BASE_TIMESTAMP, (uint64_t)h->base_timestamp);
    put_be64(p + BATCH_MAX_TIMESTAMP, (uint64_t)h->max_timestamp);
    put_be64(p + BATCH_PRODUCER_ID, (uint64_t)h->producer_id);
    put_be16(p + BATCH_PRODUCER_EPOCH, (uint16_t)h->producer_epoch);
    put_be32(p + BATCH_BASE_SEQUENCE, (uint32_t)h->base_sequence);
    put_be32(p + BATCH_COUNT, (uint32_t)h->count);
}

int32_t batch_sequence_add(int32_t seq, int32_t n)
{
    return (int32_t)(((uint32_t)seq + (uint32_t)n) & INT32_MAX);
}

uint32_t batch_crc(const uint8_t *batch, size_t n)
{
    KCHECK(n >= BATCH_OVERHEAD);
    return crc32c(0, batch + BATCH_ATTRIBUTES, n - BATCH_ATTRIBUTES);
}

void batch_set_log_append_time(uint8_t *batch, size_t n, int64_t now_ms)
{
    uint16_t attributes = get_be16(batch + BATCH_ATTRIBUTES);

    put_be16(batch + BATCH_ATTRIBUTES, attributes | BATCH_ATTR_LOG_APPEND_TIME);
    put_be64(batch + BATCH_MAX_TIMESTAMP, (uint64_t)now_ms);
    put_be32(batch + BATCH_CRC, batch_crc(batch, n));
}

int batch_check(struct slice s, int64_t size_max, struct batch_header *ret)
{
    if (s.n < BATCH_LOG_OVERHEAD)
        return -EAGAIN;

    ret->base_offset = (int64_t)get_be64(s.p + BATCH_BASE_OFFSET);
    ret->length = (int32_t)get_be32(s.p + BATCH_LENGTH);
    if (ret->length < LENGTH_MIN || batch_size(ret) > size_max)
        return -EBADMSG;
    if (s.n > BATCH_MAGIC && s.p[BATCH_MAGIC] != 2)
        return -EBADMSG;
    if (s.n < (size_t)batch_size(ret))
        return -EAGAIN;

    batch_header_read(s.p, ret);
    if (ret->crc != batch_crc(s.p, (size_t)batch_size(ret)))
        return -EBADMSG;
    return 0;
}
