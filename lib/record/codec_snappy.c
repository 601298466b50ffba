/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy in the two framings that are in use: one raw block (librdkafka and what is built on it) and
 * xerial's (Java and most others): an 8-byte magic, two numbers, then blocks with their
 * lengths. Only the magic tells them apart. klog writes xerial's, with big-endian numbers: some clients
 * read them.
 */
#ifdef HAVE_SNAPPY
#include <errno.h>
#include <snappy-c.h>

#include "lib/base/check.h"
#include "lib/base/varint.h"
#include "lib/record/codec_int.h"

static const uint8_t xerial_magic[8] = { 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0 };

enum {
    XERIAL_HEADER = 16, /* magic, i32 version, i32 compatible version */
    XERIAL_VERSION = 1,
    XERIAL_BLOCK = 32 * 1024, /* plain bytes in a block, as Java has it */
    EXPANSION_MAX = 22,       /* the format's best: a copy of 3 bytes makes 64 */
};

static int snappy_block(struct slice in, struct codec_out *o)
{
    size_t n;

    if (snappy_uncompressed_length((const char *)in.p, in.n, &n) != SNAPPY_OK)
        return -EBADMSG;
    if (n / EXPANSION_MAX > in.n)
        return -EBADMSG; /* no block of this size can make that much */
    if (n > o->out_max - codec_out_made(o))
        return -EFBIG;

    uint8_t *p = bytebuf_room(o->b, n + 1);
    if (snappy_uncompress((const char *)in.p, in.n, (char *)p, &n) != SNAPPY_OK)
        return -EBADMSG;
    o->b->n += n;
    return 0;
}

int snappy_decompress(struct slice in, struct codec_out *o)
{
    if (in.n < sizeof xerial_magic || memcmp(in.p, xerial_magic, sizeof xerial_magic) != 0)
        return snappy_block(in, o);
    if (in.n < XERIAL_HEADER)
        return -EBADMSG;

    in = slice_of(in.p + XERIAL_HEADER, in.n - XERIAL_HEADER);
    while (in.n > 0) {
        if (in.n < 4)
            return -EBADMSG;
        size_t n = get_be32(in.p);
        if (n > in.n - 4)
            return -EBADMSG;
        int rc = snappy_block(slice_of(in.p + 4, n), o);
        if (rc < 0)
            return rc;
        in = slice_of(in.p + 4 + n, in.n - 4 - n);
    }
    return 0;
}

static void xerial_block_add(struct slice in, struct bytebuf *ret)
{
    size_t n = snappy_max_compressed_length(in.n);
    uint8_t *p = bytebuf_room(ret, 4 + n);

    KCHECK(snappy_compress((const char *)in.p, in.n, (char *)p + 4, &n) == SNAPPY_OK);
    put_be32(p, (uint32_t)n);
    ret->n += 4 + n;
}

int snappy_compress_xerial(int level, struct slice in, struct bytebuf *ret)
{
    (void)level; /* snappy has none */
    uint8_t *p = bytebuf_extend(ret, XERIAL_HEADER);
    memcpy(p, xerial_magic, sizeof xerial_magic);
    put_be32(p + 8, XERIAL_VERSION);
    put_be32(p + 12, XERIAL_VERSION);

    for (size_t at = 0; at < in.n; at += XERIAL_BLOCK)
        xerial_block_add(slice_of(in.p + at, MIN(in.n - at, XERIAL_BLOCK)), ret);
    return 0;
}
#else
typedef int codec_snappy_is_left_out;
#endif
