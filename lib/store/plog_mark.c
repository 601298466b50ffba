/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.flushed: how far the log was known to be on disk, written after every flush and before anybody is
 * told of it. It is never waited for: after a kill it is exact, after a power cut it may lag, it never leads (S4).
 * A start decides by it what bad bytes are: below it damage, from it on the end of what reached the disk (S10).
 *
 * mark_mu orders the writers: a flush that ends while the log is cut must not raise what was lowered (S11).
 */
#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/varint.h"
#include "lib/store/plog_int.h"

/* docs/DISK-FORMAT.md. Never renumber: a new layout is a new version. */
enum {
    MARK_MAGIC = 0,
    MARK_VERSION = 8,
    MARK_CRC = 12, /* of all that follows */
    MARK_OFFSET = 16,
    MARK_IDENTITY = 24,
    MARK_ZERO = 28,
};
#define MAGIC  "klogflsh"
#define FORMAT 1

void mark_encode(uint8_t p[MARK_BYTES], const struct flush_mark *m)
{
    memset(p, 0, MARK_BYTES);
    memcpy(p + MARK_MAGIC, MAGIC, 8);
    put_be32(p + MARK_VERSION, FORMAT);
    put_be64(p + MARK_OFFSET, (uint64_t)m->offset);
    put_be32(p + MARK_IDENTITY, m->identity);
    put_be32(p + MARK_CRC, crc32c(0, p + MARK_OFFSET, MARK_BYTES - MARK_OFFSET));
}

bool mark_decode(struct slice s, struct flush_mark *ret)
{
    if (s.n != MARK_BYTES || memcmp(s.p, MAGIC, 8) != 0 || get_be32(s.p + MARK_VERSION) != FORMAT ||
        get_be32(s.p + MARK_CRC) != crc32c(0, s.p + MARK_OFFSET, MARK_BYTES - MARK_OFFSET) ||
        (int64_t)get_be64(s.p + MARK_OFFSET) < 0)
        return false;
    *ret = (struct flush_mark){ .offset = (int64_t)get_be64(s.p + MARK_OFFSET),
                                .identity = get_be32(s.p + MARK_IDENTITY) };
    return true;
}

int64_t plog_read_mark(struct plog *l)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct flush_mark m;
    int rc = io_read_file(l->io, l->dirfd, segfile_path(l->mark), MARK_BYTES, &b);

    return rc == 0 && mark_decode(slice_of(b.p, b.n), &m) && m.identity == l->identity ? m.offset : -1;
}

int plog_write_mark(struct plog *l, int64_t offset)
{
    uint8_t p[MARK_BYTES];
    const struct flush_mark m = { .offset = offset, .identity = l->identity };

    mark_encode(p, &m);
    return segfile_write(l->mark, p, sizeof p, 0);
}
