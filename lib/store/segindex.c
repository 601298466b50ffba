/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes into a segment's index files, entry by entry, and the header of its .text file (docs/DISK-FORMAT.md), which says
 * how far the indexes reach and what the segment's sums are, under a checksum. A header that does not fit is none, and the
 * segment's files are made anew. Pure but for the header's read and write.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/store/segment.h"

/* .text header; docs/DISK-FORMAT.md. Never renumber: a new layout is a new version. */
enum {
    TEXT_H_MAGIC = 0,
    TEXT_H_VERSION = 8,
    TEXT_H_CRC = 12, /* of all that follows */
    TEXT_H_BASE = 16,
    TEXT_H_TEXT_BASE = 24,
    TEXT_H_SEALED = 32,
    TEXT_H_IDENTITY = 36,
    TEXT_H_END_OFFSET = 40,
    TEXT_H_SIZE = 48,
    TEXT_H_TEXT_BYTES = 56,
    TEXT_H_MAX_TS = 64,
    TEXT_H_MAX_TS_OFFSET = 72,
    TEXT_H_INDEX_N = 80,
    TEXT_H_TIME_N = 84,
    TEXT_H_TEXT_N = 88,
    TEXT_H_HEADS = 92,
};
#define TEXT_MAGIC   "klogtext"
#define TEXT_VERSION 2 /* 1 is read too */

void index_add(struct segment *s, int64_t last_offset)
{
    uint8_t e[INDEX_ENTRY_BYTES];

    put_be32(e, (uint32_t)(last_offset - s->base));
    put_be32(e + 4, (uint32_t)s->sum.size);
    entries_add(&s->index, e);
}

/* Timestamps in the file rise strictly: a batch that brings no new greatest one adds nothing. */
void timeindex_add(struct segment *s)
{
    uint8_t e[TIME_ENTRY_BYTES];

    if (s->sum.max_timestamp <= s->sum.indexed_timestamp || entries_tail_full(&s->time))
        return;
    put_be64(e, (uint64_t)s->sum.max_timestamp);
    put_be32(e + 8, (uint32_t)(s->sum.max_timestamp_offset - s->base));
    entries_add(&s->time, e);
    s->sum.indexed_timestamp = s->sum.max_timestamp;
}

bool text_add(struct segment *s, int64_t base_offset)
{
    uint8_t e[TEXT_ENTRY_BYTES];

    if (entries_tail_full(&s->text))
        return false;
    put_be32(e, (uint32_t)(base_offset - s->base));
    put_be32(e + 4, (uint32_t)s->sum.size);
    put_be64(e + 8, (uint64_t)s->sum.text_bytes);
    put_be32(e + 16, s->sum.heads);
    put_be32(e + 20, crc32c(0, e, 20));
    entries_add(&s->text, e);
    return true;
}

bool text_entry_ok(const uint8_t *entry)
{
    return crc32c(0, entry, 20) == get_be32(entry + 20);
}

uint32_t text_entry_heads(const uint8_t *entry)
{
    return get_be32(entry + 16);
}

void text_header_encode(uint8_t *p, const struct text_header *h)
{
    memset(p, 0, TEXT_HEADER_BYTES);
    memcpy(p + TEXT_H_MAGIC, TEXT_MAGIC, 8);
    put_be32(p + TEXT_H_VERSION, TEXT_VERSION);
    put_be32(p + TEXT_H_IDENTITY, h->identity);
    put_be32(p + TEXT_H_HEADS, h->sum.heads);
    put_be64(p + TEXT_H_BASE, (uint64_t)h->base);
    put_be64(p + TEXT_H_TEXT_BASE, (uint64_t)h->text_base);
    put_be32(p + TEXT_H_SEALED, h->sealed);
    put_be64(p + TEXT_H_END_OFFSET, (uint64_t)h->sum.end_offset);
    put_be64(p + TEXT_H_SIZE, (uint64_t)h->sum.size);
    put_be64(p + TEXT_H_TEXT_BYTES, (uint64_t)h->sum.text_bytes);
    put_be64(p + TEXT_H_MAX_TS, (uint64_t)h->sum.max_timestamp);
    put_be64(p + TEXT_H_MAX_TS_OFFSET, (uint64_t)h->sum.max_timestamp_offset);
    put_be32(p + TEXT_H_INDEX_N, (uint32_t)h->sum.index_n);
    put_be32(p + TEXT_H_TIME_N, (uint32_t)h->sum.time_n);
    put_be32(p + TEXT_H_TEXT_N, (uint32_t)h->sum.text_n);
    put_be32(p + TEXT_H_CRC, crc32c(0, p + TEXT_H_BASE, TEXT_HEADER_BYTES - TEXT_H_BASE));
}

bool text_header_decode(const uint8_t *p, int64_t n, struct text_header *ret)
{
    struct text_header h = { .sum = segment_sum_empty(0) };

    if (n < TEXT_HEADER_BYTES || memcmp(p, TEXT_MAGIC, 8) != 0 ||
        get_be32(p + TEXT_H_VERSION) < 1 || get_be32(p + TEXT_H_VERSION) > TEXT_VERSION ||
        get_be32(p + TEXT_H_CRC) != crc32c(0, p + TEXT_H_BASE, TEXT_HEADER_BYTES - TEXT_H_BASE))
        return false;
    h.version = (int32_t)get_be32(p + TEXT_H_VERSION);
    h.identity = get_be32(p + TEXT_H_IDENTITY);
    h.sum.heads = get_be32(p + TEXT_H_HEADS);
    h.sum.all_heads = HEADS_UNKNOWN;
    h.base = (int64_t)get_be64(p + TEXT_H_BASE);
    h.text_base = (int64_t)get_be64(p + TEXT_H_TEXT_BASE);
    h.sealed = get_be32(p + TEXT_H_SEALED) == 1;
    h.sum.end_offset = (int64_t)get_be64(p + TEXT_H_END_OFFSET);
    h.sum.size = (int64_t)get_be64(p + TEXT_H_SIZE);
    h.sum.text_bytes = (int64_t)get_be64(p + TEXT_H_TEXT_BYTES);
    h.sum.max_timestamp = (int64_t)get_be64(p + TEXT_H_MAX_TS);
    h.sum.max_timestamp_offset = (int64_t)get_be64(p + TEXT_H_MAX_TS_OFFSET);
    h.sum.index_n = (int32_t)get_be32(p + TEXT_H_INDEX_N);
    h.sum.time_n = (int32_t)get_be32(p + TEXT_H_TIME_N);
    h.sum.text_n = (int32_t)get_be32(p + TEXT_H_TEXT_N);
    if (h.base < 0 || h.text_base < 0 || h.sum.text_bytes < 0 || h.sum.index_n < 0 || h.sum.time_n < 0 ||
        h.sum.text_n < 0)
        return false;
    *ret = h;
    return true;
}

bool segment_read_header(struct segment *s, struct text_header *ret)
{
    uint8_t p[TEXT_HEADER_BYTES];
    int64_t got = segfile_read(s->text.file, p, sizeof p, 0);

    return got > 0 && text_header_decode(p, got, ret) && ret->base == s->base &&
           (ret->version == 1 || ret->identity == s->identity);
}

int segment_write_header(struct segment *s, bool sealed)
{
    uint8_t p[TEXT_HEADER_BYTES];
    struct text_header h = {
        .identity = s->identity, .sealed = sealed, .base = s->base, .text_base = s->text_base
    };

    h.sum = sealed ? segment_sum(s) : segment_sum_empty(s->base);
    text_header_encode(p, &h);
    return segfile_write(s->text.file, p, sizeof p, 0);
}
