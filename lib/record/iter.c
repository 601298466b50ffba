/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the records of a batch that comes from a disk or from a broker. Nothing is trusted: a batch that
 * contradicts itself ends with -EBADMSG, never with a read outside it. Plain batches are walked where they
 * lie; the scratch buffer is used only for compressed ones and is kept from batch to batch.
 */
#include "lib/record/iter.h"

#include <errno.h>

#include "lib/base/check.h"
#include "lib/record/codec.h"
#include "lib/record/record_parse.h"

void record_iter_init(struct record_iter *it)
{
    *it = (struct record_iter){ 0 };
}

void record_iter_done(struct record_iter *it)
{
    bytebuf_done(&it->scratch);
    record_iter_init(it);
}

static int iter_unpack(struct record_iter *it, struct slice payload, size_t plain_max)
{
    if (batch_codec(&it->h) == CODEC_NONE) {
        it->rest = payload;
        return payload.n <= plain_max ? 0 : -EFBIG;
    }

    it->scratch.n = 0;
    int rc = codec_decompress(batch_codec(&it->h), payload, plain_max, &it->scratch);
    if (rc < 0)
        return rc;
    it->rest = slice_of(it->scratch.p, it->scratch.n);
    return 0;
}

int record_iter_start(struct record_iter *it, struct slice batch, size_t plain_max)
{
    it->index = 0;
    it->rest = slice_of(NULL, 0);
    it->h.count = 0;
    if (batch.n < BATCH_OVERHEAD)
        return -EBADMSG;

    struct batch_header h;
    batch_header_read(batch.p, &h);
    if (h.magic != 2 || h.count < 0 || batch_size(&h) < BATCH_OVERHEAD || batch_size(&h) > (int64_t)batch.n)
        return -EBADMSG;

    it->h = h;
    if (h.count == 0 && batch_size(&h) == BATCH_OVERHEAD)
        return 0; /* compaction leaves such batches, with any codec bits */
    int rc = iter_unpack(it, slice_of(batch.p + BATCH_OVERHEAD, (size_t)batch_size(&h) - BATCH_OVERHEAD),
                         plain_max);
    if (rc < 0)
        it->h.count = 0;
    return rc;
}

static int64_t iter_timestamp(const struct record_iter *it, const struct parsed_record *r)
{
    if (it->h.attributes & BATCH_ATTR_LOG_APPEND_TIME)
        return it->h.max_timestamp;
    return (int64_t)((uint64_t)it->h.base_timestamp + (uint64_t)r->timestamp_delta);
}

int record_iter_next(struct record_iter *it, struct record *ret)
{
    struct parsed_record r;

    if (it->index >= it->h.count)
        return it->rest.n == 0 ? 0 : -EBADMSG;

    const uint8_t *end = slice_end(it->rest);
    const uint8_t *p = parse_record(it->rest.p, end, &r);
    if (p == NULL || r.offset_delta < 0 || r.offset_delta > it->h.last_offset_delta || !parse_headers(&r))
        return -EBADMSG;

    ret->offset = (int64_t)((uint64_t)it->h.base_offset + (uint64_t)r.offset_delta);
    ret->timestamp = iter_timestamp(it, &r);
    ret->key = r.key;
    ret->value = r.value;
    ret->n_headers = r.n_headers;
    ret->headers = slice_of(r.headers, (size_t)(r.end - r.headers));
    it->rest = slice_of(p, (size_t)(end - p));
    it->index++;
    return 1;
}

int record_header_next(struct slice *headers, struct kstr *key, struct kstr *value)
{
    if (headers->n == 0)
        return 0;

    const uint8_t *end = slice_end(*headers);
    const uint8_t *p = parse_header(headers->p, end, key, value);
    if (p == NULL)
        return -EBADMSG;
    *headers = slice_of(p, (size_t)(end - p));
    return 1;
}
