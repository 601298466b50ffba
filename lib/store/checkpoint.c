/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of partition.checkpoint; see checkpoint.h. Pure: plog_checkpoint.c reads and writes the file.
 *
 * Bytes come from the disk and are judged here: magic, version, length, checksum, and that the numbers can be true
 * together. What is not understood is no checkpoint, and never an error: it is a claim that may be missing (S4).
 */
#include "lib/store/checkpoint.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/varint.h"

/* docs/DISK-FORMAT.md. Never renumber: a new layout is a new version. */
enum {
    CKPT_MAGIC = 0,
    CKPT_VERSION = 8,
    CKPT_CRC = 12, /* of all that follows */
    CKPT_START_OFFSET = 16,
    CKPT_HW = 24,
    CKPT_OFFSET = 32,
    CKPT_SEGMENT = 40,
    CKPT_POSITION = 48,
    CKPT_TEXT_BASE = 56,
    CKPT_TEXT_BYTES = 64,
    CKPT_MAX_TS = 72,
    CKPT_MAX_TS_OFFSET = 80,
    CKPT_FIRST_TS = 88,
    CKPT_SINCE_INDEX = 96,
    CKPT_INDEXED_TS = 104,
    CKPT_INDEX_N = 112,
    CKPT_TIME_N = 116,
    CKPT_TEXT_N = 120,
    CKPT_PRODUCERS_EMPTY = 124,
    CKPT_PRODUCERS_OFFSET = 128,
    CKPT_HEADS = 136, /* up to here version 1 has the same, and 0 from here on */
    CKPT_IDENTITY = 140,
    CKPT_BYTES_V1 = 144,
    CKPT_SEALED = 144,
    CKPT_ALL_HEADS = 148, /* 0 where an earlier version 2 did not know it */
};
#define MAGIC  "klogckpt"
#define FORMAT 2

static void put_i64(uint8_t *p, int64_t v)
{
    put_be64(p, (uint64_t)v);
}

static int64_t get_i64(const uint8_t *p)
{
    return (int64_t)get_be64(p);
}

void checkpoint_encode(uint8_t p[CHECKPOINT_BYTES], const struct checkpoint *c)
{
    const struct segment_sum *sum = &c->flushed.sum;

    memset(p, 0, CHECKPOINT_BYTES);
    memcpy(p + CKPT_MAGIC, MAGIC, 8);
    put_be32(p + CKPT_VERSION, FORMAT);
    put_i64(p + CKPT_START_OFFSET, c->start_offset);
    put_i64(p + CKPT_HW, c->hw);
    put_i64(p + CKPT_OFFSET, sum->end_offset);
    put_i64(p + CKPT_SEGMENT, c->flushed.segment);
    put_i64(p + CKPT_POSITION, sum->size);
    put_i64(p + CKPT_TEXT_BASE, c->flushed.text_base);
    put_i64(p + CKPT_TEXT_BYTES, sum->text_bytes);
    put_i64(p + CKPT_MAX_TS, sum->max_timestamp);
    put_i64(p + CKPT_MAX_TS_OFFSET, sum->max_timestamp_offset);
    put_i64(p + CKPT_FIRST_TS, sum->first_timestamp);
    put_i64(p + CKPT_SINCE_INDEX, sum->since_index);
    put_i64(p + CKPT_INDEXED_TS, sum->indexed_timestamp);
    put_be32(p + CKPT_INDEX_N, (uint32_t)sum->index_n);
    put_be32(p + CKPT_TIME_N, (uint32_t)sum->time_n);
    put_be32(p + CKPT_TEXT_N, (uint32_t)sum->text_n);
    put_be32(p + CKPT_PRODUCERS_EMPTY, c->producers_empty);
    put_i64(p + CKPT_PRODUCERS_OFFSET, c->producers_offset);
    put_be32(p + CKPT_HEADS, sum->heads);
    put_be32(p + CKPT_IDENTITY, c->identity);
    put_be32(p + CKPT_SEALED, c->sealed);
    put_be32(p + CKPT_ALL_HEADS, sum->all_heads);
    put_be32(p + CKPT_CRC, crc32c(0, p + CKPT_START_OFFSET, CHECKPOINT_BYTES - CKPT_START_OFFSET));
}

static bool checkpoint_sane(const struct checkpoint *c)
{
    const struct segment_sum *sum = &c->flushed.sum;

    return c->start_offset >= 0 && c->hw >= 0 && c->flushed.segment >= 0 &&
           sum->end_offset >= c->flushed.segment && sum->size >= 0 && sum->size <= INT32_MAX &&
           c->flushed.text_base >= 0 && sum->text_bytes >= 0 && sum->since_index >= 0 && sum->index_n >= 0 &&
           sum->time_n >= 0 && sum->text_n >= 0;
}

bool checkpoint_decode(struct slice s, struct checkpoint *ret)
{
    const uint8_t *p = s.p;
    struct checkpoint c = { 0 };
    struct segment_sum *sum = &c.flushed.sum;

    bool first = s.n == CKPT_BYTES_V1;
    if ((!first && s.n != CHECKPOINT_BYTES) || memcmp(p, MAGIC, 8) != 0 ||
        get_be32(p + CKPT_VERSION) != (first ? 1 : FORMAT) ||
        get_be32(p + CKPT_CRC) != crc32c(0, p + CKPT_START_OFFSET, s.n - CKPT_START_OFFSET))
        return false;
    sum->all_heads = get_i64(p + CKPT_POSITION) > 0 ? HEADS_UNKNOWN : 0;
    if (!first) {
        if (get_be32(p + CKPT_ALL_HEADS) != 0)
            sum->all_heads = get_be32(p + CKPT_ALL_HEADS);
        sum->heads = get_be32(p + CKPT_HEADS);
        c.identity = get_be32(p + CKPT_IDENTITY);
        c.sealed = get_be32(p + CKPT_SEALED);
    }
    c.start_offset = get_i64(p + CKPT_START_OFFSET);
    c.hw = get_i64(p + CKPT_HW);
    c.flushed.segment = get_i64(p + CKPT_SEGMENT);
    c.flushed.text_base = get_i64(p + CKPT_TEXT_BASE);
    sum->end_offset = get_i64(p + CKPT_OFFSET);
    sum->size = get_i64(p + CKPT_POSITION);
    sum->text_bytes = get_i64(p + CKPT_TEXT_BYTES);
    sum->max_timestamp = get_i64(p + CKPT_MAX_TS);
    sum->max_timestamp_offset = get_i64(p + CKPT_MAX_TS_OFFSET);
    sum->first_timestamp = get_i64(p + CKPT_FIRST_TS);
    sum->since_index = get_i64(p + CKPT_SINCE_INDEX);
    sum->indexed_timestamp = get_i64(p + CKPT_INDEXED_TS);
    sum->index_n = (int32_t)get_be32(p + CKPT_INDEX_N);
    sum->time_n = (int32_t)get_be32(p + CKPT_TIME_N);
    sum->text_n = (int32_t)get_be32(p + CKPT_TEXT_N);
    c.producers_empty = get_be32(p + CKPT_PRODUCERS_EMPTY) != 0;
    c.producers_offset = get_i64(p + CKPT_PRODUCERS_OFFSET);
    if (!checkpoint_sane(&c))
        return false;
    *ret = c;
    return true;
}
