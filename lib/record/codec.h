/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip, snappy (raw block and xerial framing), lz4 frame, zstd, behind one interface. Output is
 * always capped: a batch from outside cannot make klog reserve more than the caller allows.
 * A codec left out at configure time answers -ENOTSUP. Thread-safe; per-thread contexts are kept.
 */
#ifndef KLOG_RECORD_CODEC_H
#define KLOG_RECORD_CODEC_H

#include "lib/base/buf.h"
#include "lib/record/batch.h"

const char *codec_name(enum codec c); /* "none", "gzip", ... */
bool codec_parse(const char *name, enum codec *ret);
bool codec_available(enum codec c);

/* Appends the plain bytes to ret. 0; -EBADMSG damaged; -EFBIG more than out_max bytes; -ENOTSUP. */
int codec_decompress(enum codec c, struct slice in, size_t out_max, struct bytebuf *ret);
/* Appends the compressed bytes; level 0 = the codec's default. snappy is written in xerial framing
 * (big-endian header), lz4 as a frame of independent 64 KiB blocks without content checksum. */
int codec_compress(enum codec c, int level, struct slice in, struct bytebuf *ret);

#endif
