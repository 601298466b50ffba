/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of every file, as docs/DISK-FORMAT.md has them, and what is not taken for one. */
#include "storetest.h"

#include "lib/base/crc32c.h"
#include "lib/store/metafiles.h"
#include "lib/store/start_mark.h"

static void assert_field(const uint8_t *p, int at, int width, int64_t want)
{
    int64_t got = width == 2   ? (int64_t)get_be16(p + at)
                  : width == 4 ? (int64_t)get_be32(p + at)
                               : (int64_t)get_be64(p + at);
    if (got != want)
        fail_msg("at %d: %lld, not %lld", at, (long long)got, (long long)want);
}

struct field {
    int at, width;
    int64_t value;
};

static void assert_fields(const uint8_t *p, const struct field *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_field(p, f[i].at, f[i].width, f[i].value);
}

/* A file with a bit that differs, wherever it is, is none, and neither is one that is cut, wherever that is. */
static void assert_taken_whole_only(uint8_t *p, size_t n, uint8_t bit, bool (*is_taken)(const uint8_t *p, size_t n))
{
    assert_true(is_taken(p, n));
    for (size_t i = 0; i < n; i++) {
        p[i] ^= bit;
        assert_false(is_taken(p, n));
        p[i] ^= bit;
        assert_false(is_taken(p, i));
    }
}

/* magic, version, CRC of everything after byte 16 */
static void assert_head(const uint8_t *p, size_t n, const char *magic, int version)
{
    assert_memory_equal(p, magic, 8);
    assert_field(p, 8, 4, version);
    assert_field(p, 12, 4, crc32c(0, p + 16, n - 16));
}

static const struct segment_sum some_sum = {
    .size = 1001,
    .end_offset = 1002,
    .text_bytes = 1003,
    .max_timestamp = 1004,
    .max_timestamp_offset = 1005,
    .first_timestamp = 1006,
    .since_index = 1007,
    .indexed_timestamp = 1008,
    .index_n = 9,
    .time_n = 10,
    .text_n = 11,
    .heads = 12,
    .all_heads = 13,
};

static bool is_checkpoint(const uint8_t *p, size_t n)
{
    struct checkpoint back;
    return checkpoint_decode(slice_of(p, n), &back);
}

static void the_checkpoint(void **state)
{
    const struct checkpoint c = {
        .start_offset = 21,
        .hw = 22,
        .flushed = { .segment = 23, .text_base = 24, .sum = some_sum },
        .producers_offset = 25,
        .producers_empty = true,
        .identity = 26,
        .sealed = 27,
    };
    static const struct field fields[] = {
        { 16, 8, 21 },   { 24, 8, 22 },   { 32, 8, 1002 }, { 40, 8, 23 },   { 48, 8, 1001 }, { 56, 8, 24 },
        { 64, 8, 1003 }, { 72, 8, 1004 }, { 80, 8, 1005 }, { 88, 8, 1006 }, { 96, 8, 1007 }, { 104, 8, 1008 },
        { 112, 4, 9 },   { 116, 4, 10 },  { 120, 4, 11 },  { 124, 4, 1 },   { 128, 8, 25 },  { 136, 4, 12 },
        { 140, 4, 26 },  { 144, 4, 27 },  { 148, 4, 13 },
    };
    uint8_t p[CHECKPOINT_BYTES], again[CHECKPOINT_BYTES];
    struct checkpoint back;

    (void)state;
    checkpoint_encode(p, &c);
    assert_head(p, sizeof p, "klogckpt", 2);
    assert_fields(p, fields, ARRAY_LEN(fields));
    assert_true(checkpoint_decode(slice_of(p, sizeof p), &back));
    checkpoint_encode(again, &back);
    assert_memory_equal(again, p, sizeof p);
    assert_taken_whole_only(p, sizeof p, 1, is_checkpoint);
}

static bool is_mark(const uint8_t *p, size_t n)
{
    struct flush_mark back;
    return mark_decode(slice_of(p, n), &back);
}

static void the_flush_mark_and_the_one_of_version_1(void **state)
{
    static const uint8_t v1[32] = { 'k',  'l',  'o', 'g', 'f', 'l', 's', 'h', 0, 0, 0,  1, 0x4a, 0xc7, 0xf8, 0x15,
                                    0, 0, 0, 0, 0, 0, 0, 41, 0, 0, 0, 42, 0, 0, 0, 0 };
    const struct flush_mark m = { .offset = 41, .identity = 42, .segment = 40, .position = 44, .all_heads = 45 };
    static const struct field fields[] = { { 16, 8, 41 }, { 24, 4, 42 }, { 28, 4, 45 }, { 32, 8, 40 }, { 40, 8, 44 } };
    uint8_t p[MARK_BYTES], again[MARK_BYTES];
    struct flush_mark back;

    (void)state;
    mark_encode(p, &m);
    assert_head(p, sizeof p, "klogflsh", 2);
    assert_fields(p, fields, ARRAY_LEN(fields));
    assert_true(mark_decode(slice_of(p, sizeof p), &back));
    mark_encode(again, &back);
    assert_memory_equal(again, p, sizeof p);
    assert_taken_whole_only(p, sizeof p, 1, is_mark);
    assert_true(mark_decode(slice_of(v1, sizeof v1), &back));
    assert_int_equal(back.offset, 41);
    assert_int_equal(back.identity, 42);
    assert_int_equal(back.segment, -1);
}

static bool is_start_mark(const uint8_t *p, size_t n)
{
    struct start_mark back;
    return start_decode(slice_of(p, n), &back);
}

static void the_start_mark(void **state)
{
    const struct start_mark m = { .offset = 41, .identity = 42 };
    uint8_t p[START_BYTES];
    struct start_mark back;

    (void)state;
    start_encode(p, &m);
    assert_head(p, sizeof p, "klogstrt", 1);
    assert_field(p, 16, 8, 41);
    assert_field(p, 24, 4, 42);
    assert_field(p, 28, 4, 0);
    assert_true(start_decode(slice_of(p, sizeof p), &back));
    assert_int_equal(back.offset, 41);
    assert_int_equal(back.identity, 42);
    assert_taken_whole_only(p, sizeof p, 1, is_start_mark);
}

static bool is_text_header(const uint8_t *p, size_t n)
{
    struct text_header back;
    return text_header_decode(p, (int64_t)n, &back);
}

static void the_text_header_and_its_entries(void **state)
{
    const struct text_header h = { .identity = 30, .sealed = true, .base = 31, .text_base = 32, .sum = some_sum };
    static const struct field fields[] = {
        { 16, 8, 31 },   { 24, 8, 32 },   { 32, 4, 1 },    { 36, 4, 30 },   { 40, 8, 1002 },
        { 48, 8, 1001 }, { 56, 8, 1003 }, { 64, 8, 1004 }, { 72, 8, 1005 }, { 80, 4, 9 },
        { 84, 4, 10 },   { 88, 4, 11 },   { 92, 4, 12 },
    };
    uint8_t p[TEXT_HEADER_BYTES];
    struct text_header back;

    (void)state;
    text_header_encode(p, &h);
    assert_head(p, sizeof p, "klogtext", 2);
    assert_fields(p, fields, ARRAY_LEN(fields));
    assert_true(text_header_decode(p, sizeof p, &back));
    assert_int_equal(back.sum.text_bytes, 1003);
    assert_taken_whole_only(p, sizeof p, 0x80, is_text_header);
}

/* Two batches of ten records with an entry for the second one. */
static void the_index_files_of_a_segment(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    struct bytebuf b = { 0 };

    f->cfg.index_interval_bytes = 100;
    must_open(f);
    append_n(f, 10, 50);
    int64_t one = ends_of(f).size_bytes;
    int64_t first_heads = plog_active(f->l)->sum.heads;
    append_n(f, 10, 50);
    shut(f, true);

    file_path(f, SEG0 ".index", path);
    assert_int_equal(fs_read_file(AT_FDCWD, path, 1000, &b), 0);
    assert_int_equal(b.n, 8);
    assert_field(b.p, 0, 4, 19);
    assert_field(b.p, 4, 4, one);
    b.n = 0;
    file_path(f, SEG0 ".timeindex", path);
    assert_int_equal(fs_read_file(AT_FDCWD, path, 1000, &b), 0);
    assert_int_equal(b.n, 12);
    assert_field(b.p, 0, 8, T0 + 9);
    assert_field(b.p, 8, 4, 9);
    b.n = 0;
    file_path(f, SEG0 ".text", path);
    assert_int_equal(fs_read_file(AT_FDCWD, path, 1000, &b), 0);
    assert_int_equal(b.n, 96 + 24);
    assert_field(b.p, 96, 4, 10);
    assert_field(b.p, 100, 4, one);
    assert_field(b.p, 104, 8, 510);
    assert_field(b.p, 112, 4, first_heads);
    assert_field(b.p, 116, 4, crc32c(0, b.p + 96, 20));
    bytebuf_done(&b);
}

static bool is_snapshot(const uint8_t *p, size_t n)
{
    struct producers back = { 0 };
    int64_t offset;
    uint32_t identity;
    bool is = producers_decode(slice_of(p, n), &back, &offset, &identity);
    producers_clear(&back);
    return is;
}

static void the_producer_snapshot(void **state)
{
    struct producers ps = { 0 }, back = { 0 };
    struct batch_header h = {
        .producer_id = 0x1234, .producer_epoch = 5, .last_offset_delta = 1, .magic = 2
    };
    struct bytebuf b = { 0 };
    int64_t offset = -1;
    uint32_t identity = 0;

    (void)state;
    for (int i = 0; i < 7; i++) {
        h.base_offset = 100 + 2 * i;
        h.base_sequence = 2 * i;
        producers_add(&ps, &h, 999 + i);
    }
    producers_encode(&ps, 114, 0xabcd, &b);
    assert_int_equal(b.n, 32 + 184);
    assert_head(b.p, b.n, "klogprod", 2);
    assert_field(b.p, 16, 8, 114);
    assert_field(b.p, 24, 4, 1);
    assert_field(b.p, 32, 8, 0x1234);
    assert_field(b.p, 40, 2, 5);
    assert_field(b.p, 42, 2, 5);
    assert_field(b.p, 48, 8, 1005);
    assert_field(b.p, 56, 4, 4);
    assert_field(b.p, 60, 4, 5);
    assert_field(b.p, 64, 8, 104);
    assert_field(b.p, 72, 8, 105);
    assert_field(b.p, 80, 8, -1);
    assert_true(producers_decode(slice_of(b.p, b.n), &back, &offset, &identity));
    assert_int_equal(offset, 114);
    assert_int_equal(back.n, 1);
    producers_clear(&back);
    assert_taken_whole_only(b.p, b.n, 2, is_snapshot);
    producers_clear(&ps);
    bytebuf_done(&b);
}

static bool epochs_of(const char *text, struct epochs *ret)
{
    return epochs_decode(slice_of(text, strlen(text)), ret);
}

static void the_leader_epochs(void **state)
{
    static const char *const bad[] = { "",
                                       "0\n",
                                       "0\n1\n",
                                       "1\n0\n",
                                       "0\n1\n5 3",
                                       "0\n0\n5 3\n",
                                       "0\n1\n5  3\n",
                                       "0\n1\n-1 3\n",
                                       "0\n2\n5 3\n5 9\n",
                                       "0\n2\n5 3\n6 2\n",
                                       "0\n1\n4294967296 0\n",
                                       "0\n1\n1 99999999999999999999\n" };
    struct epochs e = { 0 };
    struct bytebuf b = { 0 };
    int32_t epoch;
    int64_t end;

    (void)state;
    assert_true(epochs_assign(&e, 0, 0));
    assert_true(epochs_assign(&e, 2, 10));
    assert_false(epochs_assign(&e, 1, 12));
    assert_true(epochs_assign(&e, 5, 20));
    assert_true(epochs_assign(&e, 6, 20)); /* 5 got no record */
    epochs_encode(&e, &b);
    assert_string_equal(bytebuf_cstr(&b), "0\n3\n0 0\n2 10\n6 20\n");
    epochs_end(&e, 1, 30, &epoch, &end);
    assert_int_equal(epoch, 0);
    assert_int_equal(end, 10);
    epochs_end(&e, 6, 30, &epoch, &end);
    assert_int_equal(epoch, 6);
    assert_int_equal(end, 30);
    assert_int_equal(epochs_at(&e, 19), 2);
    assert_true(epochs_truncate_start(&e, 15));
    assert_int_equal(epochs_at(&e, 14), -1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (epochs_of(bad[i], &e))
            fail_msg("taken for epochs: %s", bad[i]);
        assert_int_equal(e.n, 0);
    }
    assert_true(epochs_of("0\n2\n5 3\n7 9\n", &e));
    epochs_done(&e);
    bytebuf_done(&b);
}

static void the_small_files(void **state)
{
    struct uuid id;
    struct bytebuf b = { 0 };
    struct meta_properties m = { .cluster_id = "abc", .broker_id = 3 }, back;
    static const char from_kafka[] =
        "#\n#Thu Jan 01 00:00:00 UTC 2026\r\nnode.id=7\ncluster.id=xyz\nversion=1\n";

    (void)state;
    memset(id.b, 7, sizeof id.b);
    m.directory_id = id;
    meta_encode(&m, &b);
    assert_string_equal(bytebuf_cstr(&b),
                        "version=0\ncluster.id=abc\nbroker.id=3\ndirectory.id=BwcHBwcHBwcHBwcHBwcHBw\n");
    assert_true(meta_decode(slice_of(b.p, b.n), &back));
    assert_int_equal(back.broker_id, 3);
    assert_true(uuid_eq(&back.directory_id, &id));
    assert_true(meta_decode(slice_of(from_kafka, sizeof from_kafka - 1), &back));
    assert_string_equal(back.cluster_id, "xyz");
    assert_int_equal(back.broker_id, 7);
    assert_true(uuid_is_zero(&back.directory_id));
    assert_false(meta_decode(slice_of("broker.id=x\n", 12), &back));
    assert_false(meta_decode(slice_of("\0\0\0\0", 4), &back));
    b.n = 0;
    partition_metadata_encode(&id, &b);
    assert_string_equal(bytebuf_cstr(&b),
                        "version: 0\ntopic_id: BwcHBwcHBwcHBwcHBwcHBw\ncrc32c: 94acaaa3\n");
    assert_int_equal(partition_metadata_decode(slice_of(b.p, b.n), &back.directory_id), 0);
    assert_true(uuid_eq(&back.directory_id, &id));
    bytebuf_done(&b);
}

static const struct uuid marked = { { 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7 } };

static bool is_clean_marker(const uint8_t *p, size_t n)
{
    int64_t note;
    return clean_decode(slice_of(p, n), &marked, &note);
}

static void the_clean_marker_and_the_one_of_version_1(void **state)
{
    static const uint8_t v1[32] = { 'k', 'l', 'o', 'g', 'c', 'l', 'e', 'a', 0,    0,    0,
                                    1,   0x55, 0xf5, 0xa1, 0x32, 7,   7,   7,    7,    7,    7,
                                    7,   7,   7,   7,   7,   7,   7,   7,   7,   7 };
    struct uuid id = marked;
    uint8_t clean[CLEAN_BYTES];
    int64_t note = 0;

    (void)state;
    clean_encode(&id, 12345, clean);
    assert_true(clean_decode(slice_of(clean, sizeof clean), &id, &note));
    assert_int_equal(note, 12345);
    assert_true(clean_decode(slice_of(v1, sizeof v1), &id, &note));
    assert_int_equal(note, -1);
    assert_taken_whole_only(clean, sizeof clean, 1, is_clean_marker);
    id.b[0]++;
    assert_false(clean_decode(slice_of(clean, sizeof clean), &id, &note));
}

/* No change of one or two bytes makes another topic's file of it. */
static void a_changed_partition_metadata_is_noticed(void **state)
{
    struct uuid id, found;
    struct bytebuf b = { 0 };
    static const char old[] = "version: 0\ntopic_id: BwcHBwcHBwcHBwcHBwcHBw\n";
    static const char newer[] = "version: 1\ntopic_id: BwcHBwcHBwcHBwcHBwcHBw\nmore: 1\n";

    (void)state;
    memset(id.b, 7, sizeof id.b);
    assert_int_equal(partition_metadata_decode(slice_of(old, sizeof old - 1), &found), 0);
    assert_true(uuid_eq(&found, &id));
    assert_int_equal(partition_metadata_decode(slice_of(newer, sizeof newer - 1), &found), -EPROTO);
    assert_int_equal(partition_metadata_decode(slice_of("", 0), &found), -EBADMSG);
    partition_metadata_encode(&id, &b);
    for (size_t i = 0; i + 1 < b.n; i++) {
        uint8_t x = b.p[i], y = b.p[i + 1];
        b.p[i] = y;
        b.p[i + 1] = x;
        int rc = partition_metadata_decode(slice_of(b.p, b.n), &found);
        assert_true(rc < 0 || uuid_eq(&found, &id));
        b.p[i] = x ^ 1;
        b.p[i + 1] = y;
        rc = partition_metadata_decode(slice_of(b.p, b.n), &found);
        assert_true(rc < 0 || uuid_eq(&found, &id));
        b.p[i] = x;
    }
    bytebuf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clean_marker_and_the_one_of_version_1),
        cmocka_unit_test(a_changed_partition_metadata_is_noticed),
        cmocka_unit_test(the_flush_mark_and_the_one_of_version_1),
        cmocka_unit_test(the_start_mark),
        cmocka_unit_test(the_checkpoint),    cmocka_unit_test(the_text_header_and_its_entries),
        T(the_index_files_of_a_segment),     cmocka_unit_test(the_producer_snapshot),
        cmocka_unit_test(the_leader_epochs), cmocka_unit_test(the_small_files),
    };
    return RUN(tests);
}
