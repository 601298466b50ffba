/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd, one or more frames, whose content size may be missing (Java streams them). The window a
 * frame asks for is limited to the format's usual 128 MiB and is only touched as output comes,
 * which the caller caps; a context that has grown past a few MiB is not kept.
 */
#ifdef HAVE_ZSTD
#include <errno.h>
#include <zstd.h>

#include "lib/base/check.h"
#include "lib/record/codec_int.h"

enum {
    ZSTD_WINDOW_LOG_MAX = 27,
    ZSTD_KEPT_MAX = 12 << 20, /* holds the 8 MiB window that every decoder has to support */
    ZSTD_LEVEL_DEFAULT = 3,
};

static ZSTD_DCtx *zstd_reader(struct codec_thread *t)
{
    if (t->zstd_in == NULL) {
        ZSTD_DCtx *ctx = ZSTD_createDCtx();
        KCHECK(ctx != NULL);
        KCHECK(!ZSTD_isError(ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX)));
        t->zstd_in = ctx;
    }
    ZSTD_DCtx_reset(t->zstd_in, ZSTD_reset_session_only);
    return t->zstd_in;
}

static int zstd_stream(ZSTD_DCtx *ctx, struct slice in, struct codec_out *o)
{
    ZSTD_inBuffer from = { in.p, in.n, 0 };
    size_t wants = 1; /* 0: between frames */

    while (from.pos < from.size || wants > 0) {
        size_t room = codec_out_room(o);
        ZSTD_outBuffer to = { o->b->p + o->b->n, room, 0 };
        wants = ZSTD_decompressStream(ctx, &to, &from);
        if (ZSTD_isError(wants))
            return -EBADMSG;
        o->b->n += to.pos;
        if (codec_out_full(o))
            return -EFBIG;
        if (wants > 0 && from.pos == from.size && to.pos < room)
            return -EBADMSG; /* cut off */
    }
    return 0;
}

int zstd_decompress(struct slice in, struct codec_out *o)
{
    struct codec_thread *t = codec_thread();
    int rc = zstd_stream(zstd_reader(t), in, o);

    if (ZSTD_sizeof_DCtx(t->zstd_in) > ZSTD_KEPT_MAX) {
        ZSTD_freeDCtx(t->zstd_in);
        t->zstd_in = NULL;
    }
    return rc;
}

int zstd_compress(int level, struct slice in, struct bytebuf *ret)
{
    struct codec_thread *t = codec_thread();

    if (t->zstd_out == NULL)
        t->zstd_out = ZSTD_createCCtx();
    KCHECK(t->zstd_out != NULL);
    size_t room = ZSTD_compressBound(in.n);
    size_t n = ZSTD_compressCCtx(t->zstd_out, bytebuf_room(ret, room), room, in.p, in.n,
                                 level == 0 ? ZSTD_LEVEL_DEFAULT : level);
    KCHECK(!ZSTD_isError(n));
    ret->n += n;
    return 0;
}

void zstd_thread_done(struct codec_thread *t)
{
    ZSTD_freeDCtx(t->zstd_in);
    ZSTD_freeCCtx(t->zstd_out);
    t->zstd_in = t->zstd_out = NULL;
}
#else
typedef int codec_zstd_is_left_out;
#endif
