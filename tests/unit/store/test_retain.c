/* SPDX-License-Identifier: Apache-2.0 */
/* Retention, DeleteRecords, truncation. */
#include "storetest.h"

#include "lib/store/metafiles.h"
#include "lib/store/start_mark.h"

static void size_retention_keeps_what_is_asked_for(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 10000;
    f->cfg.retention_bytes = 30000;
    must_open(f);
    for (int i = 0; i < 100; i++)
        append_n(f, 1, 1000);
    int64_t before = ends_of(f).size_bytes;
    assert_int_equal(plog_retain(f->l, 0, T0), 0);
    assert_int_equal(ends_of(f).size_bytes, before);
    int gone = plog_retain(f->l, 100, T0);
    assert_true(gone > 0);
    struct plog_ends e = ends_of(f);
    assert_true(e.size_bytes >= 30000 && e.size_bytes < 40000);
    assert_int_equal(e.start_offset, gone * 9);
    assert_int_equal(count_files(f, ".start"), 1);
    assert_int_equal(check_log(f), 100);
    struct plog_span s;
    assert_int_equal(plog_read(f->l, e.start_offset - 1, 100, 1000, true, &s), -ERANGE);
    reopen(f, false);
    assert_int_equal(ends_of(f).start_offset, e.start_offset);
    assert_int_equal(check_log(f), 100);
}

/* Case C15: the active segment goes too, and offsets go on. */
static void old_records_go_even_from_the_active_segment(void **state)
{
    struct fixture *f = *state;
    const struct batch_spec old = { .n = 3, .value_bytes = 1, .timestamp = 1700000000 };

    f->cfg.retention_ms = 1000;
    must_open(f);
    append_spec(f, &old);
    assert_int_equal(plog_retain(f->l, 3, T0), 1);
    assert_int_equal(ends_of(f).start_offset, 3);
    assert_int_equal(ends_of(f).end_offset, 3);
    assert_int_equal(ends_of(f).size_bytes, 0);
    reopen(f, false);
    assert_int_equal(ends_of(f).start_offset, 3);
    assert_int_equal(append_n(f, 1, 1).base_offset, 3);
    reopen(f, false);
    assert_int_equal(ends_of(f).end_offset, 4);
    assert_int_equal(plog_retain(f->l, 4, T0 + 1000), 0);
    assert_int_equal(ends_of(f).start_offset, 3);
}

static void nothing_above_the_high_watermark_goes(void **state)
{
    struct fixture *f = *state;
    const struct batch_spec old = { .n = 3, .value_bytes = 1, .timestamp = 1700000000 };

    f->cfg.retention_ms = 1000;
    must_open(f);
    append_spec(f, &old);
    assert_int_equal(plog_retain(f->l, 2, T0), 0);
    assert_int_equal(ends_of(f).start_offset, 0);
}

static void without_the_delete_policy_nothing_goes(void **state)
{
    struct fixture *f = *state;
    const struct batch_spec old = { .n = 3, .value_bytes = 1, .timestamp = 1700000000 };

    f->cfg.retention_ms = 1;
    f->cfg.retention_bytes = 0;
    f->cfg.delete_policy = false;
    must_open(f);
    append_spec(f, &old);
    assert_int_equal(plog_retain(f->l, 3, T0), 0);
    assert_int_equal(ends_of(f).start_offset, 0);
}

static void deleted_offsets_stay_deleted(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;

    f->cfg.segment_bytes = 5000;
    must_open(f);
    for (int i = 0; i < 20; i++)
        append_n(f, 2, 500);
    assert_int_equal(plog_delete_before(f->l, 41), -ERANGE);
    assert_int_equal(plog_delete_before(f->l, 13), 0);
    assert_int_equal(plog_delete_before(f->l, 11), 0);
    assert_int_equal(ends_of(f).start_offset, 13);
    assert_int_equal(plog_read(f->l, 12, 40, 1000, true, &s), -ERANGE);
    assert_int_equal(plog_read(f->l, 13, 40, 1000, true, &s), 0);
    assert_int_equal(s.base_offset, 12);
    plog_span_release(&s);
    for (int way = 0; way < 3; way++) {
        shut(f, way == 0);
        if (way == 1)
            file_zero(f, CHECKPOINT_FILE);
        if (way == 2)
            file_remove(f, CHECKPOINT_FILE);
        must_open(f);
        assert_int_equal(ends_of(f).start_offset, 13);
        assert_int_equal(ends_of(f).end_offset, 40);
    }
    assert_int_equal(plog_delete_before(f->l, 40), 0);
    reopen(f, false);
    assert_int_equal(ends_of(f).start_offset, 40);
    assert_int_equal(append_n(f, 1, 1).base_offset, 40);
}

static void has_start(struct fixture *f, int64_t start, const char *note)
{
    must_open(f);
    assert_int_equal(ends_of(f).start_offset, start);
    if (note == NULL ? f->rec.note[0] != '\0' : strstr(f->rec.note, note) == NULL)
        fail_msg("wanted '%s', got '%s'", note == NULL ? "" : note, f->rec.note);
    shut(f, true);
}

/* A file of that name with the bytes that another partition's has; f's own identity when whose is 0. */
static void put_start(struct fixture *f, int64_t offset, uint32_t whose)
{
    const struct start_mark m = { .offset = offset, .identity = whose == 0 ? partition_identity(&f->topic_id, 0) : whose };
    uint8_t p[START_BYTES];
    char name[64];

    start_encode(p, &m);
    snprintf(name, sizeof name, "%020lld.start", (long long)offset);
    file_poke(f, name, 0, p, sizeof p);
}

static void a_start_is_believed_when_it_says_whose_it_is(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    for (int i = 0; i < 20; i++)
        append_n(f, 2, 500);
    assert_int_equal(plog_delete_before(f->l, 13), 0);
    assert_int_equal(file_size(f, "00000000000000000013.start"), START_BYTES);
    shut(f, true);
    put_start(f, 30, 4711);
    has_start(f, 13, "00000000000000000030.start is another partition's and counts for nothing");
    assert_int_equal(file_size(f, "00000000000000000030.start"), -1);
    assert_int_equal(file_size(f, "00000000000000000030.start.cut"), START_BYTES);
    has_start(f, 13, NULL); /* told once */
    file_cut(f, "00000000000000000013.start", 0); /* as earlier versions made them */
    file_remove(f, CHECKPOINT_FILE);
    has_start(f, 13, NULL);
    file_poke(f, "00000000000000000013.start", 10, "x", 1); /* and as a power cut may leave them */
    file_remove(f, CHECKPOINT_FILE);
    has_start(f, 13, NULL);
    put_start(f, 14, 0);
    has_start(f, 14, NULL);
    must_open(f);
    assert_int_equal(plog_delete_before(f->l, 15), 0);
    assert_int_equal(file_size(f, "00000000000000000015.start"), START_BYTES);
    assert_int_equal(file_size(f, "00000000000000000014.start"), -1);
    shut(f, false);
    file_zero(f, CHECKPOINT_FILE);
    must_open(f);
    assert_int_equal(ends_of(f).start_offset, 15);
}

static void a_reader_keeps_what_it_holds_while_it_is_deleted(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;

    f->cfg.segment_bytes = 5000;
    must_open(f);
    for (int i = 0; i < 20; i++)
        append_n(f, 1, 1000);
    assert_int_equal(plog_read(f->l, 0, 20, 100000, true, &s), 0);
    assert_int_equal(plog_delete_before(f->l, 20), 0);
    uint8_t *p = xmalloc((size_t)s.n);
    struct batch_header h;
    assert_int_equal(plog_span_read(&s, p), 0);
    assert_int_equal(batch_check(slice_of(p, (size_t)s.n), 1 << 20, &h), 0);
    free(p);
    plog_span_release(&s);
}

static void an_idle_log_rolls_when_segment_ms_is_over(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_ms = 1000;
    must_open(f);
    append_n(f, 1, 1);
    assert_int_equal(plog_retain(f->l, 1, T0 + 1000), 0);
    assert_int_equal(count_files(f, ".log"), 1);
    assert_int_equal(plog_retain(f->l, 1, T0 + 1001), 0);
    assert_int_equal(count_files(f, ".log"), 2);
    assert_int_equal(plog_retain(f->l, 1, T0 + 9001), 0);
    assert_int_equal(count_files(f, ".log"), 2);
}

static void kept_cuts_go_after_a_day(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    char path[PATH_MAX];

    must_open(f);
    append_n(f, 1, 1);
    shut(f, false);
    file_poke(f, SEG0 ".log", -1, "xyz", 3);
    must_open(f);
    assert_int_equal(count_files(f, ".cut"), 1);
    file_path(f, f->rec.cut_file, path);
    assert_int_equal(stat(path, &st), 0);
    int64_t made = st.st_ctim.tv_sec * 1000LL;
    plog_retain(f->l, 1, made + 86400000 - 1000);
    assert_int_equal(count_files(f, ".cut"), 1);
    plog_retain(f->l, 1, made + 86400000 + 1000);
    assert_int_equal(count_files(f, ".cut"), 0);
}

static void truncation_drops_the_end_and_all_that_was_known_of_it(void **state)
{
    struct fixture *f = *state;
    struct batch_spec spec = { .n = 2, .value_bytes = 700, .producer_id = 5 };
    int64_t text, offset, ts;

    f->cfg.segment_bytes = 6000;
    f->cfg.index_interval_bytes = 500;
    must_open(f);
    for (int i = 0; i < 20; i++) {
        if (i == 10)
            plog_epoch_begin(f->l, 3);
        spec.base_sequence = 2 * i;
        spec.timestamp = T0 + 10 * i;
        struct plog_appended a;
        struct bytebuf b = { 0 };
        struct batch_info info = { .text_bytes = 2 * 701 };
        make_batch(&spec, &b);
        plog_append(f->l, b.p, b.n, &info, i < 10 ? 0 : 3, T0, -1, &a);
        assert_int_equal(a.err, KERR_NONE);
        bytebuf_done(&b);
    }
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_checkpoint(f->l, 40, true), 0);
    assert_int_equal(plog_epoch_latest(f->l), 3);
    assert_int_equal(plog_truncate(f->l, 15), 0);
    for (int round = 0; round < 3; round++) {
        struct plog_ends e = ends_of(f);
        assert_int_equal(e.end_offset, 14);
        assert_int_equal(e.flushed_offset, 14);
        assert_int_equal(plog_epoch_latest(f->l), 0);
        assert_int_equal(plog_text_of_offset(f->l, 14, &text), 0);
        assert_int_equal(text, 14 * 701);
        assert_int_equal(plog_max_timestamp(f->l, 14, &offset, &ts), 0);
        assert_int_equal(offset, 13);
        assert_int_equal(ts, T0 + 61);
        assert_int_equal(check_log(f), 14);
        spec.base_sequence = 12;
        assert_true(append_spec(f, &spec).duplicate);
        spec.base_sequence = 16;
        assert_int_equal(append_spec(f, &spec).err, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
        reopen(f, round == 0);
    }
    spec.base_sequence = 14;
    assert_int_equal(append_spec(f, &spec).base_offset, 14);
    assert_int_equal(plog_truncate(f->l, 16), 0);
    assert_int_equal(plog_truncate(f->l, 0), 0);
    assert_int_equal(ends_of(f).end_offset, 0);
    assert_int_equal(ends_of(f).size_bytes, 0);
    reopen(f, false);
    assert_int_equal(ends_of(f).end_offset, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(size_retention_keeps_what_is_asked_for),
        T(old_records_go_even_from_the_active_segment),
        T(nothing_above_the_high_watermark_goes),
        T(without_the_delete_policy_nothing_goes),
        T(deleted_offsets_stay_deleted),
        T(a_start_is_believed_when_it_says_whose_it_is),
        T(a_reader_keeps_what_it_holds_while_it_is_deleted),
        T(an_idle_log_rolls_when_segment_ms_is_over),
        T(kept_cuts_go_after_a_day),
        T(truncation_drops_the_end_and_all_that_was_known_of_it),
    };
    return RUN(tests);
}
