/* SPDX-License-Identifier: Apache-2.0 */
/* The log cleaner: what stays, what goes, and that nobody else notices. Cases C18 and C19. */
#include "cleantest.h"

#include "lib/base/clock.h"
#include "lib/base/crc32c.h"
#include "lib/record/codec.h"
#include "lib/store/clean_int.h"
#include "lib/store/metafiles.h"

/* Case C18. */
static void the_last_value_of_each_key_stays_with_its_offset(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    put(f, "a=1 b=1 c=1");
    put(f, "a=2 b=2 c=2");
    put(f, "a=3");
    seal_log(f);
    put(f, "a=4");
    struct clean_result r = clean_log(f, 0);
    assert_int_equal(r.first_dirty, 7);
    assert_int_equal(r.records_before, 7);
    assert_int_equal(r.records_after, 3);
    assert_int_equal(r.segments_before, 1);
    assert_true(r.bytes_after < r.bytes_before);
    assert_log(f, "4:b=2 5:c=2 6:a=3 7:a=4 ");
    struct plog_ends e = ends_of(f);
    assert_int_equal(e.start_offset, 0);
    assert_int_equal(e.end_offset, 8);
    assert_int_equal(file_size(f, SEG0 ".log"), r.bytes_after);
    assert_int_equal(e.size_bytes, r.bytes_after + file_size(f, "00000000000000000007.log"));
    assert_int_equal(check_text(f), 8);
    reopen(f, false);
    assert_log(f, "4:b=2 5:c=2 6:a=3 7:a=4 ");
    assert_int_equal(check_text(f), 8);
    reopen(f, true);
    assert_log(f, "4:b=2 5:c=2 6:a=3 7:a=4 ");
}

static void a_batch_keeps_its_place_and_its_fields(void **state)
{
    struct fixture *f = *state;
    const struct keyed k = { .text = "a=1 b=1 c=1", .producer_id = 5, .producer_epoch = 2, .sequence = 10 };

    must_open(f);
    put_keyed(f, &k);
    put(f, "a=2 c=2");
    seal_log(f);
    clean_log(f, 0);
    struct batches b = batches_of(f);
    assert_int_equal(b.n, 2);
    assert_int_equal(b.h[0].base_offset, 0);
    assert_int_equal(b.h[0].last_offset_delta, 2);
    assert_int_equal(b.h[0].count, 1);
    assert_int_equal(b.h[0].producer_id, 5);
    assert_int_equal(b.h[0].producer_epoch, 2);
    assert_int_equal(b.h[0].base_sequence, 10);
    assert_int_equal(b.h[0].base_timestamp, T0);
    assert_int_equal(b.h[0].max_timestamp, T0 + 1);
    assert_int_equal(b.h[0].attributes, 0);
}

static void reading_in_a_gap_gives_the_next_record(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;

    must_open(f);
    for (int i = 0; i < 50; i++)
        put(f, "a=1 b=1 c=1");
    put(f, "z=1");
    seal_log(f);
    clean_log(f, 0);
    for (int64_t o = 0; o <= 147; o++) {
        assert_int_equal(plog_read(f->l, o, 151, 1, true, &s), 0);
        assert_int_equal(s.base_offset, 147);
        plog_span_release(&s);
    }
    /* Whoever asks up to an end that was the end before, too: nothing would lead him on. */
    for (int64_t limit = 1; limit <= 147; limit++) {
        assert_int_equal(plog_read(f->l, 0, limit, 1, true, &s), 0);
        assert_int_equal(s.base_offset, 147);
        assert_true(s.n > BATCH_OVERHEAD);
        plog_span_release(&s);
    }
    assert_int_equal(plog_read(f->l, 0, 148, 1, true, &s), 0); /* inside the batch */
    assert_null(s.file);
    assert_int_equal(plog_read(f->l, 150, 151, 1, true, &s), 0);
    assert_int_equal(s.base_offset, 150);
    plog_span_release(&s);
}

/* A reader behind the last record must be led to the log's end. */
static void a_segment_ends_where_the_next_begins(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;

    must_open(f);
    put(f, "a=1");
    put(f, "b=1");
    seal_log(f);
    put(f, "b=2");
    seal_log(f);
    clean_log(f, 0);
    assert_log(f, "0:a=1 2:b=2 ");
    put(f, "b=3 a=2");
    seal_log(f);
    put(f, "a");
    seal_log(f);
    f->now_ms += 2;
    struct clean_options o = clean_all(f);
    struct clean_result r;
    o.delete_retention_ms = 1;
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    f->now_ms = o.now_ms += 2;
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_log(f, "3:b=3 ");
    assert_int_equal(plog_read(f->l, 5, 6, 1, true, &s), 0);
    assert_int_equal(s.n, BATCH_OVERHEAD);
    assert_int_equal(s.base_offset, 5);
    plog_span_release(&s);
    struct batches b = batches_of(f);
    assert_int_equal(b.h[b.n - 1].count, 0);
    assert_int_equal(batch_last_offset(&b.h[b.n - 1]), 5);
    reopen(f, false);
    assert_log(f, "3:b=3 ");
    assert_int_equal(ends_of(f).end_offset, 6);
    /* Without any claim about the log, too. */
    assert_int_equal(plog_checkpoint(f->l, 6, true), 0);
    shut(f, false);
    file_remove(f, "partition.checkpoint");
    must_open(f);
    assert_log(f, "3:b=3 ");
    assert_int_equal(f->rec.cut_bytes, 0);
    assert_int_equal(ends_of(f).end_offset, 6);
}

/* KIP-534: the time runs from the first cleaning. */
static void tombstones_go_when_their_horizon_has_passed(void **state)
{
    struct fixture *f = *state;
    struct clean_options o;
    struct clean_result r;

    must_open(f);
    put(f, "a=1 b=1");
    put(f, "x=0 b y=0");
    put(f, "c=1");
    seal_log(f);
    o = clean_all(f);
    o.delete_retention_ms = 5000;
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_log(f, "0:a=1 2:x=0 3:b 4:y=0 5:c=1 ");
    assert_int_equal(r.next_horizon_ms, o.now_ms + 5000);
    struct batches b = batches_of(f);
    assert_int_equal(b.n, 3);
    assert_int_equal(b.h[1].attributes, BATCH_ATTR_DELETE_HORIZON);
    assert_int_equal(b.h[1].base_timestamp, o.now_ms + 5000);
    assert_int_equal(b.h[1].max_timestamp, T0 + 2);
    assert_int_equal(b.h[0].attributes, 0);

    /* The records' times are what they were. */
    int64_t offset, ts;
    assert_int_equal(plog_find_time(f->l, T0 + 1, 6, &offset, &ts), 0);
    assert_int_equal(offset, 3);
    assert_int_equal(ts, T0 + 1);

    o.first_dirty = r.first_dirty;
    o.now_ms += 4999;
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_int_equal(r.next_horizon_ms, o.now_ms + 1);
    assert_log(f, "0:a=1 2:x=0 3:b 4:y=0 5:c=1 ");
    o.now_ms++;
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_int_equal(r.next_horizon_ms, -1);
    assert_log(f, "0:a=1 2:x=0 4:y=0 5:c=1 ");
    assert_int_equal(r.first_dirty, 6);
    assert_int_equal(check_text(f), 8);
}

static void every_codec_stays_what_it_was(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    for (int c = CODEC_NONE; c <= CODEC_ZSTD; c++) {
        if (!codec_available((enum codec)c))
            continue;
        struct keyed k = { .text = "a=1 b=2 c=3 d", .codec = (enum codec)c };
        put_keyed(f, &k);
        put(f, "b=3 e=4");
        seal_log(f);
        clean_log(f, ends_of(f).end_offset - 6);
        struct batches b = batches_of(f);
        const struct batch_header *h = &b.h[b.n - 2];
        assert_int_equal(h->base_offset, ends_of(f).end_offset - 6);
        assert_int_equal(h->count, 3);
        assert_int_equal(h->last_offset_delta, 3);
        assert_int_equal(batch_codec(h), c);
        assert_int_equal(h->attributes & BATCH_ATTR_DELETE_HORIZON, BATCH_ATTR_DELETE_HORIZON);
    }
    reopen(f, false);
    check_text(f);
}

static void log_append_time_stays(void **state)
{
    struct fixture *f = *state;
    struct bytebuf b = { 0 };
    int64_t text, offset, ts;
    const struct keyed k = { .text = "a=1 b=1 t" };

    must_open(f);
    keyed_batch(&k, &b, &text);
    batch_set_log_append_time(b.p, b.n, T0 + 777);
    put_bytes(f, &b, text);
    put(f, "a=2");
    seal_log(f);
    clean_log(f, 0);
    assert_log(f, "1:b=1 2:t 3:a=2 ");
    assert_int_equal(plog_find_time(f->l, T0 + 1, 4, &offset, &ts), 0);
    assert_int_equal(offset, 1);
    assert_int_equal(ts, T0 + 777);
}

static void only_what_is_closed_and_committed_and_flushed_is_touched(void **state)
{
    struct fixture *f = *state;
    struct clean_look look;
    struct clean_result r;

    must_open(f);
    put(f, "a=1");
    put(f, "a=2");
    assert_int_equal(flush(f), 0);
    struct clean_options o = clean_all(f);
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_log(f, "0:a=1 1:a=2 ");
    seal_log(f);
    put(f, "a=3");
    o.limit = 1; /* the high watermark is inside the first segment */
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_log(f, "0:a=1 1:a=2 2:a=3 ");
    assert_int_equal(r.first_dirty, 0);
    f->now_ms += 10;
    assert_int_equal(plog_roll_if_older(f->l, 0, f->now_ms), 1); /* sealed, but not flushed */
    o.limit = 3;
    assert_int_equal(plog_clean_look(f->l, 0, 3, 0, f->now_ms, &look), 0);
    assert_int_equal(look.end, 2);
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_log(f, "1:a=2 2:a=3 ");
    assert_int_equal(flush(f), 0);
    assert_int_equal(clean_log(f, r.first_dirty).first_dirty, 3);
    assert_log(f, "2:a=3 ");
}

static void young_records_wait(void **state)
{
    struct fixture *f = *state;
    const struct keyed young = { .text = "a=3", .timestamp = T0 + 60000 };
    struct clean_look look;
    struct clean_result r;

    must_open(f);
    put(f, "a=1 b=1");
    put(f, "a=2");
    seal_log(f);
    put_keyed(f, &young);
    seal_log(f);
    struct clean_options o = clean_all(f);
    o.min_lag_ms = 50000;
    o.now_ms = T0 + 100000;
    assert_int_equal(plog_clean_look(f->l, 0, 4, o.min_lag_ms, o.now_ms, &look), 0);
    assert_int_equal(look.end, 3);
    assert_int_equal(look.first_dirty, 0);
    assert_int_equal(look.clean_bytes, 0);
    assert_int_equal(look.dirty_bytes, file_size(f, SEG0 ".log"));
    assert_int_equal(look.oldest_ms, T0 + 1);
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_int_equal(r.first_dirty, 3);
    assert_log(f, "1:b=1 2:a=2 3:a=3 ");
    o.now_ms = T0 + 110001;
    o.first_dirty = 3;
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    assert_log(f, "1:b=1 3:a=3 ");
}

static void records_without_a_key_go(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    put(f, "=1 a=1 =2");
    put(f, "b=1");
    seal_log(f);
    struct clean_result r = clean_log(f, 0);
    assert_int_equal(r.keyless, 2);
    assert_log(f, "1:a=1 3:b=1 ");
}

static void small_segments_are_joined(void **state)
{
    struct fixture *f = *state;
    struct keyed k = { 0 };

    f->cfg.segment_bytes = 2000;
    f->cfg.index_interval_bytes = 100;
    must_open(f);
    for (int i = 0; i < 60; i++) {
        char text[64];
        snprintf(text, sizeof text, "k%d=v%d always=%d", i % 40, i, i);
        k = (struct keyed){ .text = text, .timestamp = T0 + i * 10 };
        put_keyed(f, &k);
    }
    seal_log(f);
    int before = count_files(f, ".log");
    assert_true(before >= 4);
    struct clean_result r = clean_log(f, 0);
    assert_int_equal(r.segments_before, before - 1);
    assert_int_equal(r.segments_after, r.segments_before); /* together they are too large as yet */
    r = clean_log(f, r.first_dirty);
    assert_true(r.segments_after < r.segments_before);
    int after = count_files(f, ".log");
    assert_int_equal(count_files(f, ".index"), after);
    assert_int_equal(count_files(f, ".timeindex"), after);
    assert_int_equal(count_files(f, ".text"), after);
    assert_int_equal(count_files(f, ".cleaned"), 0);
    assert_int_equal(file_size(f, CLEAN_MANIFEST), -1);
    char *text = log_text(f);
    assert_non_null(strstr(text, "40:k20=v20 "));
    assert_non_null(strstr(text, " 118:k19=v59 119:always=59 "));
    assert_null(strstr(text, "k0=v0 "));
    int64_t length = check_text(f);
    reopen(f, false);
    char *again = log_text(f);
    assert_string_equal(text, again);
    assert_int_equal(check_text(f), length);
    for (int i = 0; i < 60; i++) {
        int64_t offset, ts;
        assert_int_equal(plog_find_time(f->l, T0 + i * 10, 120, &offset, &ts), 0);
        assert_int_equal(offset, i < 20 ? 40 : 2 * i);
    }
    free(text);
    free(again);
}

/* Case C19, the map: several passes, and none of them is in vain. */
static void keys_that_do_not_fit_take_several_passes(void **state)
{
    struct fixture *f = *state;
    struct clean_options o;
    struct clean_result r;
    int passes = 0;

    must_open(f);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 200; i++) {
            char text[64];
            snprintf(text, sizeof text, "k%d=%c", i, round == 0 ? 'v' : 'w');
            put(f, text);
        }
    }
    seal_log(f); /* one segment, much larger than the map */
    o = clean_all(f);
    o.map_bytes = CLEAN_MAP_BYTES_MIN;
    do {
        int64_t before = o.first_dirty;
        assert_int_equal(plog_clean(f->l, &o, &r), 0);
        assert_true(r.first_dirty > before);
        o.first_dirty = r.first_dirty;
        passes++;
    } while (r.map_full);
    assert_int_equal(r.first_dirty, 400);
    assert_int_equal(passes, 13);
    assert_int_equal(r.records_after, 200);
    char *text = log_text(f);
    assert_null(strchr(text, 'v'));
    assert_non_null(strstr(text, "200:k0=w "));
    assert_non_null(strstr(text, "399:k199=w "));
    free(text);
}

/* Case C19: two segments whose offsets are more than 31 bits apart are never joined. */
static void far_offsets_stay_in_segments_of_their_own(void **state)
{
    struct fixture *f = *state;
    const struct keyed far = { .text = "a=1", .last_delta = INT32_MAX - 1 };

    must_open(f);
    for (int i = 0; i < 3; i++)
        put_keyed(f, &far);
    put(f, "b=1");
    seal_log(f);
    assert_int_equal(ends_of(f).end_offset, 3LL * INT32_MAX + 1);
    assert_int_equal(count_files(f, ".log"), 4);
    struct clean_result r = clean_log(f, 0);
    assert_int_equal(r.segments_before, 3);
    assert_int_equal(r.segments_after, 3);
    assert_log(f, "4294967294:a=1 6442450941:b=1 ");
    reopen(f, false);
    assert_log(f, "4294967294:a=1 6442450941:b=1 ");
}

/* The last sequence of a producer is in an empty batch, when every snapshot is lost as well. */
static void producers_are_remembered_by_empty_batches(void **state)
{
    struct fixture *f = *state;
    struct keyed k = { .text = "a=1", .producer_id = 7 };

    must_open(f);
    for (; k.sequence < 8; k.sequence++)
        put_keyed(f, &k);
    put(f, "a=2");
    seal_log(f);
    clean_log(f, 0);
    assert_log(f, "8:a=2 ");
    struct batches b = batches_of(f);
    assert_int_equal(b.n, 2);
    assert_int_equal(b.h[0].base_offset, 7);
    assert_int_equal(b.h[0].count, 0);
    assert_int_equal(b.h[0].base_sequence, 7);
    assert_int_equal(b.h[0].producer_id, 7);
    assert_int_equal(b.h[0].base_timestamp, -1);
    assert_int_equal(b.h[0].attributes, 0);
    shut(f, false);
    assert_int_equal(file_size(f, "partition.checkpoint"), -1);
    assert_int_equal(count_files(f, ".producers"), 0);
    must_open(f);
    k.sequence = 7;
    struct plog_appended a = put_keyed(f, &k);
    assert_true(a.duplicate);
    assert_int_equal(a.base_offset, 7);
    k.sequence = 9;
    assert_int_equal(put_keyed(f, &k).err, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    k.sequence = 8;
    k.text = "b=1";
    assert_int_equal(put_keyed(f, &k).base_offset, 9);
    /* The producer has moved on: what remembered it goes. */
    seal_log(f);
    clean_log(f, 9);
    b = batches_of(f);
    assert_int_equal(b.n, 2);
    assert_int_equal(b.h[0].base_offset, 8);
}

static void markers_stay_and_aborted_records_go(void **state)
{
    struct fixture *f = *state;
    struct keyed one = { .text = "a=1 b=1", .producer_id = 1, .transactional = true };
    struct keyed two = { .text = "a=bad c=bad", .producer_id = 2, .transactional = true };

    must_open(f);
    put_keyed(f, &one);  /* 0, 1 */
    put_keyed(f, &two);  /* 2, 3 */
    put_marker(f, 1, 1); /* 4: committed */
    put(f, "d=1");       /* 5 */
    put_marker(f, 2, 0); /* 6: aborted */
    two.text = "b=2";
    two.sequence = 2;
    put_keyed(f, &two);  /* 7 */
    put_marker(f, 2, 1); /* 8: committed */
    seal_log(f);
    clean_log(f, 0);
    assert_log(f, "0:a=1 4:marker1 5:d=1 6:marker0 7:b=2 8:marker1 ");
    f->now_ms += 10 * DAY_MS;
    clean_log(f, 9);
    assert_log(f, "0:a=1 4:marker1 5:d=1 6:marker0 7:b=2 8:marker1 ");
    assert_int_equal(check_text(f), 6);
    reopen(f, false);
    assert_int_equal(check_text(f), 6);
}

/* Readers that were there before go on with what they had. */
static void an_open_span_still_reads_the_old_bytes(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;
    uint8_t before[4096], after[4096];

    must_open(f);
    for (int i = 0; i < 5; i++)
        put(f, "a=1 b=1");
    seal_log(f);
    put(f, "a=2 b=2");
    seal_log(f);
    assert_int_equal(plog_read(f->l, 0, 10, sizeof before, true, &s), 0);
    assert_int_equal(plog_span_read(&s, before), 0);
    clean_log(f, 0);
    assert_log(f, "10:a=2 11:b=2 ");
    assert_int_equal(plog_span_read(&s, after), 0);
    assert_memory_equal(before, after, s.n);
    plog_span_release(&s);
}

/* What follows keeps its text positions, what precedes moves up, and there are no holes. */
static void text_positions_behind_the_cleaned_part_do_not_move(void **state)
{
    struct fixture *f = *state;
    int64_t before, after, start, base, pos;

    f->cfg.segment_bytes = 300;
    must_open(f);
    put(f, "keep=1234");
    seal_log(f);
    put(f, "a=1234567 b=1");
    put(f, "a=2");
    seal_log(f);
    put(f, "z=1");
    put(f, "y=22");
    assert_int_equal(plog_text_of_offset(f->l, 4, &before), 0);
    clean_log(f, 0);
    assert_int_equal(plog_text_of_offset(f->l, 4, &after), 0);
    assert_int_equal(after, before);
    assert_int_equal(plog_text_of_offset(f->l, 0, &start), 0);
    assert_int_equal(start, 8);
    assert_int_equal(check_text(f), 14);
    assert_int_equal(plog_offset_of_text(f->l, 7, &base, &pos), -ERANGE);
    for (int clean = 0; clean < 2; clean++) {
        reopen(f, clean == 1);
        assert_int_equal(plog_text_of_offset(f->l, 0, &start), 0);
        assert_int_equal(start, 8);
        assert_int_equal(check_text(f), 14);
    }
}

static void retention_works_on_a_cleaned_log(void **state)
{
    struct fixture *f = *state;
    const struct keyed late = { .text = "c=1", .timestamp = T0 + 50000 };

    f->cfg.compact_policy = true;
    f->cfg.retention_ms = 10000;
    f->cfg.segment_bytes = 200;
    must_open(f);
    put(f, "a=1 b=1");
    put(f, "a=2");
    seal_log(f);
    put_keyed(f, &late);
    seal_log(f);
    clean_log(f, 0);
    assert_log(f, "1:b=1 2:a=2 3:c=1 ");
    assert_int_equal(plog_retain(f->l, 4, T0 + 50000), 1);
    assert_log(f, "3:c=1 ");
    assert_int_equal(ends_of(f).start_offset, 3);
    reopen(f, false);
    assert_log(f, "3:c=1 ");
    assert_int_equal(clean_log(f, 0).first_dirty, 4);
}

static void truncation_works_on_a_cleaned_log(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    put(f, "a=1 b=1");
    put(f, "a=2");
    put(f, "d=1");
    seal_log(f);
    clean_log(f, 0);
    put(f, "e=1");
    assert_int_equal(plog_truncate(f->l, 3), 0);
    assert_log(f, "1:b=1 2:a=2 ");
    assert_int_equal(put(f, "f=1"), 3);
    reopen(f, false);
    assert_log(f, "1:b=1 2:a=2 3:f=1 ");
    check_text(f);
    f->now_ms = clock_wall_ms() + 1000;
    seal_log(f);
    assert_int_equal(clean_log(f, 100).first_dirty, 4);
}

static bool go_on_never(void *arg, int64_t bytes)
{
    (void)arg, (void)bytes;
    return false;
}

static bool cut_under_it(void *arg, int64_t bytes)
{
    struct fixture *f = arg;
    (void)bytes;
    assert_int_equal(plog_truncate(f->l, 1), 0);
    return true;
}

static void a_pass_that_is_stopped_leaves_the_log_alone(void **state)
{
    struct fixture *f = *state;
    struct clean_result r;

    must_open(f);
    put(f, "a=1");
    put(f, "a=2");
    seal_log(f);
    struct clean_options o = clean_all(f);
    o.go_on = go_on_never;
    assert_int_equal(plog_clean(f->l, &o, &r), -ECANCELED);
    assert_int_equal(r.first_dirty, 0);
    assert_log(f, "0:a=1 1:a=2 ");
    o.go_on = cut_under_it;
    o.arg = f;
    assert_int_equal(plog_clean(f->l, &o, &r), -ECANCELED);
    assert_log(f, "0:a=1 ");
    assert_int_equal(count_files(f, ".cleaned"), 0);
}

/* A log with damage is said to be so, and is not made worse. */
static void a_damaged_segment_is_refused_untouched(void **state)
{
    struct fixture *f = *state;
    struct clean_result r;

    must_open(f);
    put(f, "a=1");
    put(f, "a=2");
    put(f, "a=3");
    seal_log(f);
    int64_t size = file_size(f, SEG0 ".log");
    file_poke(f, SEG0 ".log", size / 3 + BATCH_OVERHEAD + 2, "\xff", 1);
    struct clean_options o = clean_all(f);
    assert_int_equal(plog_clean(f->l, &o, &r), -EBADMSG);
    assert_int_equal(file_size(f, SEG0 ".log"), size);
    assert_int_equal(count_files(f, ".cleaned"), 0);
    assert_false(datadir_failed(f->dd));
}

static void damaged_caches_of_a_cleaned_segment_are_made_anew(void **state)
{
    struct fixture *f = *state;
    static const char *const files[] = { SEG0 ".index", SEG0 ".timeindex", SEG0 ".text" };

    f->cfg.index_interval_bytes = 50;
    must_open(f);
    for (int i = 0; i < 20; i++) {
        char text[64];
        snprintf(text, sizeof text, "k%d=1 b=%d", i, i);
        put(f, text);
    }
    seal_log(f);
    put(f, "b=100");
    clean_log(f, 0);
    char *want = log_text(f);
    int64_t length = check_text(f);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        shut(f, true);
        file_zero(f, files[i]);
        must_open(f);
        char *got = log_text(f);
        assert_string_equal(got, want);
        assert_int_equal(check_text(f), length);
        free(got);
    }
    free(want);
}

/* docs/DISK-FORMAT.md. */
static void the_manifest_is_what_the_documents_say(void **state)
{
    struct fixture *f = *state;
    static const int64_t olds[] = { 11, 12 };
    static const int64_t fields[][3] = { { 16, 8, 1 }, { 24, 8, 2 },  { 32, 8, 11 }, { 40, 4, 2 },
                                         { 48, 8, 99 }, { 56, 8, 11 }, { 64, 8, 12 } };
    const struct clean_manifest m = {
        .anchor = 1, .anchor_text = 2, .base = 11, .size = 99, .olds = olds, .n_olds = 2
    };
    struct bytebuf b = { 0 };
    char path[PATH_MAX];

    must_open(f);
    assert_int_equal(clean_manifest_write(f->l, &m), 0);
    file_path(f, CLEAN_MANIFEST, path);
    assert_int_equal(fs_read_file(AT_FDCWD, path, 1000, &b), 0);
    assert_int_equal(b.n, 72);
    assert_memory_equal(b.p, "klogclng", 8);
    assert_int_equal(get_be32(b.p + 8), 2);
    assert_int_equal(get_be32(b.p + 12), crc32c(0, b.p + 16, b.n - 16));
    assert_int_equal(get_be32(b.p + 44), partition_identity(&f->topic_id, 0));
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        assert_int_equal(fields[i][1] == 4 ? get_be32(b.p + fields[i][0]) : get_be64(b.p + fields[i][0]),
                         fields[i][2]);
    bytebuf_done(&b);
    assert_int_equal(clean_manifest_remove(f->l), 0);
    assert_int_equal(file_size(f, CLEAN_MANIFEST), -1);
}

/* It names segments that are there, and a new one that is not: nothing is removed. */
static void a_manifest_without_its_new_segment_deletes_nothing(void **state)
{
    struct fixture *f = *state;
    static const int64_t olds[] = { 0, 1 };
    const struct clean_manifest m = { .anchor = 2, .anchor_text = 4, .size = 5, .olds = olds, .n_olds = 2 };

    must_open(f);
    put(f, "a=1");
    seal_log(f);
    put(f, "a=2");
    seal_log(f);
    assert_int_equal(clean_manifest_write(f->l, &m), 0);
    file_poke(f, "00000000000000000001.log.cleaned", 0, "rest", 4);
    reopen(f, false);
    assert_log(f, "0:a=1 1:a=2 ");
    assert_int_equal(check_text(f), 4);
    assert_int_equal(count_files(f, ".cleaned"), 0);
    assert_int_equal(file_size(f, CLEAN_MANIFEST), -1);
    /* And one that is no manifest. */
    assert_int_equal(clean_manifest_write(f->l, &m), 0);
    file_poke(f, CLEAN_MANIFEST, 20, "x", 1);
    reopen(f, false);
    assert_log(f, "0:a=1 1:a=2 ");
}

/* Says that the exchange of segments 0 and 1 for a new 0 is under way, and whose: 0 is what version 1 said. */
static void put_manifest(struct fixture *f, uint32_t whose)
{
    static const int64_t olds[] = { 0, 1 };
    const struct clean_manifest m = {
        .anchor = 2, .anchor_text = 8, .size = file_size(f, "00000000000000000000.log"), .olds = olds, .n_olds = 2
    };
    struct bytebuf b = { 0 };
    char path[PATH_MAX];

    assert_int_equal(clean_manifest_write(f->l, &m), 0);
    file_path(f, CLEAN_MANIFEST, path);
    assert_int_equal(fs_read_file(AT_FDCWD, path, 1000, &b), 0);
    put_be32(b.p + 8, whose == 0 ? 1 : 2);
    put_be32(b.p + 44, whose);
    put_be32(b.p + 12, crc32c(0, b.p + 16, b.n - 16));
    file_poke(f, CLEAN_MANIFEST, 0, b.p, b.n);
    bytebuf_done(&b);
}

static void only_its_own_manifest_is_followed(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    put(f, "a=1");
    seal_log(f);
    put(f, "a=2");
    seal_log(f);
    put_manifest(f, 4711);
    reopen(f, false);
    assert_log(f, "0:a=1 1:a=2 ");
    assert_non_null(strstr(f->rec.note, "cleaning is another partition's and counts for nothing"));
    assert_int_equal(file_size(f, CLEAN_MANIFEST), -1);
    put_manifest(f, 0);
    reopen(f, false);
    assert_int_equal(file_size(f, "00000000000000000001.log"), -1);
    assert_int_equal(file_size(f, CLEAN_MANIFEST), -1);
}

/* The vectors of the authors' reference implementation: key 00 01 .. 0f, input 00 01 .. (n - 1). */
static void siphash_is_siphash(void **state)
{
    (void)state;
    static const uint8_t empty[16] = { 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6,
                                       0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 };
    static const uint8_t fifteen[16] = { 0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11,
                                         0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3, 0xd9 };
    uint8_t key[16], in[15], out[16];

    for (int i = 0; i < 16; i++)
        key[i] = (uint8_t)i;
    memcpy(in, key, sizeof in);
    siphash128(key, slice_of(in, 0), out);
    assert_memory_equal(out, empty, 16);
    siphash128(key, slice_of(in, 15), out);
    assert_memory_equal(out, fifteen, 16);
}

static void the_map_keeps_the_newest_and_says_when_it_is_full(void **state)
{
    (void)state;
    struct clean_map *m = clean_map_new(&random_real, 24 * 10);
    char key[16];

    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(clean_map_get(m, kstr_of(key)), -1);
        assert_true(clean_map_put(m, kstr_of(key), i));
    }
    assert_int_equal(clean_map_keys(m), 8);
    assert_false(clean_map_put(m, kstr_of("x"), 100));
    assert_true(clean_map_put(m, kstr_of("3"), 100));
    assert_int_equal(clean_map_get(m, kstr_of("3")), 100);
    assert_int_equal(clean_map_get(m, kstr_of("0")), 0);
    assert_int_equal(clean_map_get(m, kstr_of("x")), -1);
    clean_map_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_last_value_of_each_key_stays_with_its_offset),
        T(a_batch_keeps_its_place_and_its_fields),
        T(reading_in_a_gap_gives_the_next_record),
        T(a_segment_ends_where_the_next_begins),
        T(tombstones_go_when_their_horizon_has_passed),
        T(every_codec_stays_what_it_was),
        T(log_append_time_stays),
        T(only_what_is_closed_and_committed_and_flushed_is_touched),
        T(young_records_wait),
        T(records_without_a_key_go),
        T(small_segments_are_joined),
        T(keys_that_do_not_fit_take_several_passes),
        T(far_offsets_stay_in_segments_of_their_own),
        T(producers_are_remembered_by_empty_batches),
        T(markers_stay_and_aborted_records_go),
        T(an_open_span_still_reads_the_old_bytes),
        T(text_positions_behind_the_cleaned_part_do_not_move),
        T(retention_works_on_a_cleaned_log),
        T(truncation_works_on_a_cleaned_log),
        T(a_pass_that_is_stopped_leaves_the_log_alone),
        T(a_damaged_segment_is_refused_untouched),
        T(damaged_caches_of_a_cleaned_segment_are_made_anew),
        T(the_manifest_is_what_the_documents_say),
        T(a_manifest_without_its_new_segment_deletes_nothing),
        T(only_its_own_manifest_is_followed),
        cmocka_unit_test(siphash_is_siphash),
        cmocka_unit_test(the_map_keeps_the_newest_and_says_when_it_is_full),
    };
    return RUN(tests);
}
