/* SPDX-License-Identifier: Apache-2.0 */
/* Header, checksum, builder and iterator: exact bytes, and nothing read past what is there. */
#include "batches.h"

#include "lib/base/mem.h"

/* One batch as kafka-python 2.0.2 sends it: key "k", value "v", header ("a", "b"), timestamp 1700000000000.
 */
static const uint8_t one_record[] = {
    0,    0,    0,    0,    0,    0,    0,    0,    /* base offset */
    0,    0,    0,    62,                           /* length */
    0,    0,    0,    0,                            /* partition leader epoch */
    2,                                              /* magic */
    0xb8, 0x3f, 0x10, 0x61,                         /* crc */
    0,    0,                                        /* attributes */
    0,    0,    0,    0,                            /* last offset delta */
    0,    0,    0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, /* base timestamp */
    0,    0,    0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, /* max timestamp */
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,   0,
    0,    1,    24,   0,    0,    0,    2,    'k',  2,    'v',  2,    2,    'a',  2,    'b',
};

static void the_builder_writes_what_clients_write(void **state)
{
    const struct record_header h = { kstr_of("a"), kstr_of("b") };
    struct batch_builder b;
    struct bytebuf out = { 0 };

    (void)state;
    batch_builder_init(&b);
    batch_builder_add(&b, 1700000000000, kstr_of("k"), kstr_of("v"), &h, 1);
    assert_int_equal(batch_builder_size(&b), sizeof one_record);
    assert_int_equal(batch_builder_finish(&b, CODEC_NONE, 0, NULL, 0, &out), 0);
    assert_int_equal(out.n, sizeof one_record);
    batch_set_leader_epoch(out.p, 0); /* klog writes -1 */
    assert_memory_equal(out.p, one_record, sizeof one_record);
    assert_int_equal(batch_builder_size(&b), BATCH_OVERHEAD);
    batch_builder_done(&b);
    bytebuf_done(&out);
}

static void a_header_reads_back_as_it_was_written(void **state)
{
    const struct batch_header h = {
        .base_offset = 0x0102030405060708,
        .length = 0x11223344,
        .leader_epoch = 5,
        .magic = 2,
        .crc = 0xdeadbeef,
        .attributes = 0x1234,
        .last_offset_delta = 6,
        .base_timestamp = 7,
        .max_timestamp = -8,
        .producer_id = 9,
        .producer_epoch = 10,
        .base_sequence = 11,
        .count = 12,
    };
    uint8_t p[BATCH_OVERHEAD];
    struct batch_header back = { 0 };

    (void)state;
    batch_header_write(p, &h);
    assert_memory_equal(p, "\1\2\3\4\5\6\7\x08\x11\x22\x33\x44", 12);
    batch_header_read(p, &back);
    assert_int_equal(back.base_offset, h.base_offset);
    assert_int_equal(back.length, h.length);
    assert_int_equal(back.leader_epoch, 5);
    assert_int_equal(back.magic, 2);
    assert_int_equal(back.crc, 0xdeadbeef);
    assert_int_equal(back.attributes, 0x1234);
    assert_int_equal(back.last_offset_delta, 6);
    assert_int_equal(back.base_timestamp, 7);
    assert_int_equal(back.max_timestamp, -8);
    assert_int_equal(back.producer_id, 9);
    assert_int_equal(back.producer_epoch, 10);
    assert_int_equal(back.base_sequence, 11);
    assert_int_equal(back.count, 12);
}

static void sequences_wrap_to_zero(void **state)
{
    (void)state;
    assert_int_equal(batch_sequence_add(5, 3), 8);
    assert_int_equal(batch_sequence_add(INT32_MAX, 1), 0);
    assert_int_equal(batch_sequence_add(INT32_MAX - 1, 5), 3);
}

static void check_wants_the_whole_batch(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_header h;

    (void)state;
    batch_make(3, CODEC_NONE, NULL, &b);
    for (size_t n = 0; n < b.n; n++) {
        uint8_t *cut = xmalloc(n + 1);
        memcpy(cut, b.p, n);
        h.length = -1;
        assert_int_equal(batch_check(slice_of(cut, n), 1000, &h), -EAGAIN);
        assert_int_equal(h.length, n < 12 ? -1 : (int)b.n - 12);
        free(cut);
    }
    bytebuf_adds(&b, "the next one");
    assert_int_equal(batch_check(slice_of(b.p, b.n), 1000, &h), 0);
    assert_int_equal(batch_size(&h), b.n - 12);
    assert_int_equal(h.count, 3);
    bytebuf_done(&b);
}

static void check_sees_any_flipped_bit(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_header h;

    (void)state;
    batch_make(2, CODEC_NONE, NULL, &b);
    for (size_t i = BATCH_MAGIC; i < b.n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            b.p[i] ^= (uint8_t)(1 << bit);
            assert_int_equal(batch_check(slice_of(b.p, b.n), 1000, &h), -EBADMSG);
            b.p[i] ^= (uint8_t)(1 << bit);
        }
    }
    bytebuf_done(&b);
}

static void check_bounds_the_length(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_header h;

    (void)state;
    batch_make(1, CODEC_NONE, NULL, &b);
    assert_int_equal(batch_check(slice_of(b.p, b.n), (int64_t)b.n, &h), 0);
    assert_int_equal(batch_check(slice_of(b.p, b.n), (int64_t)b.n - 1, &h), -EBADMSG);
    put_be32(b.p + BATCH_LENGTH, 48);
    assert_int_equal(batch_check(slice_of(b.p, b.n), 1000, &h), -EBADMSG);
    put_be32(b.p + BATCH_LENGTH, 0xffffffff);
    assert_int_equal(batch_check(slice_of(b.p, 12), 1000, &h), -EBADMSG);
    bytebuf_done(&b);
}

static void offset_and_epoch_lie_outside_the_checksum(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_header h;

    (void)state;
    batch_make(2, CODEC_GZIP, NULL, &b);
    batch_set_base_offset(b.p, 1234567890123);
    batch_set_leader_epoch(b.p, 77);
    assert_int_equal(batch_check(slice_of(b.p, b.n), 1000, &h), 0);
    assert_int_equal(h.base_offset, 1234567890123);
    assert_int_equal(batch_last_offset(&h), 1234567890124);
    assert_int_equal(h.leader_epoch, 77);
    bytebuf_done(&b);
}

static void log_append_time_reaches_every_record(void **state)
{
    struct bytebuf b = { 0 };
    struct batch_header h;
    struct record_iter it;
    struct record r;

    (void)state;
    batch_make(3, CODEC_NONE, NULL, &b);
    batch_set_log_append_time(b.p, b.n, 4242);
    assert_int_equal(batch_check(slice_of(b.p, b.n), 1000, &h), 0);
    assert_int_equal(h.max_timestamp, 4242);
    assert_int_equal(h.attributes, BATCH_ATTR_LOG_APPEND_TIME);
    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, slice_of(b.p, b.n), 1000), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(record_iter_next(&it, &r), 1);
        assert_int_equal(r.timestamp, 4242);
    }
    record_iter_done(&it);
    bytebuf_done(&b);
}

static void iter_expects(struct record_iter *it, int i, int64_t base_offset)
{
    struct record r;
    struct kstr key, value;
    char want[32];

    assert_int_equal(record_iter_next(it, &r), 1);
    assert_int_equal(r.offset, base_offset + i);
    assert_int_equal(r.timestamp, NOW_MS + i);
    snprintf(want, sizeof want, "k%d", i);
    assert_true(kstr_eqz(r.key, want));
    snprintf(want, sizeof want, "value %d", i);
    assert_true(kstr_eqz(r.value, want));
    assert_int_equal(r.n_headers, i % 2 == 0);
    if (r.n_headers == 1) {
        assert_int_equal(record_header_next(&r.headers, &key, &value), 1);
        assert_true(kstr_eqz(key, "h"));
        assert_true(i % 4 == 0 ? kstr_is_null(value) : kstr_eqz(value, "x"));
    }
    assert_int_equal(record_header_next(&r.headers, &key, &value), 0);
}

static void records_come_back_from_every_codec(void **state)
{
    struct record_iter it;
    struct record r;

    (void)state;
    record_iter_init(&it);
    for (enum codec c = CODEC_NONE; c <= CODEC_ZSTD; c++) {
        struct bytebuf b = { 0 };
        if (!codec_available(c))
            continue;
        batch_make(300, c, NULL, &b);
        batch_set_base_offset(b.p, 1000);
        assert_int_equal(record_iter_start(&it, slice_of(b.p, b.n), 1 << 20), 0);
        for (int i = 0; i < 300; i++)
            iter_expects(&it, i, 1000);
        assert_int_equal(record_iter_next(&it, &r), 0);
        assert_int_equal(record_iter_next(&it, &r), 0);
        bytebuf_done(&b);
    }
    record_iter_done(&it);
}

static void null_and_empty_are_not_the_same(void **state)
{
    const struct record_header h = { kstr_of(""), kstr_of("") };
    struct batch_builder b;
    struct bytebuf out = { 0 };
    struct record_iter it;
    struct record r;
    struct kstr key, value;

    (void)state;
    batch_builder_init(&b);
    batch_builder_add(&b, NOW_MS, KSTR_NULL, kstr_of(""), NULL, 0);
    batch_builder_add(&b, NOW_MS - 1, kstr_of(""), KSTR_NULL, &h, 1);
    assert_int_equal(batch_builder_finish(&b, CODEC_NONE, 0, NULL, 0, &out), 0);
    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, slice_of(out.p, out.n), 1000), 0);
    assert_int_equal(record_iter_next(&it, &r), 1);
    assert_int_equal(r.key.n, -1);
    assert_int_equal(r.value.n, 0);
    assert_int_equal(record_iter_next(&it, &r), 1);
    assert_int_equal(r.key.n, 0);
    assert_int_equal(r.value.n, -1);
    assert_int_equal(r.timestamp, NOW_MS - 1);
    assert_int_equal(record_header_next(&r.headers, &key, &value), 1);
    assert_int_equal(key.n, 0);
    assert_int_equal(value.n, 0);
    assert_int_equal(it.h.max_timestamp, NOW_MS);
    record_iter_done(&it);
    batch_builder_done(&b);
    bytebuf_done(&out);
}

static void a_producer_stands_in_the_header(void **state)
{
    const struct batch_producer producer = {
        .id = 9, .epoch = 3, .base_sequence = 70, .transactional = true
    };
    struct bytebuf b = { 0 };
    struct batch_header h;

    (void)state;
    batch_make(2, CODEC_LZ4, &producer, &b);
    assert_int_equal(batch_check(slice_of(b.p, b.n), 1000, &h), 0);
    assert_int_equal(h.producer_id, 9);
    assert_int_equal(h.producer_epoch, 3);
    assert_int_equal(h.base_sequence, 70);
    assert_true(batch_is_transactional(&h));
    assert_false(batch_is_control(&h));
    assert_int_equal(batch_codec(&h), CODEC_LZ4);
    bytebuf_done(&b);
}

static void iterating_a_cut_batch_ends_with_damage(void **state)
{
    struct bytebuf b = { 0 };
    struct record_iter it;
    struct record r;

    (void)state;
    batch_make(4, CODEC_NONE, NULL, &b);
    record_iter_init(&it);
    for (size_t n = BATCH_OVERHEAD; n < b.n; n++) {
        uint8_t *cut = xmalloc(n);
        memcpy(cut, b.p, n);
        assert_int_equal(record_iter_start(&it, slice_of(cut, n), 1000), -EBADMSG);
        put_be32(cut + BATCH_LENGTH, (uint32_t)n - 12); /* a length that lies */
        assert_int_equal(record_iter_start(&it, slice_of(cut, n), 1000), 0);
        int rc;
        while ((rc = record_iter_next(&it, &r)) == 1)
            continue;
        assert_int_equal(rc, -EBADMSG);
        free(cut);
    }
    record_iter_done(&it);
    bytebuf_done(&b);
}

static void a_batch_emptied_by_compaction_has_no_record(void **state)
{
    struct bytebuf b = { 0 };
    struct record_iter it;
    struct record r;

    (void)state;
    batch_wrap(0, CODEC_ZSTD, "", 0, &b);
    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, slice_of(b.p, b.n), 0), 0);
    assert_int_equal(record_iter_next(&it, &r), 0);
    record_iter_done(&it);
    bytebuf_done(&b);
}

static void plain_bytes_over_the_cap_are_refused(void **state)
{
    struct bytebuf b = { 0 };
    struct record_iter it;
    struct record r;

    (void)state;
    batch_make(100, CODEC_GZIP, NULL, &b);
    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, slice_of(b.p, b.n), 100), -EFBIG);
    assert_int_equal(record_iter_next(&it, &r), 0);
    record_iter_done(&it);
    bytebuf_done(&b);
}

/* ---- packed anew ---- */

static void packing_anew_changes_only_the_codec(void **state)
{
    (void)state;
    const struct batch_producer who = { .id = 77, .epoch = 3, .base_sequence = 1000 };
    CLEANUP(bytebuf_done) struct bytebuf plain = { 0 };

    batch_make(50, CODEC_NONE, &who, &plain);
    put_be64(plain.p, 12345); /* outside the checksum, kept as it is */
    for (int from = CODEC_NONE; from <= CODEC_ZSTD; from++) {
        CLEANUP(bytebuf_done) struct bytebuf sent = { 0 };
        if (!codec_available((enum codec)from))
            continue;
        batch_make(50, (enum codec)from, &who, &sent);
        put_be64(sent.p, 12345);
        for (int to = CODEC_NONE; to <= CODEC_ZSTD; to++) {
            CLEANUP(bytebuf_done) struct bytebuf packed = { 0 }, back = { 0 };
            struct batch_header h;
            if (!codec_available((enum codec)to))
                continue;
            assert_int_equal(batch_recompress(slice_of(sent.p, sent.n), (enum codec)to, 0, 1 << 20, &packed), 0);
            assert_int_equal(batch_check(slice_of(packed.p, packed.n), 1 << 20, &h), 0);
            assert_int_equal(batch_codec(&h), to);
            assert_int_equal(batch_recompress(slice_of(packed.p, packed.n), CODEC_NONE, 0, 1 << 20, &back), 0);
            assert_int_equal(back.n, plain.n);
            assert_memory_equal(back.p, plain.p, plain.n);
        }
    }
}

static void packing_anew_has_a_cap(void **state)
{
    (void)state;
    CLEANUP(bytebuf_done) struct bytebuf sent = { 0 }, packed = { 0 };

    batch_make(1000, CODEC_LZ4, NULL, &sent);
    bytebuf_adds(&packed, "before");
    assert_int_equal(batch_recompress(slice_of(sent.p, sent.n), CODEC_GZIP, 0, 1000, &packed), -EFBIG);
    assert_int_equal(packed.n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_anew_changes_only_the_codec),
        cmocka_unit_test(packing_anew_has_a_cap),
        cmocka_unit_test(the_builder_writes_what_clients_write),
        cmocka_unit_test(a_header_reads_back_as_it_was_written),
        cmocka_unit_test(sequences_wrap_to_zero),
        cmocka_unit_test(check_wants_the_whole_batch),
        cmocka_unit_test(check_sees_any_flipped_bit),
        cmocka_unit_test(check_bounds_the_length),
        cmocka_unit_test(offset_and_epoch_lie_outside_the_checksum),
        cmocka_unit_test(log_append_time_reaches_every_record),
        cmocka_unit_test(records_come_back_from_every_codec),
        cmocka_unit_test(null_and_empty_are_not_the_same),
        cmocka_unit_test(a_producer_stands_in_the_header),
        cmocka_unit_test(iterating_a_cut_batch_ends_with_damage),
        cmocka_unit_test(a_batch_emptied_by_compaction_has_no_record),
        cmocka_unit_test(plain_bytes_over_the_cap_are_refused),
    };
    return RUN(tests);
}
