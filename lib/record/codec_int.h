/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the codecs share, private to this folder: the memory a thread keeps between calls, and the capped
 * window they write their output through.
 */
#ifndef KLOG_RECORD_CODEC_INT_H
#define KLOG_RECORD_CODEC_INT_H

#include "lib/record/codec.h"

/* Contexts cost up to some hundred KiB to set up, so each thread keeps its own; they go with the thread. Each
 * is made by the codec that uses it, which also frees it. */
struct codec_thread {
    void *gzip_in, *gzip_out;
    void *lz4_in;
    void *zstd_in, *zstd_out;
    struct bytebuf scratch;
    bool scratch_taken;
};
struct codec_thread *codec_thread(void);

/* The thread's buffer for plain bytes, empty. One user at a time. */
struct bytebuf *codec_scratch_take(void);
void codec_scratch_release(struct bytebuf *scratch);

/* Output of a decompression that began when the buffer held `base` bytes. One byte more than out_max may be
 * written, which tells an output that just fits from one that does not. */
struct codec_out {
    struct bytebuf *b;
    size_t base, out_max;
};
/* Writable bytes at b->p + b->n: never 0, growing with what came out so far. */
size_t codec_out_room(const struct codec_out *o);
static inline size_t codec_out_made(const struct codec_out *o)
{
    return o->b->n - o->base;
}
static inline bool codec_out_full(const struct codec_out *o)
{
    return codec_out_made(o) > o->out_max;
}

/* Each appends to o->b: 0, -EBADMSG, -EFBIG. */
int gzip_decompress(struct slice in, struct codec_out *o);
int snappy_decompress(struct slice in, struct codec_out *o);
int lz4_decompress(struct slice in, struct codec_out *o);
int zstd_decompress(struct slice in, struct codec_out *o);
/* Each appends to ret: 0. */
int gzip_compress(int level, struct slice in, struct bytebuf *ret);
int snappy_compress_xerial(int level, struct slice in, struct bytebuf *ret);
int lz4_compress(int level, struct slice in, struct bytebuf *ret);
int zstd_compress(int level, struct slice in, struct bytebuf *ret);
void gzip_thread_done(struct codec_thread *t);
void lz4_thread_done(struct codec_thread *t);
void zstd_thread_done(struct codec_thread *t);

#endif
