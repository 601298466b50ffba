/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same records under another codec (a topic's compression.type). The header stays but for codec, length
 * and checksum; what is unpacked is bounded by the caller (plain_max). On an error ret is as it was. The
 * batch has been checked before: it is whole and at least a header long. Pure; any thread.
 */
#include "lib/base/check.h"
#include "lib/record/batch.h"
#include "lib/record/codec.h"

static int pack(struct slice plain, enum codec codec, int level, struct bytebuf *ret)
{
    if (codec != CODEC_NONE)
        return codec_compress(codec, level, plain, ret);
    bytebuf_add(ret, plain.p, plain.n);
    return 0;
}

int batch_recompress(struct slice batch, enum codec codec, int level, size_t plain_max, struct bytebuf *ret)
{
    CLEANUP(bytebuf_done) struct bytebuf plain = { 0 };
    struct slice records = slice_of(batch.p + BATCH_OVERHEAD, batch.n - BATCH_OVERHEAD);
    struct batch_header h;
    size_t start = ret->n;
    int rc = 0;

    KCHECK(batch.n >= BATCH_OVERHEAD);
    batch_header_read(batch.p, &h);
    if (batch_codec(&h) != CODEC_NONE) {
        rc = codec_decompress(batch_codec(&h), records, plain_max, &plain);
        records = slice_of(plain.p, plain.n);
    }
    bytebuf_extend(ret, BATCH_OVERHEAD);
    if (rc == 0)
        rc = pack(records, codec, level, ret);
    if (rc != 0) {
        ret->n = start;
        return rc;
    }
    h.attributes = (int16_t)((h.attributes & ~BATCH_ATTR_CODEC) | (int16_t)codec);
    h.length = (int32_t)(ret->n - start - BATCH_LOG_OVERHEAD);
    batch_header_write(ret->p + start, &h);
    put_be32(ret->p + start + BATCH_CRC, batch_crc(ret->p + start, ret->n - start));
    return 0;
}
