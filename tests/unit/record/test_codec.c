/* SPDX-License-Identifier: Apache-2.0 */
/* Every codec: what goes in comes back; damaged, cut and swollen input is told apart and nothing more is
 * reserved. */
#include "unit.h"

#include <lz4frame.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef HAVE_SNAPPY
#include <snappy-c.h>
#endif

#include "lib/base/mem.h"
#include "lib/record/codec.h"

static const enum codec packing[] = { CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };

/* Text that packs to about a third. */
static void sample(size_t n, struct bytebuf *ret)
{
    uint32_t x = 1;

    while (ret->n < n) {
        x = x * 1664525 + 1013904223;
        bytebuf_printf(ret, "2026-01-02 host%u kernel: event %u of %u\n", x >> 30, x >> 8, x >> 24);
    }
    ret->n = n;
}

static void unpacks_to(enum codec c, struct slice in, struct slice want)
{
    struct bytebuf out = { 0 };

    bytebuf_adds(&out, "before");
    assert_int_equal(codec_decompress(c, in, want.n, &out), 0);
    assert_int_equal(out.n, want.n + 6);
    assert_memory_equal(out.p, "before", 6);
    if (want.n > 0)
        assert_memory_equal(out.p + 6, want.p, want.n);
    if (want.n > 0) { /* one byte less is refused, and leaves what was there */
        out.n = 6;
        assert_int_equal(codec_decompress(c, in, want.n - 1, &out), -EFBIG);
        assert_int_equal(out.n, 6);
    }
    bytebuf_done(&out);
}

static void each_codec_gives_back_what_went_in(void **state)
{
    static const size_t sizes[] = { 0, 1, 100, 32 * 1024, 64 * 1024 + 1, 3 << 20 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(packing); i++) {
        if (!codec_available(packing[i]))
            continue;
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            struct bytebuf plain = { 0 }, packed = { 0 };
            sample(sizes[k], &plain);
            assert_int_equal(codec_compress(packing[i], 0, slice_of(plain.p, plain.n), &packed), 0);
            unpacks_to(packing[i], slice_of(packed.p, packed.n), slice_of(plain.p, plain.n));
            bytebuf_done(&plain);
            bytebuf_done(&packed);
        }
    }
}

static void none_is_a_copy_with_the_same_cap(void **state)
{
    struct bytebuf out = { 0 };

    (void)state;
    assert_int_equal(codec_decompress(CODEC_NONE, slice_of("abc", 3), 3, &out), 0);
    assert_memory_equal(out.p, "abc", 3);
    assert_int_equal(codec_decompress(CODEC_NONE, slice_of("abc", 3), 2, &out), -EFBIG);
    assert_int_equal(out.n, 3);
    bytebuf_done(&out);
}

static void names_and_numbers_agree(void **state)
{
    enum codec c;

    (void)state;
    assert_true(codec_parse("zstd", &c));
    assert_int_equal(c, 4);
    assert_true(codec_parse("none", &c));
    assert_int_equal(c, 0);
    assert_false(codec_parse("brotli", &c));
    assert_string_equal(codec_name(CODEC_LZ4), "lz4");
    assert_string_equal(codec_name((enum codec)7), "unknown");
    assert_false(codec_available((enum codec)5));
}

static void a_level_is_honoured(void **state)
{
    struct bytebuf plain = { 0 }, fast = { 0 }, best = { 0 };

    (void)state;
    sample(200000, &plain);
    assert_int_equal(codec_compress(CODEC_GZIP, 1, slice_of(plain.p, plain.n), &fast), 0);
    assert_int_equal(codec_compress(CODEC_GZIP, 9, slice_of(plain.p, plain.n), &best), 0);
    assert_true(best.n < fast.n);
    unpacks_to(CODEC_GZIP, slice_of(best.p, best.n), slice_of(plain.p, plain.n));
    bytebuf_done(&plain);
    bytebuf_done(&fast);
    bytebuf_done(&best);
}

/* A copy of exactly n bytes, so that a read past it is seen by the address sanitizer. */
static void cut_input_is_damaged(enum codec c, struct slice packed, size_t plain_n)
{
    struct bytebuf out = { 0 };

    for (size_t n = 0; n < packed.n; n++) {
        uint8_t *cut = xmalloc(n > 0 ? n : 1);
        if (n > 0)
            memcpy(cut, packed.p, n);
        out.n = 0;
        int rc = codec_decompress(c, slice_of(cut, n), plain_n, &out);
        /* xerial has no end mark: between two blocks a cut cannot be seen here, only by the record count */
        bool unseen = c == CODEC_SNAPPY && rc == 0 && out.n < plain_n;
        if (rc != -EBADMSG && !unseen)
            fail_msg("%s cut at %zu of %zu gave %d", codec_name(c), n, packed.n, rc);
        free(cut);
    }
    bytebuf_done(&out);
}

static void input_cut_at_any_byte_is_damaged(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(packing); i++) {
        struct bytebuf plain = { 0 }, packed = { 0 };
        if (!codec_available(packing[i]))
            continue;
        sample(1500, &plain);
        assert_int_equal(codec_compress(packing[i], 0, slice_of(plain.p, plain.n), &packed), 0);
        cut_input_is_damaged(packing[i], slice_of(packed.p, packed.n), plain.n);
        bytebuf_done(&plain);
        bytebuf_done(&packed);
    }
}

static void bytes_after_the_end_are_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(packing); i++) {
        struct bytebuf packed = { 0 }, out = { 0 };
        if (!codec_available(packing[i]))
            continue;
        assert_int_equal(codec_compress(packing[i], 0, slice_of("hello", 5), &packed), 0);
        bytebuf_adds(&packed, "?");
        assert_int_equal(codec_decompress(packing[i], slice_of(packed.p, packed.n), 1000, &out), -EBADMSG);
        bytebuf_done(&packed);
        bytebuf_done(&out);
    }
}

static void damage_never_reads_or_writes_outside(void **state)
{
    uint32_t x = 7;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(packing); i++) {
        struct bytebuf plain = { 0 }, packed = { 0 }, out = { 0 };
        if (!codec_available(packing[i]))
            continue;
        sample(3000, &plain);
        assert_int_equal(codec_compress(packing[i], 0, slice_of(plain.p, plain.n), &packed), 0);
        for (int k = 0; k < 2000; k++) {
            x = x * 1664525 + 1013904223;
            uint8_t *p = packed.p + (x >> 4) % packed.n, was = *p;
            *p = (uint8_t)(x >> 24);
            out.n = 0;
            int rc = codec_decompress(packing[i], slice_of(packed.p, packed.n), 4096, &out);
            assert_true(rc == 0 || rc == -EBADMSG || rc == -EFBIG);
            assert_true(out.n <= 4096 && (rc == 0 || out.n == 0));
            *p = was;
        }
        bytebuf_done(&plain);
        bytebuf_done(&packed);
        bytebuf_done(&out);
    }
}

/* 64 MiB of zeros in a few KiB: refused at the cap, and no more memory than about twice the cap is ever
 * reserved. */
static void a_bomb_is_stopped_at_the_cap(void **state)
{
    uint8_t *zeros = xcalloc(64, 1 << 20);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(packing); i++) {
        struct bytebuf packed = { 0 }, out = { 0 };
        if (!codec_available(packing[i]))
            continue;
        assert_int_equal(codec_compress(packing[i], 0, slice_of(zeros, 64 << 20), &packed), 0);
        assert_int_equal(codec_decompress(packing[i], slice_of(packed.p, packed.n), 1 << 20, &out), -EFBIG);
        assert_int_equal(out.n, 0);
        assert_true(out.cap <= 4 << 20);
        bytebuf_done(&packed);
        bytebuf_done(&out);
    }
    free(zeros);
}

static void several_gzip_members_follow_each_other(void **state)
{
    struct bytebuf two = { 0 };

    (void)state;
    assert_int_equal(codec_compress(CODEC_GZIP, 0, slice_of("one ", 4), &two), 0);
    assert_int_equal(codec_compress(CODEC_GZIP, 0, slice_of("two", 3), &two), 0);
    unpacks_to(CODEC_GZIP, slice_of(two.p, two.n), slice_of("one two", 7));
    bytebuf_done(&two);
}

static void gzip_with_a_wrong_checksum_is_damaged(void **state)
{
    struct bytebuf packed = { 0 }, out = { 0 };

    (void)state;
    assert_int_equal(codec_compress(CODEC_GZIP, 0, slice_of("hello", 5), &packed), 0);
    packed.p[packed.n - 8] ^= 1;
    assert_int_equal(codec_decompress(CODEC_GZIP, slice_of(packed.p, packed.n), 100, &out), -EBADMSG);
    bytebuf_done(&packed);
    bytebuf_done(&out);
}

#ifdef HAVE_SNAPPY
static void a_raw_snappy_block_is_taken_as_librdkafka_writes_it(void **state)
{
    struct bytebuf plain = { 0 };
    char packed[8192];
    size_t n = sizeof packed;

    (void)state;
    sample(5000, &plain);
    assert_int_equal(snappy_compress((char *)plain.p, plain.n, packed, &n), SNAPPY_OK);
    unpacks_to(CODEC_SNAPPY, slice_of(packed, n), slice_of(plain.p, plain.n));
    bytebuf_done(&plain);
}

static void snappy_is_written_as_xerial_with_big_endian_numbers(void **state)
{
    static const uint8_t want[] = { 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0,   1,
                                    0,    0,   0,   1,   0,   0,   0,   4, 2, 4, 'h', 'i' };
    struct bytebuf packed = { 0 };

    (void)state;
    assert_int_equal(codec_compress(CODEC_SNAPPY, 0, slice_of("hi", 2), &packed), 0);
    assert_int_equal(packed.n, sizeof want);
    assert_memory_equal(packed.p, want, sizeof want);

    /* the numbers of the header are not judged: some writers had them little-endian */
    packed.p[8] = 1;
    packed.p[11] = 0;
    unpacks_to(CODEC_SNAPPY, slice_of(packed.p, packed.n), slice_of("hi", 2));
    bytebuf_done(&packed);
}

static void a_snappy_block_that_claims_more_than_it_can_hold_reserves_nothing(void **state)
{
    static const uint8_t claim[] = { 0xff, 0xff, 0xff, 0x1f, 0x00, 'x' }; /* 64 MiB in 6 bytes */
    struct bytebuf out = { 0 };

    (void)state;
    assert_int_equal(codec_decompress(CODEC_SNAPPY, slice_of(claim, sizeof claim), 1 << 30, &out), -EBADMSG);
    assert_int_equal(out.cap, 0);
}
#endif

static void lz4_frames_of_any_kind_are_taken(void **state)
{
    static const LZ4F_preferences_t kinds[] = {
        { .frameInfo = { .blockMode = LZ4F_blockLinked, .blockSizeID = LZ4F_max64KB } },
        { .frameInfo = { .blockMode = LZ4F_blockLinked,
                         .blockSizeID = LZ4F_max4MB,
                         .contentChecksumFlag = LZ4F_contentChecksumEnabled } },
        { .frameInfo = { .blockMode = LZ4F_blockIndependent,
                         .contentSize = 300000,
                         .blockChecksumFlag = LZ4F_blockChecksumEnabled } },
    };
    struct bytebuf plain = { 0 };

    (void)state;
    sample(300000, &plain);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct bytebuf packed = { 0 };
        size_t room = LZ4F_compressFrameBound(plain.n, &kinds[i]);
        size_t n = LZ4F_compressFrame(bytebuf_extend(&packed, room), room, plain.p, plain.n, &kinds[i]);
        assert_false(LZ4F_isError(n));
        unpacks_to(CODEC_LZ4, slice_of(packed.p, n), slice_of(plain.p, plain.n));
        bytebuf_done(&packed);
    }
    bytebuf_done(&plain);
}

static void lz4_is_written_in_independent_blocks_of_64_kib(void **state)
{
    struct bytebuf plain = { 0 }, packed = { 0 };

    (void)state;
    sample(200000, &plain);
    assert_int_equal(codec_compress(CODEC_LZ4, 0, slice_of(plain.p, plain.n), &packed), 0);
    assert_memory_equal(packed.p, "\x04\x22\x4d\x18", 4);
    assert_int_equal(packed.p[4], 0x60); /* version 01, independent, no checksums, no content size */
    assert_int_equal(packed.p[5], 0x40); /* 64 KiB */
    bytebuf_done(&plain);
    bytebuf_done(&packed);
}

#ifdef HAVE_ZSTD
static void zstd_without_content_size_and_in_several_frames_is_taken(void **state)
{
    struct bytebuf plain = { 0 }, packed = { 0 };
    ZSTD_CCtx *ctx = ZSTD_createCCtx();

    (void)state;
    sample(700000, &plain);
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 0);
    for (size_t at = 0; at < plain.n; at += 350000) {
        size_t room = ZSTD_compressBound(350000);
        size_t n = ZSTD_compress2(ctx, bytebuf_room(&packed, room), room, plain.p + at, 350000);
        assert_false(ZSTD_isError(n));
        packed.n += n;
    }
    unpacks_to(CODEC_ZSTD, slice_of(packed.p, packed.n), slice_of(plain.p, plain.n));
    ZSTD_freeCCtx(ctx);
    bytebuf_done(&plain);
    bytebuf_done(&packed);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_codec_gives_back_what_went_in),
        cmocka_unit_test(none_is_a_copy_with_the_same_cap),
        cmocka_unit_test(names_and_numbers_agree),
        cmocka_unit_test(a_level_is_honoured),
        cmocka_unit_test(input_cut_at_any_byte_is_damaged),
        cmocka_unit_test(bytes_after_the_end_are_damage),
        cmocka_unit_test(damage_never_reads_or_writes_outside),
        cmocka_unit_test(a_bomb_is_stopped_at_the_cap),
        cmocka_unit_test(several_gzip_members_follow_each_other),
        cmocka_unit_test(gzip_with_a_wrong_checksum_is_damaged),
#ifdef HAVE_SNAPPY
        cmocka_unit_test(a_raw_snappy_block_is_taken_as_librdkafka_writes_it),
        cmocka_unit_test(snappy_is_written_as_xerial_with_big_endian_numbers),
        cmocka_unit_test(a_snappy_block_that_claims_more_than_it_can_hold_reserves_nothing),
#endif
        cmocka_unit_test(lz4_frames_of_any_kind_are_taken),
        cmocka_unit_test(lz4_is_written_in_independent_blocks_of_64_kib),
#ifdef HAVE_ZSTD
        cmocka_unit_test(zstd_without_content_size_and_in_several_frames_is_taken),
#endif
    };
    return RUN(tests);
}
