/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a start makes of claims and files that contradict each other: settled once, with a line, and nothing that was
 * acknowledged since is touched by the next start.
 */
#include "simtest.h"

#include "lib/base/crc32c.h"
#include "lib/store/metafiles.h"

/* As a power cut leaves it, with only what was synced. */
static void cut_power(struct fixture *f, struct simdisk *d)
{
    drop(f);
    simdisk_power_cut(d, SIMDISK_CUT_NONE);
}

/* A checkpoint that knows of producers above the flush point would tell of batches that a power cut took. */
static void a_checkpoint_claims_no_producer_above_the_flush_point(void **state)
{
    struct fixture *f = *state;

    for (int busy = 0; busy < 2; busy++) { /* busy: there are producers when the checkpoint is written */
        struct simdisk *d = disk_new(f, (uint64_t)busy);
        struct batch_spec other = { .n = 1, .value_bytes = 100, .producer_id = 5 };
        struct batch_spec spec = { .n = 1, .value_bytes = 100, .producer_id = 9 };
        must_open(f);
        for (int i = 0; i < 10; i++)
            append_n(f, 1, 100);
        assert_int_equal(flush(f), 0);
        for (int i = 0; i < 5; i++) {
            other.base_sequence = i;
            if (busy)
                append_spec(f, &other);
            else
                append_n(f, 1, 100);
        }
        assert_int_equal(plog_checkpoint(f->l, 10, true), 0);
        assert_int_equal(count_files(f, ".producers"), 0);
        cut_power(f, d);
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, 10);
        for (int i = 0; i < 3; i++) {
            spec.base_sequence = i;
            assert_int_equal(append_spec(f, &spec).base_offset, 10 + i);
        }
        for (int i = 0; i < 7; i++)
            append_n(f, 1, 100);
        assert_int_equal(flush(f), 0);
        drop(f);
        must_open(f);
        struct plog_appended a = append_spec(f, &spec);
        assert_true(a.duplicate);
        assert_int_equal(a.base_offset, 12);
        drop(f);
        disk_free(f, d);
    }
    must_open(f);
}

/* While appends go on the end is always above the flush point: the state is written once that got there. */
static void a_busy_log_has_its_producers_in_a_later_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct batch_spec spec = { .n = 1, .value_bytes = 100, .producer_id = 9 };

    must_open(f);
    for (int i = 0; i < 20; i++) {
        spec.base_sequence = i;
        append_spec(f, &spec);
        if (i % 3 == 0)
            assert_int_equal(flush(f), 0);
        if (i % 3 == 1) {
            assert_int_equal(plog_checkpoint(f->l, 0, true), 0);
            assert_int_equal(count_files(f, ".producers"), i > 1 ? MIN(i / 3, SNAPSHOTS_KEPT) : 0);
        }
    }
}

/* Of the page that was synced in part the new half is lost, what is behind made it to the disk: nobody was told of
 * any of it. */
static void a_torn_half_page_is_the_end(void **state)
{
    struct fixture *f = *state;

    for (int checkpointed = 0; checkpointed < 2; checkpointed++) {
        static const uint8_t zeros[4096];
        must_open(f);
        int64_t first = ends_of(f).end_offset;
        for (int i = 0; i < 3; i++)
            append_n(f, 1, 500);
        assert_int_equal(flush(f), 0);
        if (checkpointed)
            assert_int_equal(plog_checkpoint(f->l, first + 3, true), 0);
        int64_t at = ends_of(f).size_bytes;
        for (int i = 0; i < 12; i++)
            append_n(f, 1, 1500);
        int64_t page = (at + 4095) / 4096 * 4096;
        shut(f, false);
        file_poke(f, SEG0 ".log", at, zeros, (size_t)(page - at));
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, first + 3);
        assert_true(f->rec.cut_bytes > 0);
        assert_null(strstr(f->rec.note, "LOST"));
        assert_int_equal(append_n(f, 1, 10).base_offset, first + 3);
        assert_int_equal(check_log(f), first + 4);
        shut(f, true);
    }
    must_open(f);
}

/* The same bytes below the flush point are damage, and what is behind them stays, whether or not a checkpoint came
 * by since. */
static void below_the_flush_point_nothing_is_cut(void **state)
{
    struct fixture *f = *state;
    static const uint8_t zeros[9000];
    struct plog_span s;

    must_open(f);
    for (int i = 0; i < 30; i++)
        append_n(f, 1, 1500);
    assert_int_equal(flush(f), 0);
    int64_t one = ends_of(f).size_bytes / 30;
    shut(f, false);
    file_poke(f, SEG0 ".log", 5 * one, zeros, sizeof zeros);
    must_open(f);
    assert_int_equal(f->rec.cut_bytes, 0);
    assert_non_null(strstr(f->rec.note, "damage"));
    assert_int_equal(ends_of(f).end_offset, 30);
    assert_int_equal(plog_read(f->l, 5, 30, 1 << 20, true, &s), -EBADMSG);
    assert_int_equal(plog_read(f->l, 29, 30, 1 << 20, true, &s), 0);
    plog_span_release(&s);
}

/* With the flush point lost, what has good batches behind it is kept. */
static void without_a_flush_point_what_has_good_batches_behind_it_is_kept(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 8000;
    must_open(f);
    for (int i = 0; i < 30; i++)
        append_n(f, 1, 1500);
    shut(f, false);
    file_remove(f, MARK_FILE);
    file_poke(f, SEG0 ".log", 2000, "\x7f\x7f\x7f\x7f", 4);
    file_cut(f, "00000000000000000010.log", 20);
    must_open(f);
    assert_int_equal(ends_of(f).end_offset, 30);
    assert_int_equal(f->rec.cut_bytes, 0);
    assert_non_null(strstr(f->rec.note, "00000000000000000000.log"));
    assert_non_null(strstr(f->rec.note, "00000000000000000010.log"));
}

/* A start offset that the log does not reach: it goes on there, and what comes then stays. */
static void a_start_beyond_the_end_is_settled_once(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 3000;
    must_open(f);
    for (int i = 0; i < 40; i++)
        append_n(f, 1, 500);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_delete_before(f->l, 39), 0);
    shut(f, true);
    char name[64];
    snprintf(name, sizeof name, "%020d.log", 35);
    file_cut(f, name, 600);
    must_open(f);
    assert_non_null(strstr(f->rec.note, "LOST"));
    assert_int_equal(ends_of(f).start_offset, 39);
    assert_int_equal(ends_of(f).end_offset, 39);
    for (int round = 0; round < 4; round++) {
        assert_int_equal(append_n(f, 1, 50).base_offset, 39 + round);
        reopen(f, round % 2 == 0);
        assert_string_equal(f->rec.note, "");
        assert_int_equal(ends_of(f).start_offset, 39);
        assert_int_equal(check_log(f), 40 + round);
    }
}

static void missing_segments_are_told_and_never_skipped(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;

    f->cfg.segment_bytes = 3000;
    must_open(f);
    for (int i = 0; i < 40; i++)
        append_n(f, 1, 500);
    assert_int_equal(flush(f), 0);
    assert_int_equal(count_files(f, ".log"), 8);
    for (int empty = 0; empty < 2; empty++) {
        shut(f, false);
        if (empty)
            file_cut(f, "00000000000000000010.log", 0);
        else
            file_remove(f, "00000000000000000005.log");
        must_open(f);
        const char *told = empty ? "10..14" : "5..9";
        if (strstr(f->rec.note, told) == NULL)
            fail_msg("not told: '%s'", f->rec.note);
        assert_int_equal(ends_of(f).end_offset, 40);
        for (int64_t o = 0; o < 40; o++) {
            int rc = plog_read(f->l, o, 40, 1, true, &s);
            bool gone = o >= 5 && o < (empty ? 15 : 10);
            assert_int_equal(rc, gone ? -EBADMSG : 0);
            assert_int_equal(s.base_offset, gone ? -1 : o);
            plog_span_release(&s);
        }
    }
    /* the way past it that there is for everybody: the log begins behind */
    assert_int_equal(plog_delete_before(f->l, 15), 0);
    assert_int_equal(plog_read(f->l, 7, 40, 1, true, &s), -ERANGE);
    shut(f, false);
    file_remove(f, "00000000000000000015.log");
    must_open(f);
    assert_non_null(strstr(f->rec.note, "15..19"));
    assert_int_equal(ends_of(f).start_offset, 20);
    reopen(f, false);
    assert_string_equal(f->rec.note, "");
}

static void a_log_without_segments_goes_on_where_it_was(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    for (int i = 0; i < 40; i++)
        append_n(f, 1, 500);
    assert_int_equal(flush(f), 0);
    shut(f, false);
    file_remove(f, SEG0 ".log");
    must_open(f);
    assert_non_null(strstr(f->rec.note, "LOST"));
    assert_int_equal(ends_of(f).start_offset, 40);
    assert_int_equal(append_n(f, 1, 50).base_offset, 40);
    reopen(f, false);
    assert_string_equal(f->rec.note, "");
    assert_int_equal(check_log(f), 41);
}

/* What is cut off is kept without the padding behind it. */
static void padding_is_not_kept(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    struct stat st;

    must_open(f);
    for (int i = 0; i < 4; i++)
        append_n(f, 1, 500);
    assert_int_equal(flush(f), 0);
    int64_t size = ends_of(f).size_bytes;
    for (int garbage = 0; garbage < 2; garbage++) {
        shut(f, true);
        if (garbage)
            file_poke(f, SEG0 ".log", -1, "garbage", 7);
        file_cut(f, SEG0 ".log", size + (2LL << 30) - 8192);
        must_open(f);
        assert_int_equal(file_size(f, SEG0 ".log"), size);
        assert_int_equal(count_files(f, ".cut"), garbage);
        assert_int_equal(ends_of(f).end_offset, 4);
    }
    file_path(f, f->rec.cut_file, path);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size >= 7 && st.st_size <= 4096);
}

static void another_partitions_producers_are_not_believed(void **state)
{
    struct fixture *f = *state;
    struct batch_spec spec = { .n = 1, .value_bytes = 100, .producer_id = 9 };
    struct producers ps = { 0 };
    struct bytebuf b = { 0 };
    struct batch_header h = { .producer_id = 9, .producer_epoch = 3, .last_offset_delta = 0, .magic = 2 };

    must_open(f);
    append_spec(f, &spec);
    append_n(f, 1, 10);
    shut(f, true);
    producers_add(&ps, &h, T0);
    producers_encode(&ps, 2, partition_identity(&f->topic_id, 1), &b);
    producers_clear(&ps);
    file_poke(f, "00000000000000000002.producers", 0, b.p, b.n);
    must_open(f);
    assert_non_null(strstr(f->rec.note, "another partition"));
    assert_true(append_spec(f, &spec).duplicate);
    shut(f, false);
    memset(b.p + 28, 0, 4); /* as version 1 had it: of no partition, and believed */
    put_be32(b.p + 8, 1);
    put_be32(b.p + 12, crc32c(0, b.p + 16, b.n - 16));
    file_poke(f, "00000000000000000002.producers", 0, b.p, b.n);
    must_open(f);
    assert_string_equal(f->rec.note, "");
    assert_int_equal(append_spec(f, &spec).err, KERR_INVALID_PRODUCER_EPOCH);
    bytebuf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_checkpoint_claims_no_producer_above_the_flush_point),
        T(a_busy_log_has_its_producers_in_a_later_checkpoint),
        T(a_torn_half_page_is_the_end),
        T(below_the_flush_point_nothing_is_cut),
        T(without_a_flush_point_what_has_good_batches_behind_it_is_kept),
        T(a_start_beyond_the_end_is_settled_once),
        T(missing_segments_are_told_and_never_skipped),
        T(a_log_without_segments_goes_on_where_it_was),
        T(padding_is_not_kept),
        T(another_partitions_producers_are_not_believed),
    };
    return RUN(tests);
}
