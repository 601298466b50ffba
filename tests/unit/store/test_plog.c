/* SPDX-License-Identifier: Apache-2.0 */
/* A log in daily use: append, read, flush, roll, close and open again. */
#include "simtest.h"

static void a_new_log_is_empty_and_durable(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    struct plog_ends e = ends_of(f);
    assert_int_equal(e.start_offset, 0);
    assert_int_equal(e.end_offset, 0);
    assert_int_equal(e.flushed_offset, 0);
    assert_int_equal(e.newest_timestamp, -1);
    assert_true(f->rec.clean);
    assert_null(plog_flush_begin(f->l));
    assert_int_equal(file_size(f, SEG0 ".log"), 0);
    assert_string_equal(plog_name(f->l), "orders-0");
}

static void a_batch_is_stored_as_it_came_but_for_offset_and_epoch(void **state)
{
    struct fixture *f = *state;
    const struct batch_spec spec = { .n = 3, .value_bytes = 10 };
    struct bytebuf want = { 0 };
    struct plog_span s;

    must_open(f);
    append_n(f, 2, 5);
    struct plog_appended a = append_spec(f, &spec);
    assert_int_equal(a.err, KERR_NONE);
    assert_int_equal(a.base_offset, 2);
    assert_int_equal(a.last_offset, 4);
    make_batch(&spec, &want);
    batch_set_base_offset(want.p, 2);
    batch_set_leader_epoch(want.p, 0);
    assert_int_equal(plog_read(f->l, 2, 5, 1000, true, &s), 0);
    assert_int_equal(s.n, want.n);
    assert_int_equal(s.base_offset, 2);
    uint8_t *got = xmalloc((size_t)s.n);
    assert_int_equal(plog_span_read(&s, got), 0);
    assert_memory_equal(got, want.p, want.n);
    free(got);
    bytebuf_done(&want);
    plog_span_release(&s);
}

static void a_read_keeps_to_its_bounds(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;

    must_open(f);
    for (int i = 0; i < 10; i++)
        append_n(f, 10, 100);
    int64_t one = ends_of(f).size_bytes / 10;
    assert_int_equal(plog_read(f->l, 101, 100, 1000, true, &s), -ERANGE);
    assert_int_equal(plog_read(f->l, -1, 100, 1000, true, &s), -ERANGE);
    assert_int_equal(plog_read(f->l, 100, 100, 1000, true, &s), 0);
    assert_null(s.file);
    assert_int_equal(plog_read(f->l, 0, 100, 10, false, &s), 0);
    assert_null(s.file);
    assert_int_equal(plog_read(f->l, 0, 100, 10, true, &s), 0);
    assert_int_equal(s.n, one);
    plog_span_release(&s);
    assert_int_equal(plog_read(f->l, 0, 100, 3 * one + 1, true, &s), 0);
    assert_int_equal(s.n, 3 * one);
    plog_span_release(&s);
    assert_int_equal(plog_read(f->l, 15, 40, 1 << 20, true, &s), 0);
    assert_int_equal(s.base_offset, 10);
    assert_int_equal(s.at, one);
    assert_int_equal(s.n, 3 * one);
    plog_span_release(&s);
    assert_int_equal(plog_read(f->l, 20, 20, 1 << 20, true, &s), 0);
    assert_null(s.file);
}

static void every_offset_is_found_in_any_segment(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 50000;
    must_open(f);
    for (int i = 0; i < 400; i++)
        append_n(f, 1 + i % 7, 50 + i % 900);
    assert_true(count_files(f, ".log") > 3);
    for (int round = 0; round < 2; round++) {
        int64_t end = ends_of(f).end_offset;
        for (int64_t o = 0; o < end; o++) {
            struct plog_span s;
            uint8_t head[BATCH_OVERHEAD];
            struct batch_header h;
            assert_int_equal(plog_read(f->l, o, end, 1, true, &s), 0);
            assert_int_equal(pread(segfile_fd(s.file), head, sizeof head, s.at), sizeof head);
            batch_header_read(head, &h);
            assert_int_equal(h.base_offset, s.base_offset);
            assert_true(h.base_offset <= o && batch_last_offset(&h) >= o);
            assert_int_equal(batch_size(&h), s.n);
            plog_span_release(&s);
        }
        assert_int_equal(check_log(f), end);
        reopen(f, true);
    }
}

static void a_clean_stop_leaves_nothing_to_scan(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 20000;
    must_open(f);
    for (int i = 0; i < 50; i++)
        append_n(f, 5, 200);
    reopen(f, true);
    assert_true(f->rec.clean);
    assert_int_equal(f->rec.scanned_bytes, 0);
    struct plog_ends e = ends_of(f);
    assert_int_equal(e.end_offset, 250);
    assert_int_equal(e.flushed_offset, 250);
    assert_int_equal(e.checkpoint_hw, 250);
    assert_int_equal(append_n(f, 1, 1).base_offset, 250);
    assert_int_equal(check_log(f), 251);
}

static void the_flush_point_moves_by_tickets_only(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 3000;
    must_open(f);
    for (int i = 0; i < 5; i++)
        append_n(f, 1, 1000);
    assert_int_equal(ends_of(f).flushed_offset, 0);
    struct plog_flush *t = plog_flush_begin(f->l);
    append_n(f, 1, 1000);
    assert_int_equal(plog_flush_run(t), 0);
    assert_int_equal(plog_flush_end(f->l, t, 0), 5);
    assert_int_equal(ends_of(f).flushed_offset, 5);
    assert_int_equal(flush(f), 0);
    assert_int_equal(ends_of(f).flushed_offset, 6);
    assert_null(plog_flush_begin(f->l));
}

static void a_failed_flush_fails_the_directory_for_good(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    append_n(f, 1, 10);
    struct plog_flush *t = plog_flush_begin(f->l);
    assert_int_equal(plog_flush_end(f->l, t, -EIO), 0);
    assert_true(datadir_failed(f->dd));
    struct plog_appended a = append_n(f, 1, 10);
    assert_int_equal(a.err, KERR_KAFKA_STORAGE_ERROR);
    t = plog_flush_begin(f->l);
    assert_int_equal(plog_flush_run(t), -EROFS);
    plog_flush_end(f->l, t, -EROFS);
    assert_int_equal(ends_of(f).flushed_offset, 0);
}

/* S2: the disk takes a part of the batch, then it is full. */
static void a_full_disk_keeps_nothing_of_a_batch(void **state)
{
    struct fixture *f = *state;
    struct simdisk *d = disk_new(f, 1);

    must_open(f);
    append_n(f, 1, 100);
    int64_t size = file_size(f, SEG0 ".log");
    simdisk_set_capacity(d, simdisk_used(d));
    assert_int_equal(append_n(f, 1, 5000).err, KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(file_size(f, SEG0 ".log"), size);
    assert_false(datadir_failed(f->dd));
    assert_int_equal(append_n(f, 1, 100).base_offset, 1);
    assert_int_equal(file_size(f, SEG0 ".log"), 2 * size);
    simdisk_set_capacity(d, 0);
    reopen(f, false);
    assert_int_equal(check_log(f), 2);
    drop(f);
    disk_free(f, d);
}

static void the_same_partition_name_with_another_topic_id_is_refused(void **state)
{
    struct fixture *f = *state;
    struct uuid other = { { 9 } };
    struct plog *l;

    must_open(f);
    plog_close(f->l, true, 0);
    f->l = NULL;
    assert_int_equal(plog_open(f->dd, "orders", 0, &other, &f->cfg, T0, &l, &f->rec), -ESTALE);
    assert_int_equal(plog_open(f->dd, "orders", 0, &f->topic_id, &f->cfg, T0, &f->l, &f->rec), 0);
}

static void a_removed_log_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    char path[PATH_MAX];

    must_open(f);
    append_n(f, 5, 100);
    assert_int_equal(plog_remove(f->l), 0);
    f->l = NULL;
    snprintf(path, sizeof path, "%s/orders-0", f->path);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(plog_open(f->dd, "orders", 0, &f->topic_id, &f->cfg, T0, &f->l, &f->rec), 0);
    assert_int_equal(ends_of(f).end_offset, 0);
}

static void relative_offsets_above_31_bits_start_a_new_segment(void **state)
{
    struct fixture *f = *state;
    struct plog_appended a;
    struct bytebuf b = { 0 };
    struct batch_info info = { 0 };
    const struct batch_spec spec = { .n = 1, .value_bytes = 1 };

    must_open(f);
    for (int i = 0; i < 3; i++) {
        b.n = 0;
        make_batch(&spec, &b);
        put_be32(b.p + BATCH_LAST_OFFSET_DELTA, INT32_MAX - 1);
        batch_header_read(b.p, &info.h);
        plog_append(f->l, b.p, b.n, &info, 0, T0, -1, &a);
        assert_int_equal(a.err, KERR_NONE);
        assert_int_equal(a.base_offset, i * (int64_t)INT32_MAX);
        assert_int_equal(a.rolled, i > 0);
    }
    bytebuf_done(&b);
    assert_true(file_size(f, "00000000004294967294.log") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_new_log_is_empty_and_durable),
        T(a_batch_is_stored_as_it_came_but_for_offset_and_epoch),
        T(a_read_keeps_to_its_bounds),
        T(every_offset_is_found_in_any_segment),
        T(a_clean_stop_leaves_nothing_to_scan),
        T(the_flush_point_moves_by_tickets_only),
        T(a_failed_flush_fails_the_directory_for_good),
        T(a_full_disk_keeps_nothing_of_a_batch),
        T(the_same_partition_name_with_another_topic_id_is_refused),
        T(a_removed_log_leaves_nothing),
        T(relative_offsets_above_31_bits_start_a_new_segment),
    };
    return RUN(tests);
}
