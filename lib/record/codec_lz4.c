/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4 as a frame (magic 0x184D2204), one or more. Read: whatever the frame format allows, dependent
 * blocks, content size and checksums included. Written: independent blocks of 64 KiB without a content
 * checksum, since Kafka's Java client refuses dependent blocks.
 */
#include <errno.h>
#include <lz4frame.h>

#include "lib/base/check.h"
#include "lib/record/codec_int.h"

static LZ4F_dctx *lz4_reader(void)
{
    struct codec_thread *t = codec_thread();

    if (t->lz4_in == NULL) {
        LZ4F_dctx *ctx = NULL;
        KCHECK(!LZ4F_isError(LZ4F_createDecompressionContext(&ctx, LZ4F_VERSION)));
        t->lz4_in = ctx;
    }
    LZ4F_resetDecompressionContext(t->lz4_in);
    return t->lz4_in;
}

int lz4_decompress(struct slice in, struct codec_out *o)
{
    LZ4F_dctx *ctx = lz4_reader();
    size_t wants = 1; /* 0: between frames */

    while (in.n > 0 || wants > 0) {
        size_t room = codec_out_room(o), made = room, eaten = in.n;
        wants = LZ4F_decompress(ctx, o->b->p + o->b->n, &made, in.p, &eaten, NULL);
        if (LZ4F_isError(wants))
            return -EBADMSG;
        o->b->n += made;
        in = slice_of(in.p + eaten, in.n - eaten);
        if (codec_out_full(o))
            return -EFBIG;
        if (wants > 0 && in.n == 0 && made < room)
            return -EBADMSG; /* cut off */
    }
    return 0;
}

int lz4_compress(int level, struct slice in, struct bytebuf *ret)
{
    const LZ4F_preferences_t prefs = {
        .frameInfo = { .blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent },
        .compressionLevel = level,
    };
    size_t room = LZ4F_compressFrameBound(in.n, &prefs);

    size_t n = LZ4F_compressFrame(bytebuf_room(ret, room), room, in.p, in.n, &prefs);
    KCHECK(!LZ4F_isError(n));
    ret->n += n;
    return 0;
}

void lz4_thread_done(struct codec_thread *t)
{
    LZ4F_freeDecompressionContext(t->lz4_in);
    t->lz4_in = NULL;
}
