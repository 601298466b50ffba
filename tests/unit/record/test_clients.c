/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of 40 records as real clients sent them (librdkafka 2.0.2, kafka-python 2.0.2), from the fuzz
 * corpus: they are taken, and read back as what went in.
 */
#include "batches.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/base/fsutil.h"
#include "lib/base/mem.h"

enum { RECORDS = 40 };

static void load(const char *name, struct bytebuf *ret)
{
    const char *srcdir = getenv("srcdir");
    CLEANUP(freep)
    char *path = xasprintf("%s/tests/fuzz/corpus/batch/%s", srcdir != NULL ? srcdir : ".", name);

    assert_int_equal(fs_read_file(AT_FDCWD, path, 1 << 20, ret), 0);
}

static void expect_record(struct record_iter *it, int i, bool librdkafka)
{
    struct record r;
    char want[64];

    assert_int_equal(record_iter_next(it, &r), 1);
    assert_int_equal(r.offset, i);
    snprintf(want, sizeof want, "2026-01-02 host kernel: event number %d%s", i,
             librdkafka ? " of forty" : "");
    assert_true(librdkafka && i == 5 ? kstr_is_null(r.value) : kstr_eqz(r.value, want));
    snprintf(want, sizeof want, librdkafka ? "key%d" : "k", i % 7);
    assert_true(librdkafka && i % 7 == 0 ? kstr_is_null(r.key) : kstr_eqz(r.key, want));
    assert_int_equal(r.n_headers, librdkafka && i % 3 == 0 ? 2 : 0);
}

static void taken_and_read_back(const char *name, enum codec codec, bool librdkafka)
{
    static const struct batch_rules rules = {
        .max_message_bytes = 1 << 20,
        .segment_bytes = 1 << 30,
        .now_ms = 1800000000000,
        .timestamp_before_max_ms = INT64_MAX,
        .timestamp_after_max_ms = INT64_MAX,
        .decompressed_max = 1 << 20,
        .zstd_allowed = true,
    };
    struct bytebuf b = { 0 };
    struct batch_info info;
    struct record_iter it;
    struct record r;

    if (!codec_available(codec))
        skip();
    load(name, &b);
    assert_int_equal(batch_validate(b.p, b.n, &rules, &info), KERR_NONE);
    assert_int_equal(info.h.count, RECORDS);
    assert_int_equal(batch_codec(&info.h), codec);
    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, slice_of(b.p, b.n), 1 << 20), 0);
    for (int i = 0; i < RECORDS; i++)
        expect_record(&it, i, librdkafka);
    assert_int_equal(record_iter_next(&it, &r), 0);
    record_iter_done(&it);
    bytebuf_done(&b);
}

#define CLIENT(test, file, codec, librdkafka)         \
    static void test(void **state)                    \
    {                                                 \
        (void)state;                                  \
        taken_and_read_back(file, codec, librdkafka); \
    }
CLIENT(librdkafka_plain, "librdkafka-none", CODEC_NONE, true)
CLIENT(librdkafka_gzip, "librdkafka-gzip", CODEC_GZIP, true)
CLIENT(librdkafka_snappy_raw, "librdkafka-snappy", CODEC_SNAPPY, true)
CLIENT(librdkafka_lz4_idempotent, "librdkafka-lz4", CODEC_LZ4, true)
CLIENT(librdkafka_zstd, "librdkafka-zstd", CODEC_ZSTD, true)
CLIENT(kafka_python_gzip, "kafka-python-gzip", CODEC_GZIP, false)
CLIENT(kafka_python_snappy_xerial, "kafka-python-snappy", CODEC_SNAPPY, false)
CLIENT(kafka_python_lz4, "kafka-python-lz4", CODEC_LZ4, false)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(librdkafka_plain),
        cmocka_unit_test(librdkafka_gzip),
        cmocka_unit_test(librdkafka_snappy_raw),
        cmocka_unit_test(librdkafka_lz4_idempotent),
        cmocka_unit_test(librdkafka_zstd),
        cmocka_unit_test(kafka_python_gzip),
        cmocka_unit_test(kafka_python_snappy_xerial),
        cmocka_unit_test(kafka_python_lz4),
    };
    return RUN(tests);
}
