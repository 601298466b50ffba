/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codecs behind one table, and the memory a thread keeps for them. Any thread; nothing is
 * shared between threads but the key under which each finds its own memory.
 */
#include "lib/record/codec.h"

#include <errno.h>
#include <pthread.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/record/codec_int.h"

enum {
    OUT_FIRST = 64 * 1024,      /* room for the first piece of output; then as much as came out so far */
    SCRATCH_KEPT_MAX = 8 << 20, /* a larger scratch buffer is given back after its batch */
};

struct codec_ops {
    const char *name;
    int (*decompress)(struct slice in, struct codec_out *o);
    int (*compress)(int level, struct slice in, struct bytebuf *ret);
};

static const struct codec_ops codecs[] = {
    [CODEC_NONE] = { "none", NULL, NULL },
    [CODEC_GZIP] = { "gzip", gzip_decompress, gzip_compress },
#ifdef HAVE_SNAPPY
    [CODEC_SNAPPY] = { "snappy", snappy_decompress, snappy_compress_xerial },
#else
    [CODEC_SNAPPY] = { "snappy", NULL, NULL },
#endif
    [CODEC_LZ4] = { "lz4", lz4_decompress, lz4_compress },
#ifdef HAVE_ZSTD
    [CODEC_ZSTD] = { "zstd", zstd_decompress, zstd_compress },
#else
    [CODEC_ZSTD] = { "zstd", NULL, NULL },
#endif
};

const char *codec_name(enum codec c)
{
    return (size_t)c < ARRAY_LEN(codecs) ? codecs[c].name : "unknown";
}

bool codec_parse(const char *name, enum codec *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
        if (strcmp(codecs[i].name, name) == 0) {
            *ret = (enum codec)i;
            return true;
        }
    }
    return false;
}

bool codec_available(enum codec c)
{
    return c == CODEC_NONE || ((size_t)c < ARRAY_LEN(codecs) && codecs[c].decompress != NULL);
}

/* ---- a thread's memory ---- */
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;

static void codec_thread_free(void *p)
{
    struct codec_thread *t = p;

    gzip_thread_done(t);
    lz4_thread_done(t);
#ifdef HAVE_ZSTD
    zstd_thread_done(t);
#endif
    bytebuf_done(&t->scratch);
    free(t);
}

static void thread_key_make(void)
{
    KCHECK(pthread_key_create(&thread_key, codec_thread_free) == 0);
}

struct codec_thread *codec_thread(void)
{
    KCHECK(pthread_once(&thread_once, thread_key_make) == 0);
    struct codec_thread *t = pthread_getspecific(thread_key);
    if (t == NULL) {
        t = xcalloc(1, sizeof *t);
        KCHECK(pthread_setspecific(thread_key, t) == 0);
    }
    return t;
}

struct bytebuf *codec_scratch_take(void)
{
    struct codec_thread *t = codec_thread();

    KCHECK(!t->scratch_taken);
    t->scratch_taken = true;
    t->scratch.n = 0;
    return &t->scratch;
}

void codec_scratch_release(struct bytebuf *scratch)
{
    struct codec_thread *t = container_of(scratch, struct codec_thread, scratch);

    KCHECK(t->scratch_taken);
    t->scratch_taken = false;
    if (scratch->cap > SCRATCH_KEPT_MAX)
        bytebuf_done(scratch);
}

/* ---- output ---- */
size_t codec_out_room(const struct codec_out *o)
{
    size_t made = codec_out_made(o);

    KCHECK(made <= o->out_max);
    size_t left = o->out_max - made + 1;
    size_t spare = o->b->cap - o->b->n;
    if (spare < MIN(left, OUT_FIRST)) {
        bytebuf_room(o->b, MIN(left, MAX(made, OUT_FIRST)));
        spare = o->b->cap - o->b->n;
    }
    return MIN(left, spare);
}

int codec_decompress(enum codec c, struct slice in, size_t out_max, struct bytebuf *ret)
{
    if (c == CODEC_NONE) {
        if (in.n > out_max)
            return -EFBIG;
        bytebuf_add(ret, in.p, in.n);
        return 0;
    }
    if (!codec_available(c))
        return -ENOTSUP;

    struct codec_out o = { .b = ret, .base = ret->n, .out_max = MIN(out_max, SIZE_MAX / 2) };
    int rc = codecs[c].decompress(in, &o);
    if (rc == 0 && codec_out_full(&o))
        rc = -EFBIG;
    if (rc < 0)
        ret->n = o.base;
    return rc;
}

int codec_compress(enum codec c, int level, struct slice in, struct bytebuf *ret)
{
    if (c == CODEC_NONE) {
        bytebuf_add(ret, in.p, in.n);
        return 0;
    }
    if (!codec_available(c))
        return -ENOTSUP;
    return codecs[c].compress(level, in, ret);
}
