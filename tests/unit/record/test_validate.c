/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule for a produced batch with the error code clients get for it. */
#include "batches.h"

#include <zlib.h>

#include "lib/base/mem.h"

static const struct batch_rules open_rules = {
    .max_message_bytes = 1 << 20,
    .segment_bytes = 1 << 30,
    .now_ms = NOW_MS,
    .timestamp_before_max_ms = INT64_MAX,
    .timestamp_after_max_ms = 3600000,
    .decompressed_max = 64 << 20,
    .zstd_allowed = true,
};

static const enum codec packing[] = { CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };

/* Validates and frees. */
static enum kerr judge(struct bytebuf *b, const struct batch_rules *rules, struct batch_info *info)
{
    uint8_t *exact = xmalloc(b->n + 1); /* no spare bytes: the address sanitizer sees any read too far */

    memcpy(exact, b->p, b->n);
    enum kerr err = batch_validate(exact, b->n, rules, info);
    assert_true(err == KERR_NONE ? info->bad_text[0] == '\0' : info->bad_text[0] != '\0');
    free(exact);
    bytebuf_done(b);
    return err;
}

/* Changes one field of a good batch of three, seals it, and expects err. */
static void bent_gives(enum kerr err, size_t at, const void *bytes, size_t n)
{
    struct bytebuf b = { 0 };
    struct batch_info info;

    batch_make(3, CODEC_NONE, NULL, &b);
    memcpy(b.p + at, bytes, n);
    batch_seal(&b);
    assert_int_equal(judge(&b, &open_rules, &info), err);
    assert_int_equal(info.bad_index, -1);
}

/* A sealed batch of one record with these bytes. */
static enum kerr judge_raw(int count, const void *payload, size_t n, struct batch_info *info)
{
    struct bytebuf b = { 0 };

    batch_wrap(count, 0, payload, n, &b);
    return judge(&b, &open_rules, info);
}

static void a_good_batch_tells_what_it_holds(void **state)
{
    const struct batch_producer producer = { .id = 4, .epoch = 0, .base_sequence = 0 };

    (void)state;
    for (enum codec c = CODEC_NONE; c <= CODEC_ZSTD; c++) {
        struct bytebuf b = { 0 }, plain = { 0 };
        struct batch_info info;
        if (!codec_available(c))
            continue;
        batch_make(10, CODEC_NONE, &producer, &plain);
        batch_make(10, c, &producer, &b);
        assert_int_equal(judge(&b, &open_rules, &info), KERR_NONE);
        assert_int_equal(info.text_bytes, 10 * 8);
        assert_int_equal(info.decompressed_bytes, plain.n - BATCH_OVERHEAD);
        assert_int_equal(info.max_timestamp, NOW_MS + 9);
        assert_int_equal(info.bad_index, -1);
        assert_int_equal(info.h.count, 10);
        assert_int_equal(info.h.producer_id, 4);
        bytebuf_done(&plain);
    }
}

static void null_values_are_empty_lines(void **state)
{
    static const uint8_t three[] = { 12, 0, 0, 0, 1, 1, 0, 12, 0, 0, 2, 1, 0, 0, 14, 0, 0, 4, 1, 2, 'x', 0 };
    struct batch_info info;

    (void)state;
    assert_int_equal(judge_raw(3, three, sizeof three, &info), KERR_NONE);
    assert_int_equal(info.text_bytes, 1 + 1 + 2);
}

static void no_batch_at_all_is_an_invalid_record(void **state)
{
    struct batch_info info;

    (void)state;
    assert_int_equal(batch_validate(NULL, 0, &open_rules, &info), KERR_INVALID_RECORD);
}

static void old_magic_is_an_invalid_record(void **state)
{
    static const uint8_t message_set_v1[34] = { [11] = 22, [16] = 1 };
    struct bytebuf b = { 0 };
    struct batch_info info;

    (void)state;
    bytebuf_add(&b, message_set_v1, sizeof message_set_v1);
    assert_int_equal(judge(&b, &open_rules, &info), KERR_INVALID_RECORD);
    bent_gives(KERR_INVALID_RECORD, BATCH_MAGIC, "\3", 1);
}

static void two_batches_are_an_invalid_record(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_info info;

    (void)state;
    batch_make(1, CODEC_NONE, NULL, &b);
    batch_make(1, CODEC_NONE, NULL, &b);
    assert_int_equal(judge(&b, &open_rules, &info), KERR_INVALID_RECORD);
}

static void a_batch_cut_at_any_byte_is_corrupt(void **state)
{
    struct batch_info info;

    (void)state;
    for (size_t n = 1;; n++) {
        struct bytebuf b = { 0 };
        batch_make(3, CODEC_NONE, NULL, &b);
        if (n == b.n) {
            bytebuf_done(&b);
            break;
        }
        b.n = n;
        assert_int_equal(judge(&b, &open_rules, &info), KERR_CORRUPT_MESSAGE);
    }
}

static void a_length_that_lies_is_corrupt(void **state)
{
    static const uint32_t lengths[] = { 0, 48, 0x7fffffff, 0x80000000, 0xffffffff };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct bytebuf b = { 0 };
        struct batch_info info;
        batch_make(3, CODEC_NONE, NULL, &b);
        put_be32(b.p + BATCH_LENGTH, lengths[i]);
        assert_int_equal(judge(&b, &open_rules, &info), KERR_CORRUPT_MESSAGE);
    }
}

static void a_wrong_checksum_is_corrupt(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_info info;

    (void)state;
    batch_make(3, CODEC_NONE, NULL, &b);
    b.p[b.n - 1] ^= 1;
    assert_int_equal(judge(&b, &open_rules, &info), KERR_CORRUPT_MESSAGE);
}

static void zstd_needs_a_new_enough_request(void **state)
{
    struct batch_rules rules = open_rules;
    struct bytebuf b = { 0 };
    struct batch_info info;

    (void)state;
    rules.zstd_allowed = false;
    batch_wrap(1, CODEC_ZSTD, "x", 1, &b);
    assert_int_equal(judge(&b, &rules, &info), KERR_UNSUPPORTED_COMPRESSION_TYPE);
}

static void an_unknown_codec_is_unsupported(void **state)
{
    (void)state;
    for (uint16_t c = 5; c <= 7; c++) {
        uint8_t attributes[2];
        put_be16(attributes, c);
        bent_gives(KERR_UNSUPPORTED_COMPRESSION_TYPE, BATCH_ATTRIBUTES, attributes, 2);
    }
}

static void size_is_judged_against_topic_and_segment(void **state)
{
    struct batch_rules rules = open_rules;
    struct bytebuf b = { 0 };
    struct batch_info info;

    (void)state;
    batch_make(3, CODEC_NONE, NULL, &b);
    rules.max_message_bytes = (int32_t)b.n;
    rules.segment_bytes = (int64_t)b.n;
    assert_int_equal(batch_validate(b.p, b.n, &rules, &info), KERR_NONE);
    rules.max_message_bytes--;
    assert_int_equal(batch_validate(b.p, b.n, &rules, &info), KERR_MESSAGE_TOO_LARGE);
    rules.max_message_bytes++;
    rules.segment_bytes--;
    assert_int_equal(judge(&b, &rules, &info), KERR_RECORD_LIST_TOO_LARGE);
}

static void header_fields_that_contradict_are_invalid_records(void **state)
{
    (void)state;
    bent_gives(KERR_INVALID_RECORD, BATCH_BASE_OFFSET, "\0\0\0\0\0\0\0\1", 8);
    bent_gives(KERR_INVALID_RECORD, BATCH_COUNT, "\0\0\0\0", 4);
    bent_gives(KERR_INVALID_RECORD, BATCH_COUNT, "\xff\xff\xff\xff", 4);
    bent_gives(KERR_INVALID_RECORD, BATCH_COUNT, "\0\0\0\2", 4);
    bent_gives(KERR_INVALID_RECORD, BATCH_LAST_OFFSET_DELTA, "\0\0\0\3", 4);
    bent_gives(KERR_INVALID_RECORD, BATCH_LAST_OFFSET_DELTA, "\x7f\xff\xff\xff", 4);
    bent_gives(KERR_INVALID_RECORD, BATCH_ATTRIBUTES, "\0\x20", 2);    /* control */
    bent_gives(KERR_INVALID_RECORD, BATCH_ATTRIBUTES, "\0\x40", 2);    /* delete horizon */
    bent_gives(KERR_INVALID_RECORD, BATCH_ATTRIBUTES, "\0\x10", 2);    /* transactional, no producer id */
    bent_gives(KERR_INVALID_TIMESTAMP, BATCH_ATTRIBUTES, "\0\x08", 2); /* LogAppendTime */
}

static void a_producer_id_needs_epoch_and_sequence(void **state)
{
    (void)state;
    bent_gives(KERR_INVALID_RECORD, BATCH_PRODUCER_ID,
               "\0\0\0\0\0\0\0\5"
               "\0\0"
               "\xff\xff\xff\xff",
               14);
    bent_gives(KERR_INVALID_RECORD, BATCH_PRODUCER_ID,
               "\0\0\0\0\0\0\0\5"
               "\xff\xff"
               "\0\0\0\0",
               14);
    bent_gives(KERR_NONE, BATCH_PRODUCER_ID,
               "\0\0\0\0\0\0\0\5"
               "\0\0"
               "\0\0\0\0",
               14);
}

static void klog_itself_may_write_control_batches(void **state)
{
    static const uint8_t commit[] = { 32, 0, 0, 0, 8, 0, 0, 0, 1, 12, 0, 0, 0, 0, 0, 7, 0 };
    struct batch_rules rules = open_rules;
    struct bytebuf b = { 0 };
    struct batch_info info;

    (void)state;
    rules.allow_control = true;
    rules.need_key = true;
    batch_wrap(1, BATCH_ATTR_CONTROL | BATCH_ATTR_TRANSACTIONAL, commit, sizeof commit, &b);
    memcpy(b.p + BATCH_PRODUCER_ID, "\0\0\0\0\0\0\0\5\0\1", 10); /* sequence -1 */
    batch_seal(&b);
    assert_int_equal(judge(&b, &rules, &info), KERR_NONE);
    assert_int_equal(info.text_bytes, 0); /* not in the plain view */
}

static void records_that_do_not_fit_their_bytes_are_invalid(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        int index;
    } bad[] = {
        { "", 0, 0 },                  /* count 1, no record */
        { "\x10\0\0\0\1\2x\0", 8, 0 }, /* longer than the batch */
        { "\x0e\0\0\0\1\2x\0"
          "?",
          9, -1 }, /* a byte after the last record */
        { "\x10\0\0\0\1\2x\0"
          "?",
          9, 0 },                           /* a byte inside it that nothing names */
        { "\x0e\0\0\0\1\4x\0", 8, 0 },      /* value eats the header count */
        { "\x0e\0\0\0\1\x20x\0", 8, 0 },    /* value longer than the record */
        { "\x0e\0\0\0\3\2x\0", 8, 0 },      /* key length -2 */
        { "\x0e\0\0\0\1\2x\1", 8, 0 },      /* header count -1 */
        { "\x0e\0\0\0\1\2x\2", 8, 0 },      /* one header, no bytes */
        { "\x12\0\0\0\1\2x\2\1\1", 10, 0 }, /* header key null */
        { "\x0e\0\0\2\1\2x\0", 8, 0 },      /* offset delta 1 */
        { "\0", 1, 0 },                     /* record of no bytes */
        { "\1", 1, 0 },                     /* record length -1 */
        { "\x80\x80\x80\x80\x80\1", 6, 0 }, /* a varint of six bytes */
        { "\x1c\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\2\0\1\1", 15, 0 }, /* a varlong over 64 bits */
    };
    struct batch_info info;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(judge_raw(1, bad[i].bytes, bad[i].n, &info), KERR_INVALID_RECORD);
        assert_int_equal(info.bad_index, bad[i].index);
    }
    assert_int_equal(judge_raw(1, "\x0e\0\0\0\1\2x\0", 8, &info), KERR_NONE);
    assert_int_equal(judge_raw(1, "\x12\0\0\0\1\2x\2\0\1", 10, &info), KERR_NONE); /* header "" -> null */
}

static void more_records_than_bytes_cost_nothing(void **state)
{
    struct batch_info info;

    (void)state;
    assert_int_equal(judge_raw(INT32_MAX, "\x0e\0\0\0\1\2x\0", 8, &info), KERR_INVALID_RECORD);
    assert_int_equal(info.bad_index, 1);
}

static void damage_behind_a_good_checksum_is_an_invalid_record(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(packing); i++) {
        struct bytebuf b = { 0 };
        struct batch_info info;
        if (!codec_available(packing[i]))
            continue;
        batch_make(50, packing[i], NULL, &b);
        b.n -= 3;
        batch_seal(&b);
        assert_int_equal(judge(&b, &open_rules, &info), KERR_INVALID_RECORD);
        assert_int_equal(info.bad_index, -1);
    }
}

static void a_compressed_batch_cut_between_blocks_is_an_invalid_record(void **state)
{
    struct bytebuf plain = { 0 }, packed = { 0 }, b = { 0 };
    struct batch_info info;

    (void)state;
    if (!codec_available(CODEC_SNAPPY))
        skip();
    batch_make(4000, CODEC_NONE, NULL, &plain); /* two xerial blocks; the first alone is taken */
    assert_int_equal(codec_compress(CODEC_SNAPPY, 0, slice_of(plain.p + BATCH_OVERHEAD, 32768), &packed), 0);
    batch_wrap(4000, CODEC_SNAPPY, packed.p, packed.n, &b);
    assert_int_equal(judge(&b, &open_rules, &info), KERR_INVALID_RECORD);
    assert_true(info.bad_index > 1000);
    bytebuf_done(&plain);
    bytebuf_done(&packed);
}

/* 65 MiB of zeros in one record, as gzip: 64 KiB on the wire. */
static void a_bomb_is_too_large(void **state)
{
    const size_t n = 65 << 20;
    struct bytebuf plain = { 0 }, packed = { 0 }, b = { 0 };
    struct batch_info info;

    (void)state;
    uint8_t *p = bytebuf_extend(&plain, n);
    memset(p, 0, n);
    varint_put(p, (int32_t)n - 5);
    assert_int_equal(codec_compress(CODEC_GZIP, 9, slice_of(plain.p, plain.n), &packed), 0);
    batch_wrap(1, CODEC_GZIP, packed.p, packed.n, &b);
    assert_true(b.n < 100000);
    assert_int_equal(judge(&b, &open_rules, &info), KERR_MESSAGE_TOO_LARGE);
    bytebuf_done(&plain);
    bytebuf_done(&packed);
}

static void create_time_has_to_be_within_the_range(void **state)
{
    static const struct {
        int64_t timestamp, before, after;
        enum kerr err;
    } cases[] = {
        { NOW_MS + 100, INT64_MAX, 100, KERR_NONE },
        { NOW_MS + 101, INT64_MAX, 100, KERR_INVALID_TIMESTAMP },
        { NOW_MS - 100, 100, 100, KERR_NONE },
        { NOW_MS - 101, 100, 100, KERR_INVALID_TIMESTAMP },
        { -1, 100, 100, KERR_NONE }, /* none */
        { 0, INT64_MAX, 0, KERR_NONE },
        { INT64_MAX, INT64_MAX, INT64_MAX, KERR_NONE },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct batch_rules rules = open_rules;
        struct batch_builder builder;
        struct bytebuf b = { 0 };
        struct batch_info info;
        rules.timestamp_before_max_ms = cases[i].before;
        rules.timestamp_after_max_ms = cases[i].after;
        batch_builder_init(&builder);
        batch_builder_add(&builder, NOW_MS, KSTR_NULL, kstr_of("x"), NULL, 0);
        batch_builder_add(&builder, cases[i].timestamp, KSTR_NULL, kstr_of("x"), NULL, 0);
        assert_int_equal(batch_builder_finish(&builder, CODEC_NONE, 0, NULL, 0, &b), 0);
        batch_builder_done(&builder);
        assert_int_equal(batch_validate(b.p, b.n, &rules, &info), cases[i].err);
        assert_int_equal(info.bad_index, cases[i].err == KERR_NONE ? -1 : 1);
        rules.log_append_time = true; /* then nobody asks */
        assert_int_equal(judge(&b, &rules, &info), KERR_NONE);
    }
}

static void a_compacted_topic_needs_keys(void **state)
{
    struct batch_rules rules = open_rules;
    struct batch_builder builder;
    struct bytebuf b = { 0 };
    struct batch_info info;

    (void)state;
    rules.need_key = true;
    batch_builder_init(&builder);
    batch_builder_add(&builder, NOW_MS, kstr_of(""), kstr_of("x"), NULL, 0);
    batch_builder_add(&builder, NOW_MS, KSTR_NULL, kstr_of("x"), NULL, 0);
    assert_int_equal(batch_builder_finish(&builder, CODEC_LZ4, 0, NULL, 0, &b), 0);
    batch_builder_done(&builder);
    assert_int_equal(judge(&b, &rules, &info), KERR_INVALID_RECORD);
    assert_int_equal(info.bad_index, 1);
}

static void all_refused_records_can_be_listed(void **state)
{
    const enum codec codecs[] = { CODEC_NONE, CODEC_GZIP };
    const struct kstr keys[] = { kstr_of("k"), KSTR_NULL, kstr_of("k"), KSTR_NULL };

    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(codecs); c++) {
        struct batch_rules rules = open_rules;
        struct batch_builder builder;
        struct bytebuf b = { 0 };
        struct batch_info info;
        struct batch_refusal found[4];
        rules.need_key = true;
        rules.timestamp_after_max_ms = 5;
        batch_builder_init(&builder);
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            batch_builder_add(&builder, NOW_MS + (i == 2 ? 6 : 5), keys[i], kstr_of("x"), NULL, 0);
        assert_int_equal(batch_builder_finish(&builder, codecs[c], 0, NULL, 0, &b), 0);
        batch_builder_done(&builder);
        assert_int_equal(batch_validate(b.p, b.n, &rules, &info), KERR_INVALID_RECORD);
        assert_int_equal(info.bad_index, 1);
        assert_int_equal(batch_refused(b.p, b.n, &rules, found, ARRAY_LEN(found)), 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(found[i].index, i + 1);
        assert_string_equal(found[0].why, "a compacted topic needs a key in every record");
        assert_string_equal(found[1].why, "the record's timestamp is outside the range the topic allows");
        assert_string_equal(found[2].why, found[0].why);
        assert_int_equal(batch_refused(b.p, b.n, &rules, found, 2), 2);
        assert_int_equal(batch_refused(b.p, b.n, &rules, found, 0), 0);
        bytebuf_done(&b);
    }
}

static void a_record_that_cannot_be_read_is_the_last_of_the_list(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_rules rules = open_rules;
    struct batch_refusal found[4];

    (void)state;
    rules.need_key = true;
    batch_wrap(3, 0, "\x0e\0\0\0\1\2x\0\x7f\0\0\2\1\2x\0\x0e\0\0\4\1\2x\0", 24, &b);
    assert_int_equal(batch_refused(b.p, b.n, &rules, found, ARRAY_LEN(found)), 2);
    assert_int_equal(found[1].index, 1);
    assert_string_equal(found[1].why, "the record's lengths do not fit its bytes");
    bytebuf_done(&b);
}

static void a_wrong_max_timestamp_is_corrected_in_place(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_rules rules = open_rules;
    struct batch_info info;
    struct batch_header h;

    (void)state;
    batch_make(3, CODEC_NONE, NULL, &b);
    put_be64(b.p + BATCH_MAX_TIMESTAMP, 5);
    batch_seal(&b);
    rules.log_append_time = true; /* it will be overwritten anyway */
    assert_int_equal(batch_validate(b.p, b.n, &rules, &info), KERR_NONE);
    assert_int_equal(get_be64(b.p + BATCH_MAX_TIMESTAMP), 5);
    rules.log_append_time = false;
    assert_int_equal(batch_validate(b.p, b.n, &rules, &info), KERR_NONE);
    assert_int_equal(info.h.max_timestamp, NOW_MS + 2);
    assert_int_equal(batch_check(slice_of(b.p, b.n), 1000, &h), 0);
    assert_int_equal(h.max_timestamp, NOW_MS + 2);
    assert_int_equal(h.crc, info.h.crc);
    bytebuf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_batch_tells_what_it_holds),
        cmocka_unit_test(null_values_are_empty_lines),
        cmocka_unit_test(no_batch_at_all_is_an_invalid_record),
        cmocka_unit_test(old_magic_is_an_invalid_record),
        cmocka_unit_test(two_batches_are_an_invalid_record),
        cmocka_unit_test(a_batch_cut_at_any_byte_is_corrupt),
        cmocka_unit_test(a_length_that_lies_is_corrupt),
        cmocka_unit_test(a_wrong_checksum_is_corrupt),
        cmocka_unit_test(zstd_needs_a_new_enough_request),
        cmocka_unit_test(an_unknown_codec_is_unsupported),
        cmocka_unit_test(size_is_judged_against_topic_and_segment),
        cmocka_unit_test(header_fields_that_contradict_are_invalid_records),
        cmocka_unit_test(a_producer_id_needs_epoch_and_sequence),
        cmocka_unit_test(klog_itself_may_write_control_batches),
        cmocka_unit_test(records_that_do_not_fit_their_bytes_are_invalid),
        cmocka_unit_test(more_records_than_bytes_cost_nothing),
        cmocka_unit_test(damage_behind_a_good_checksum_is_an_invalid_record),
        cmocka_unit_test(a_compressed_batch_cut_between_blocks_is_an_invalid_record),
        cmocka_unit_test(a_bomb_is_too_large),
        cmocka_unit_test(create_time_has_to_be_within_the_range),
        cmocka_unit_test(a_compacted_topic_needs_keys),
        cmocka_unit_test(all_refused_records_can_be_listed),
        cmocka_unit_test(a_record_that_cannot_be_read_is_the_last_of_the_list),
        cmocka_unit_test(a_wrong_max_timestamp_is_corrected_in_place),
    };
    return RUN(tests);
}
