/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a whole log: every good batch comes once, in order and at its offset, whatever else is in the file. */
#include "storetest.h"

enum { BATCHES = 12 }; /* of two records */

static void fill(struct fixture *f)
{
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(append_n(f, 2, 300).base_offset, 2 * i);
    assert_int_equal(flush(f), 0);
}

/* "0 2 4!6 ...": base offsets, "!" where something is lost. */
static char *scan(struct fixture *f, int64_t from, int64_t to)
{
    struct plog_scan *s = plog_scan_new(f->l, from, to);
    struct plog_scan_item it;
    struct bytebuf out = { 0 };
    int rc;

    while ((rc = plog_scan_next(s, &it)) == 1) {
        char text[32];
        snprintf(text, sizeof text, it.lost ? "!" : "%lld ", (long long)it.base_offset);
        bytebuf_adds(&out, text);
        if (!it.lost)
            assert_int_equal(batch_crc(it.batch.p, it.batch.n), get_be32(it.batch.p + BATCH_CRC));
    }
    assert_int_equal(rc, 0);
    plog_scan_free(s);
    bytebuf_add(&out, "", 1);
    return (char *)out.p;
}

static void assert_scan(struct fixture *f, int64_t from, int64_t to, const char *want)
{
    CLEANUP(freep) char *got = scan(f, from, to);

    assert_string_equal(got, want);
}

static const char all[] = "0 2 4 6 8 10 12 14 16 18 20 22 ";

static void a_good_log_is_read_from_anywhere_to_anywhere(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 2000;
    must_open(f);
    assert_scan(f, 0, 0, "");
    fill(f);
    assert_true(count_files(f, ".log") > 2);
    assert_scan(f, 0, 24, all);
    assert_scan(f, 7, 11, "6 8 10 ");
    assert_scan(f, 8, 8, "");
    assert_scan(f, 23, 24, "22 ");
}

/* Batch 3 of the first segment, which has more behind it in its file. */
static void every_bit_of_a_batch(void **state)
{
    struct fixture *f = *state;
    int64_t size;

    must_open(f);
    fill(f);
    size = file_size(f, "00000000000000000000.log") / BATCHES;
    for (int64_t at = 0; at < size; at += at < BATCH_OVERHEAD ? 1 : 37)
        for (int bit = 0; bit < 8; bit += 3) {
            uint8_t was, is;
            char path[PATH_MAX];
            file_path(f, "00000000000000000000.log", path);
            int fd = open(path, O_RDONLY);
            assert_int_equal(pread(fd, &was, 1, 3 * size + at), 1);
            close(fd);
            is = was ^ (uint8_t)(1 << bit);
            file_poke(f, "00000000000000000000.log", 3 * size + at, &is, 1);
            /* offset and epoch are outside the checksum: the batch is proven, and so is its place */
            bool place = at < BATCH_LENGTH || (at >= BATCH_LEADER_EPOCH && at < BATCH_MAGIC);
            assert_scan(f, 0, 24, place ? all : "0 2 4 !8 10 12 14 16 18 20 22 ");
            file_poke(f, "00000000000000000000.log", 3 * size + at, &was, 1);
        }
    assert_scan(f, 0, 24, all);
}

static void the_end_and_whole_segments_may_be_damaged(void **state)
{
    struct fixture *f = *state;
    static const uint8_t zeros[4000];
    char second[64];

    f->cfg.segment_bytes = 2000;
    must_open(f);
    fill(f);
    snprintf(second, sizeof second, "%020d.log", 4);
    assert_true(file_size(f, second) > 0);
    int64_t n = file_size(f, second);
    file_poke(f, second, 0, zeros, (size_t)n);
    assert_scan(f, 0, 24, "0 2 !8 10 12 14 16 18 20 22 ");
    file_poke(f, "00000000000000000020.log", file_size(f, "00000000000000000020.log") - 1, "\xff", 1);
    assert_scan(f, 0, 24, "0 2 !8 10 12 14 16 18 20 !");
}

/* A batch where one is expected is right, also when the offset of the next one says otherwise: that one is the damaged. */
static void a_wrong_offset_condemns_no_neighbour(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    struct logscan scan;
    struct scan_item it;

    must_open(f);
    fill(f);
    int64_t size = file_size(f, "00000000000000000000.log"), second = size / BATCHES;
    file_poke(f, "00000000000000000000.log", second + 7, "\1", 1); /* offset 1 for 2 */
    file_path(f, "00000000000000000000.log", path);
    int fd = open(path, O_RDONLY);
    logscan_init(&scan, &store_io_real, fd, 0, size, 0);
    assert_int_equal(logscan_next(&scan, &it), 0);
    assert_int_equal(it.what, SCAN_BATCH);
    assert_int_equal(it.h.base_offset, 0);
    assert_int_equal(logscan_next(&scan, &it), 0);
    assert_int_equal(it.what, SCAN_DAMAGED);
    assert_int_equal(it.at, second);
    assert_int_equal(it.n, second);
    assert_int_equal(logscan_next(&scan, &it), 0);
    assert_int_equal(it.what, SCAN_BATCH);
    assert_int_equal(it.h.base_offset, 4);
    logscan_done(&scan);
    close(fd);
}

/* A sector of zeros ends within the offset of a batch, which no checksum covers: it now says 0, where the log begins. */
static void a_batch_behind_damage_is_not_what_was_damaged(void **state)
{
    struct fixture *f = *state;
    static const uint8_t zeros[4000];
    struct plog_span span;

    must_open(f);
    fill(f);
    int64_t batch = file_size(f, "00000000000000000000.log") / BATCHES;
    file_poke(f, "00000000000000000000.log", 0, zeros, (size_t)batch + 8);
    assert_scan(f, 0, 24, "!4 6 8 10 12 14 16 18 20 22 ");
    reopen(f, false);
    assert_scan(f, 0, 24, "!4 6 8 10 12 14 16 18 20 22 ");
    for (int64_t offset = 0; offset < 4; offset++)
        assert_int_equal(plog_read(f->l, offset, 24, 1000, true, &span), -EBADMSG);
    assert_int_equal(plog_read(f->l, 4, 24, 1, true, &span), 0);
    assert_int_equal(span.base_offset, 4);
    plog_span_release(&span);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_good_log_is_read_from_anywhere_to_anywhere, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(every_bit_of_a_batch, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_wrong_offset_condemns_no_neighbour, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_batch_behind_damage_is_not_what_was_damaged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_end_and_whole_segments_may_be_damaged, fixture_setup, fixture_teardown),
    };
    return RUN(tests);
}
