/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip (RFC 1952), one or more members. Inflated by ISA-L where it is there, two to three times as fast as
 * zlib, which is the fallback; always deflated by zlib, whose levels are the ones people know.
 */
#include <errno.h>
#include <limits.h>
#include <zlib.h>
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/record/codec_int.h"

enum {
    GZIP_WINDOW_BITS = 15 + 16, /* zlib's way to say: with a gzip header */
    GZIP_LEVEL_DEFAULT = 6,
};

#ifdef HAVE_ISAL

static struct inflate_state *gzip_reader(void)
{
    struct codec_thread *t = codec_thread();

    if (t->gzip_in == NULL)
        t->gzip_in = xmalloc(sizeof(struct inflate_state));
    return t->gzip_in;
}

static void gzip_reader_free(void *p)
{
    free(p);
}

/* One member from the front of *in. */
static int gzip_member(struct inflate_state *s, struct slice *in, struct codec_out *o)
{
    isal_inflate_init(s);
    s->crc_flag = ISAL_GZIP;
    s->next_in = (uint8_t *)(uintptr_t)in->p;
    s->avail_in = (uint32_t)in->n;

    for (;;) {
        uint32_t room = (uint32_t)MIN(codec_out_room(o), UINT32_MAX);
        s->next_out = o->b->p + o->b->n;
        s->avail_out = room;
        int rc = isal_inflate(s);
        o->b->n += room - s->avail_out;
        if (codec_out_full(o))
            return -EFBIG;
        if (rc != ISAL_DECOMP_OK && rc != ISAL_END_INPUT)
            return -EBADMSG;
        if (s->block_state == ISAL_BLOCK_FINISH)
            break;
        if (s->avail_out > 0 && s->avail_in == 0)
            return -EBADMSG; /* it wants more input than there is */
    }
    *in = slice_of(s->next_in, s->avail_in);
    return 0;
}

#else

static z_stream *gzip_reader(void)
{
    struct codec_thread *t = codec_thread();

    if (t->gzip_in == NULL) {
        z_stream *s = xcalloc(1, sizeof *s);
        KCHECK(inflateInit2(s, GZIP_WINDOW_BITS) == Z_OK);
        t->gzip_in = s;
    }
    return t->gzip_in;
}

static void gzip_reader_free(void *p)
{
    if (p != NULL)
        inflateEnd(p);
    free(p);
}

/* One member from the front of *in. */
static int gzip_member(z_stream *s, struct slice *in, struct codec_out *o)
{
    KCHECK(inflateReset(s) == Z_OK);
    s->next_in = (Bytef *)(uintptr_t)in->p;
    s->avail_in = (uInt)in->n;

    int rc;
    do {
        uInt room = (uInt)MIN(codec_out_room(o), UINT_MAX);
        s->next_out = o->b->p + o->b->n;
        s->avail_out = room;
        rc = inflate(s, Z_NO_FLUSH);
        o->b->n += room - s->avail_out;
        if (codec_out_full(o))
            return -EFBIG;
        KCHECK(rc != Z_MEM_ERROR);
    } while (rc == Z_OK); /* without input or progress it is Z_BUF_ERROR */
    if (rc != Z_STREAM_END)
        return -EBADMSG;
    *in = slice_of(s->next_in, s->avail_in);
    return 0;
}

#endif

int gzip_decompress(struct slice in, struct codec_out *o)
{
    if (in.n > INT32_MAX)
        return -EBADMSG;
    do {
        int rc = gzip_member(gzip_reader(), &in, o);
        if (rc < 0)
            return rc;
    } while (in.n > 0);
    return 0;
}

static z_stream *gzip_writer(void)
{
    struct codec_thread *t = codec_thread();

    if (t->gzip_out == NULL) {
        z_stream *s = xcalloc(1, sizeof *s);
        KCHECK(deflateInit2(s, GZIP_LEVEL_DEFAULT, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) ==
               Z_OK);
        t->gzip_out = s;
    }
    return t->gzip_out;
}

int gzip_compress(int level, struct slice in, struct bytebuf *ret)
{
    z_stream *s = gzip_writer();

    KCHECK(in.n <= INT32_MAX);
    KCHECK(deflateReset(s) == Z_OK);
    KCHECK(deflateParams(s, level == 0 ? GZIP_LEVEL_DEFAULT : level, Z_DEFAULT_STRATEGY) == Z_OK);
    size_t room = deflateBound(s, in.n);
    s->next_in = (Bytef *)(uintptr_t)in.p;
    s->avail_in = (uInt)in.n;
    s->next_out = bytebuf_room(ret, room);
    s->avail_out = (uInt)room;
    KCHECK(deflate(s, Z_FINISH) == Z_STREAM_END); /* deflateBound is enough for one call */
    ret->n += room - s->avail_out;
    return 0;
}

void gzip_thread_done(struct codec_thread *t)
{
    gzip_reader_free(t->gzip_in);
    if (t->gzip_out != NULL)
        deflateEnd(t->gzip_out);
    free(t->gzip_out);
    t->gzip_in = t->gzip_out = NULL;
}
