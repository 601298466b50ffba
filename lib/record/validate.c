/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a produced batch before it may enter a log. Runs on a reactor thread for every batch, so
 * it costs a few nanoseconds a record: an uncompressed batch is walked where it lies, a
 * compressed one is unpacked into the thread's scratch buffer, which grows with what really comes
 * out and never beyond the caller's cap.
 *
 * The order of the checks is Kafka's: shape, size, checksum, header, records. A checksum that does not match
 * is CORRUPT_MESSAGE, which clients retry; damage behind a good checksum is INVALID_RECORD, because the same
 * bytes would come again. The producer's sequence and the topic are not judged here.
 */
#include <errno.h>
#include <limits.h>

#include "lib/base/check.h"
#include "lib/record/batch.h"
#include "lib/record/codec_int.h"
#include "lib/record/record_parse.h"

static enum kerr refuse(struct batch_info *info, enum kerr err, const char *text)
{
    KCHECK(err != KERR_NONE);
    info->bad_text = text;
    return err;
}

static enum kerr refuse_record(struct batch_info *info, int32_t index, enum kerr err, const char *text)
{
    info->bad_index = index;
    return refuse(info, err, text);
}

/* Are these bytes one batch of the only format klog stores? */
static enum kerr judge_shape(const uint8_t *p, size_t n, struct batch_info *info)
{
    if (n == 0)
        return refuse(info, KERR_INVALID_RECORD, "there is no record batch for the partition");
    if (n <= BATCH_MAGIC)
        return refuse(info, KERR_CORRUPT_MESSAGE, "the record batch is cut off");
    if (p[BATCH_MAGIC] != 2)
        return refuse(info, KERR_INVALID_RECORD, "only record batches of magic 2 are taken");
    if (n < BATCH_OVERHEAD)
        return refuse(info, KERR_CORRUPT_MESSAGE, "the record batch is shorter than its header");

    batch_header_read(p, &info->h);
    int64_t size_bytes = batch_size(&info->h);
    if (size_bytes < BATCH_OVERHEAD || size_bytes > (int64_t)n)
        return refuse(info, KERR_CORRUPT_MESSAGE, "the length in the batch does not fit its bytes");
    if (size_bytes < (int64_t)n)
        return refuse(info, KERR_INVALID_RECORD, "there is more than one record batch for the partition");
    return KERR_NONE;
}

static enum kerr judge_codec(const struct batch_rules *rules, struct batch_info *info)
{
    enum codec c = batch_codec(&info->h);

    if (c > CODEC_ZSTD)
        return refuse(info, KERR_UNSUPPORTED_COMPRESSION_TYPE, "the compression type is unknown");
    if (c == CODEC_ZSTD && !rules->zstd_allowed)
        return refuse(info, KERR_UNSUPPORTED_COMPRESSION_TYPE, "zstd needs version 7 of the produce request");
    if (!codec_available(c))
        return refuse(info, KERR_UNSUPPORTED_COMPRESSION_TYPE,
                      "this broker was built without the compression type");
    return KERR_NONE;
}

static enum kerr judge_bytes(const uint8_t *p, size_t n, const struct batch_rules *rules,
                             struct batch_info *info)
{
    if ((int64_t)n > rules->max_message_bytes)
        return refuse(info, KERR_MESSAGE_TOO_LARGE, "the record batch is larger than max.message.bytes");
    if ((int64_t)n > rules->segment_bytes)
        return refuse(info, KERR_RECORD_LIST_TOO_LARGE, "the record batch is larger than segment.bytes");
    if (batch_crc(p, n) != info->h.crc)
        return refuse(info, KERR_CORRUPT_MESSAGE, "the checksum of the record batch does not match");
    return KERR_NONE;
}

static enum kerr judge_producer(struct batch_info *info)
{
    const struct batch_header *h = &info->h;

    if (batch_is_transactional(h) && h->producer_id < 0)
        return refuse(info, KERR_INVALID_RECORD, "a transactional batch must have a producer id");
    if (h->producer_id < 0 || batch_is_control(h))
        return KERR_NONE; /* control batches carry sequence -1 */
    if (h->base_sequence < 0)
        return refuse(info, KERR_INVALID_RECORD, "a batch with a producer id must have a sequence");
    if (h->producer_epoch < 0)
        return refuse(info, KERR_INVALID_RECORD, "a batch with a producer id must have a producer epoch");
    return KERR_NONE;
}

static enum kerr judge_header(const struct batch_rules *rules, struct batch_info *info)
{
    const struct batch_header *h = &info->h;

    if (h->base_offset != 0)
        return refuse(info, KERR_INVALID_RECORD, "the base offset of a produced batch must be 0");
    if (h->count <= 0)
        return refuse(info, KERR_INVALID_RECORD, "the record count must be above 0");
    if ((int64_t)h->last_offset_delta + 1 != h->count)
        return refuse(info, KERR_INVALID_RECORD, "the last offset delta does not fit the record count");
    if (batch_is_control(h) && !rules->allow_control)
        return refuse(info, KERR_INVALID_RECORD, "clients may not write control batches");
    if (h->attributes & BATCH_ATTR_DELETE_HORIZON)
        return refuse(info, KERR_INVALID_RECORD, "clients may not set a delete horizon");
    if (h->attributes & BATCH_ATTR_LOG_APPEND_TIME)
        return refuse(info, KERR_INVALID_TIMESTAMP, "clients may not set the timestamp type LogAppendTime");
    return judge_producer(info);
}

/* [low, high] that a record's timestamp must lie in; the configured spans go up to INT64_MAX. */
struct time_window {
    int64_t low, high;
};

static struct time_window time_window_of(const struct batch_rules *rules)
{
    struct time_window w;

    if (rules->log_append_time)
        return (struct time_window){ INT64_MIN, INT64_MAX };
    if (__builtin_sub_overflow(rules->now_ms, rules->timestamp_before_max_ms, &w.low))
        w.low = INT64_MIN;
    if (__builtin_add_overflow(rules->now_ms, rules->timestamp_after_max_ms, &w.high))
        w.high = INT64_MAX;
    return w;
}

static inline int64_t record_timestamp(const struct batch_header *h, const struct parsed_record *r)
{
    return (int64_t)((uint64_t)h->base_timestamp +
                     (uint64_t)r->timestamp_delta); /* may wrap: then it is judged */
}

/* Reads the record that is number i; one past it, or NULL and why. */
static inline const uint8_t *read_record(const uint8_t *p, const uint8_t *end, int32_t i,
                                         struct parsed_record *ret, const char **ret_why)
{
    p = parse_record(p, end, ret);
    if (unlikely(p == NULL)) {
        *ret_why = "the record's lengths do not fit its bytes";
        return NULL;
    }
    if (unlikely(ret->n_headers != 0 || ret->headers != ret->end) && !parse_headers(ret)) {
        *ret_why = "the record's headers do not fit its bytes";
        return NULL;
    }
    if (unlikely(ret->offset_delta != i)) {
        *ret_why = "the record's offset delta is not its index";
        return NULL;
    }
    return p;
}

/* Does the topic take it? */
static inline enum kerr judge_record(const struct parsed_record *r, int64_t timestamp, bool need_key,
                                     const struct time_window *window, const char **ret_why)
{
    if (unlikely(need_key && kstr_is_null(r->key))) {
        *ret_why = "a compacted topic needs a key in every record";
        return KERR_INVALID_RECORD;
    }
    if (unlikely(timestamp < window->low || timestamp > window->high) && timestamp != -1) {
        *ret_why = "the record's timestamp is outside the range the topic allows";
        return KERR_INVALID_TIMESTAMP;
    }
    return KERR_NONE;
}

/* Walks the plain records, up to the first that is refused. */
static enum kerr judge_records(struct slice plain, const struct batch_rules *rules, struct batch_info *info)
{
    const struct time_window window = time_window_of(rules);
    const bool need_key = rules->need_key && !batch_is_control(&info->h);
    const int32_t count = info->h.count;
    const uint8_t *p = plain.p, *end = slice_end(plain);
    int64_t max_timestamp = -1, text_bytes = 0;
    struct parsed_record r;
    const char *why;

    for (int32_t i = 0; i < count; i++) {
        p = read_record(p, end, i, &r, &why);
        if (unlikely(p == NULL))
            return refuse_record(info, i, KERR_INVALID_RECORD, why);
        int64_t timestamp = record_timestamp(&info->h, &r);
        enum kerr err = judge_record(&r, timestamp, need_key, &window, &why);
        if (unlikely(err != KERR_NONE))
            return refuse_record(info, i, err, why);
        max_timestamp = MAX(max_timestamp, timestamp);
        text_bytes += (r.value.n > 0 ? r.value.n : 0) + 1;
    }
    if (p != end)
        return refuse(info, KERR_INVALID_RECORD, "there are bytes after the last record");

    info->max_timestamp = max_timestamp;
    info->text_bytes = batch_is_control(&info->h) ? 0 : text_bytes;
    return KERR_NONE;
}

/* Walks them again for all that are refused; behind one that cannot be read there is nothing to find. */
static int32_t list_refused(struct slice plain, const struct batch_rules *rules, const struct batch_header *h,
                            struct batch_refusal *ret, int32_t max)
{
    const struct time_window window = time_window_of(rules);
    const bool need_key = rules->need_key && !batch_is_control(h);
    const uint8_t *p = plain.p, *end = slice_end(plain);
    struct parsed_record r;
    int32_t n = 0;

    for (int32_t i = 0; i < h->count && n < max && p != NULL; i++) {
        ret[n].index = i;
        p = read_record(p, end, i, &r, &ret[n].why);
        if (p == NULL ||
            judge_record(&r, record_timestamp(h, &r), need_key, &window, &ret[n].why) != KERR_NONE)
            n++;
    }
    return n;
}

static enum kerr refuse_unpacking(struct batch_info *info, int rc)
{
    if (rc == -EFBIG)
        return refuse(info, KERR_MESSAGE_TOO_LARGE, "the record batch is too large once it is decompressed");
    KCHECK(rc == -EBADMSG); /* judge_codec has seen to -ENOTSUP */
    return refuse(info, KERR_INVALID_RECORD, "the compressed records are damaged");
}

static enum kerr judge_payload(struct slice payload, const struct batch_rules *rules, struct batch_info *info)
{
    enum codec c = batch_codec(&info->h);

    if (c == CODEC_NONE) {
        info->decompressed_bytes = (int64_t)payload.n;
        return judge_records(payload, rules, info);
    }

    struct bytebuf *scratch = codec_scratch_take();
    int rc = codec_decompress(c, payload, (size_t)MAX(rules->decompressed_max, 0), scratch);
    enum kerr err;
    if (rc < 0) {
        err = refuse_unpacking(info, rc);
    } else {
        info->decompressed_bytes = (int64_t)scratch->n;
        err = judge_records(slice_of(scratch->p, scratch->n), rules, info);
    }
    codec_scratch_release(scratch);
    return err;
}

/* Searches by time trust the header, so a wrong maximum is put right, as Kafka does. */
static void correct_max_timestamp(uint8_t *p, size_t n, struct batch_info *info)
{
    info->h.max_timestamp = info->max_timestamp;
    put_be64(p + BATCH_MAX_TIMESTAMP, (uint64_t)info->max_timestamp);
    info->h.crc = batch_crc(p, n);
    put_be32(p + BATCH_CRC, info->h.crc);
}

enum kerr batch_validate(uint8_t *p, size_t n, const struct batch_rules *rules, struct batch_info *ret)
{
    enum kerr err;

    *ret = (struct batch_info){ .bad_index = -1, .bad_text = "" };
    if ((err = judge_shape(p, n, ret)) != KERR_NONE || (err = judge_codec(rules, ret)) != KERR_NONE ||
        (err = judge_bytes(p, n, rules, ret)) != KERR_NONE || (err = judge_header(rules, ret)) != KERR_NONE)
        return err;

    err = judge_payload(slice_of(p + BATCH_OVERHEAD, n - BATCH_OVERHEAD), rules, ret);
    if (err != KERR_NONE)
        return err;
    if (!rules->log_append_time && ret->max_timestamp != ret->h.max_timestamp)
        correct_max_timestamp(p, n, ret);
    return KERR_NONE;
}

int32_t batch_refused(const uint8_t *p, size_t n, const struct batch_rules *rules, struct batch_refusal *ret,
                      int32_t max)
{
    struct batch_header h;
    batch_header_read(p, &h);
    struct slice payload = slice_of(p + BATCH_OVERHEAD, n - BATCH_OVERHEAD);
    if (batch_codec(&h) == CODEC_NONE)
        return list_refused(payload, rules, &h, ret, max);

    struct bytebuf *scratch = codec_scratch_take();
    int rc = codec_decompress(batch_codec(&h), payload, (size_t)MAX(rules->decompressed_max, 0), scratch);
    KCHECK(rc == 0); /* batch_validate got to the records */
    int32_t listed = list_refused(slice_of(scratch->p, scratch->n), rules, &h, ret, max);
    codec_scratch_release(scratch);
    return listed;
}
