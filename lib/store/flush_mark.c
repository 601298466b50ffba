/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of partition.flushed; see flush_mark.h. Pure: plog_mark.c reads and writes the file. Bytes come from the
 * disk and are judged here; what is not understood is no mark, and never an error: it is a claim that may be missing.
 */
#include "lib/store/flush_mark.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/varint.h"
#include "lib/store/segment.h"

/* docs/DISK-FORMAT.md. Never renumber: a new layout is a new version. */
enum {
    MARK_MAGIC = 0,
    MARK_VERSION = 8,
    MARK_CRC = 12, /* of all that follows */
    MARK_OFFSET = 16,
    MARK_IDENTITY = 24,
    MARK_ALL_HEADS = 28, /* version 1: 0, and it ends here */
    MARK_BYTES_V1 = 32,
    MARK_SEGMENT = 32,
    MARK_POSITION = 40,
};
#define MAGIC  "klogflsh"
#define FORMAT 2

void mark_encode(uint8_t p[MARK_BYTES], const struct flush_mark *m)
{
    memset(p, 0, MARK_BYTES);
    memcpy(p + MARK_MAGIC, MAGIC, 8);
    put_be32(p + MARK_VERSION, FORMAT);
    put_be64(p + MARK_OFFSET, (uint64_t)m->offset);
    put_be32(p + MARK_IDENTITY, m->identity);
    put_be32(p + MARK_ALL_HEADS, m->all_heads);
    put_be64(p + MARK_SEGMENT, (uint64_t)m->segment);
    put_be64(p + MARK_POSITION, (uint64_t)m->position);
    put_be32(p + MARK_CRC, crc32c(0, p + MARK_OFFSET, MARK_BYTES - MARK_OFFSET));
}

bool mark_decode(struct slice s, struct flush_mark *ret)
{
    bool first = s.n == MARK_BYTES_V1;
    struct flush_mark m = { .segment = -1, .all_heads = HEADS_UNKNOWN };

    if ((!first && s.n != MARK_BYTES) || memcmp(s.p, MAGIC, 8) != 0 ||
        get_be32(s.p + MARK_VERSION) != (first ? 1 : FORMAT) ||
        get_be32(s.p + MARK_CRC) != crc32c(0, s.p + MARK_OFFSET, s.n - MARK_OFFSET))
        return false;
    m.offset = (int64_t)get_be64(s.p + MARK_OFFSET);
    m.identity = get_be32(s.p + MARK_IDENTITY);
    if (!first) {
        m.all_heads = get_be32(s.p + MARK_ALL_HEADS);
        m.segment = (int64_t)get_be64(s.p + MARK_SEGMENT);
        m.position = (int64_t)get_be64(s.p + MARK_POSITION);
    }
    if (m.offset < 0 || m.position < 0 || (!first && (m.segment < 0 || m.segment > m.offset)))
        return false;
    *ret = m;
    return true;
}
