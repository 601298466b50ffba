/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every open of a log at work fails once for want of a descriptor, one after the other: appends with rolls, flushes,
 * checkpoints, reads, times, retention, deletion. What could not be done is an error; the log directory is not given
 * up, what was appended is there, and all can be done afterwards.
 */
#include "simtest.h"

enum { ROUNDS = 12, RECORD_BYTES = 700 };

struct outcome {
    int64_t appended;
    int failed;
};

static void count(struct outcome *o, int rc)
{
    o->failed += rc < 0;
}

static void append_one(struct fixture *f, struct outcome *o)
{
    int64_t end = ends_of(f).end_offset;
    struct plog_appended a = append_n(f, 1, RECORD_BYTES);
    if (a.err == KERR_NONE)
        assert_int_equal(a.base_offset, end);
    o->appended += a.err == KERR_NONE;
    o->failed += a.err != KERR_NONE;
    assert_int_equal(ends_of(f).end_offset, end + (a.err == KERR_NONE));
}

static void look(struct fixture *f, struct outcome *o)
{
    struct plog_ends e = ends_of(f);
    struct plog_span span;
    int64_t offset, ts;
    int rc = plog_read(f->l, e.start_offset, e.end_offset, 1 << 20, true, &span);
    if (rc == 0)
        plog_span_release(&span);
    count(o, rc);
    count(o, plog_find_time(f->l, 1, e.end_offset, &offset, &ts));
    rc = plog_offset_of_text(f->l, 0, &offset, &ts);
    count(o, rc == -ERANGE ? 0 : rc); /* what retention took */
}

static void work(struct fixture *f, struct outcome *o)
{
    for (int i = 0; i < ROUNDS; i++) {
        append_one(f, o);
        count(o, flush(f));
        if (i % 3 == 2)
            look(f, o);
    }
    struct plog_ends e = ends_of(f);
    count(o, plog_checkpoint(f->l, e.end_offset, true));
    count(o, plog_delete_before(f->l, e.end_offset / 2));
    count(o, plog_retain(f->l, e.end_offset, INT64_C(1) << 50));
    look(f, o);
}

static void no_open_that_fails_costs_more_than_its_own_work(void **state)
{
    struct fixture *f = *state;
    int with_failures = 0;
    bool hit = true;

    f->cfg.segment_bytes = 3000;
    for (int at = 0; hit; at++) {
        struct simdisk *d = disk_new(f, (uint64_t)at);
        struct outcome o = { 0 };
        must_open(f);
        append_one(f, &o);
        disk_fails(d, DISK_OPENS, EMFILE, at, 3);
        work(f, &o);
        hit = simdisk_plan_was_hit(d);
        simdisk_plan(d, NULL, 0);
        assert_false(datadir_failed(f->dd));
        assert_int_equal(ends_of(f).end_offset, o.appended);
        with_failures += o.failed > 0;

        struct outcome after = { .appended = o.appended };
        append_one(f, &after);
        assert_int_equal(flush(f), 0);
        look(f, &after);
        assert_int_equal(after.failed, 0);
        struct plog_ends e = ends_of(f);
        assert_int_equal(e.flushed_offset, e.end_offset);
        assert_int_equal(check_log(f), e.end_offset);
        reopen(f, false);
        assert_int_equal(ends_of(f).end_offset, after.appended);
        assert_int_equal(check_log(f), after.appended);
        shut(f, true);
        disk_free(f, d);
    }
    assert_true(with_failures > 3);
    must_open(f);
}

/* A lying index is made anew, and there is no room for it, from some call on: the reader is told that, however often he asks,
 * and not that the log is damaged; when there is room he reads. */
static void sweep_mending(struct fixture *f, int n)
{
    bool hit = true;

    f->cfg.segment_bytes = 20000;
    f->cfg.index_interval_bytes = 600;
    for (int64_t from = 0; hit; from++) {
        struct simdisk *d = disk_new(f, (uint64_t)from);
        must_open(f);
        for (int i = 0; i < n; i++)
            append_n(f, 1, RECORD_BYTES);
        assert_int_equal(flush(f), 0);
        shut(f, true);
        for (int64_t at = 7; simdisk_poke(d, "/d/orders-0/00000000000000000000.index", "\1", 1, at);)
            at += INDEX_ENTRY_BYTES;
        must_open(f);
        disk_fails(d, DISK_CHANGES, ENOSPC, from, 1000);
        for (int i = 0; i < 12; i++) {
            struct plog_span span;
            if (i == 10) {
                hit = simdisk_plan_was_hit(d);
                simdisk_plan(d, NULL, 0);
            }
            int rc = plog_read(f->l, i, n, 1, true, &span);
            assert_true(rc == 0 || (i < 10 && rc == -ENOSPC));
            assert_true(rc != 0 || span.base_offset == i);
            plog_span_release(&span);
        }
        drop(f);
        disk_free(f, d);
    }
}

static void a_mending_that_finds_no_room_is_no_damage(void **state)
{
    sweep_mending(*state, 60);
    sweep_mending(*state, 20); /* of the segment that is written to */
    must_open(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(no_open_that_fails_costs_more_than_its_own_work),
        T(a_mending_that_finds_no_room_is_no_damage),
    };
    return RUN(tests);
}
