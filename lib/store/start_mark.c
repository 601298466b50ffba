/* SPDX-License-Identifier: Apache-2.0 */
/* See start_mark.h. */
#include "lib/store/start_mark.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/varint.h"

/* docs/DISK-FORMAT.md. Never renumber: a new layout is a new version. */
enum {
    START_MAGIC = 0,
    START_VERSION = 8,
    START_CRC = 12, /* of all that follows */
    START_OFFSET = 16,
    START_IDENTITY = 24,
    START_ZERO = 28,
};
#define MAGIC  "klogstrt"
#define FORMAT 1

void start_encode(uint8_t p[START_BYTES], const struct start_mark *m)
{
    memset(p, 0, START_BYTES);
    memcpy(p + START_MAGIC, MAGIC, 8);
    put_be32(p + START_VERSION, FORMAT);
    put_be64(p + START_OFFSET, (uint64_t)m->offset);
    put_be32(p + START_IDENTITY, m->identity);
    put_be32(p + START_CRC, crc32c(0, p + START_OFFSET, START_BYTES - START_OFFSET));
}

bool start_decode(struct slice s, struct start_mark *ret)
{
    if (s.n != START_BYTES || memcmp(s.p, MAGIC, 8) != 0 || get_be32(s.p + START_VERSION) != FORMAT ||
        get_be32(s.p + START_CRC) != crc32c(0, s.p + START_OFFSET, START_BYTES - START_OFFSET))
        return false;
    *ret = (struct start_mark){
        .offset = (int64_t)get_be64(s.p + START_OFFSET),
        .identity = get_be32(s.p + START_IDENTITY),
    };
    return ret->offset >= 0;
}
