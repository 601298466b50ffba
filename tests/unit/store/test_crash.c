/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scripted life of a log is stopped at every call that changes the disk, by a kill or by a power cut, and
 * opened again: what was flushed is there, nothing is half there, offsets go on, deleted ones stay deleted,
 * and a producer that sends again is recognised.
 */
#include "storetest.h"

#include "faultyio.h"

#define RECORD_BYTES 300

struct promise {         /* what the log has confirmed */
    int64_t flushed;     /* everything below is there */
    int64_t appended;    /* nothing at or above was ever offered */
    int64_t start;       /* everything below was deleted */
    int64_t start_tried; /* or may have been */
    int64_t cut_to;      /* a truncation to here may have happened; INT64_MAX */
};

/* Batch k of the life: offsets 2k and 2k + 1, sequences likewise, value filled from k. */
static int put(struct fixture *f, struct promise *p)
{
    struct batch_spec spec = { .n = 2, .value_bytes = RECORD_BYTES, .producer_id = 9 };
    spec.base_sequence = (int32_t)ends_of(f).end_offset;
    spec.timestamp = T0 + spec.base_sequence;
    struct plog_appended a = append_spec(f, &spec);
    if (a.err != KERR_NONE)
        return -1;
    assert_int_equal(a.base_offset, spec.base_sequence);
    p->appended = MAX(p->appended, a.last_offset + 1);
    return 0;
}

static int flush_noting(struct fixture *f, struct promise *p)
{
    if (flush(f) < 0)
        return -1;
    p->flushed = MAX(p->flushed, ends_of(f).flushed_offset);
    return 0;
}

static int open_noting(struct fixture *f)
{
    struct datadir_identity id = { .broker_id = 1 };
    char err[256];
    if (datadir_open(f->path, world_of(f), &id, &f->dd, err, sizeof err) < 0)
        return -1;
    return plog_open(f->dd, "orders", 0, &f->topic_id, &f->cfg, f->now_ms, &f->l, &f->rec) < 0 ? -1 : 0;
}

static int close_noting(struct fixture *f, struct promise *p, bool clean)
{
    struct plog_ends e = ends_of(f);
    int rc = plog_close(f->l, clean, e.end_offset);
    f->l = NULL;
    if (clean && rc == 0)
        p->flushed = MAX(p->flushed, e.end_offset);
    datadir_close(f->dd, clean && rc == 0);
    f->dd = NULL;
    return rc < 0 ? -1 : 0;
}

static int one_day(struct fixture *f, struct promise *p, int day)
{
    if (open_noting(f) < 0)
        return -1;
    f->epoch = day;
    plog_epoch_begin(f->l, day);
    for (int i = 0; i < 14; i++) {
        if (put(f, p) < 0)
            return -1;
        if (i % 3 == 2 && flush_noting(f, p) < 0)
            return -1;
        if (i % 5 == 4 && plog_checkpoint(f->l, ends_of(f).flushed_offset, true) < 0)
            return -1;
    }
    if (day % 4 == 1) {
        p->start_tried = MAX(ends_of(f).end_offset / 2 + 1, p->start);
        if (plog_delete_before(f->l, p->start_tried) < 0)
            return -1;
        p->start = p->start_tried;
    }
    if (day % 4 == 2) {
        int64_t to = MAX(ends_of(f).end_offset - 12, (ends_of(f).start_offset + 1) / 2 * 2);
        p->cut_to = to;
        p->flushed = MIN(p->flushed, to);
        if (plog_truncate(f->l, to) < 0)
            return -1;
        p->appended = to;
        p->cut_to = INT64_MAX;
        if (put(f, p) < 0 || flush_noting(f, p) < 0)
            return -1;
    }
    return close_noting(f, p, day % 4 != 0);
}

static void drop(struct fixture *f)
{
    if (f->l != NULL)
        plog_close(f->l, false, 0);
    datadir_close(f->dd, false);
    f->l = NULL;
    f->dd = NULL;
}

static void live(struct fixture *f, struct promise *p, int first_day)
{
    for (int day = first_day; day < first_day + 4; day++) {
        if (one_day(f, p, day) < 0)
            break;
    }
    drop(f);
}

static void run(struct fixture *f, struct promise *p)
{
    *p = (struct promise){ .cut_to = INT64_MAX };
    live(f, p, 0);
}

/* Offset, timestamp and value of every record are what was put there. */
static void check_records(struct fixture *f)
{
    struct plog_ends e = ends_of(f);
    struct record_iter it;
    struct record r;

    record_iter_init(&it);
    for (int64_t o = e.start_offset / 2 * 2; o < e.end_offset; o += 2) {
        struct plog_span s;
        uint8_t bytes[2048];
        assert_int_equal(plog_read(f->l, MAX(o, e.start_offset), e.end_offset, 1, true, &s), 0);
        assert_true(s.n > 0 && s.n <= (int64_t)sizeof bytes);
        assert_int_equal(plog_span_read(&s, bytes), 0);
        assert_int_equal(record_iter_start(&it, slice_of(bytes, (size_t)s.n), 1 << 20), 0);
        plog_span_release(&s);
        assert_int_equal(plog_epoch_at(f->l, MAX(o, e.start_offset)), it.h.leader_epoch);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(record_iter_next(&it, &r), 1);
            assert_int_equal(r.offset, o + i);
            assert_int_equal(r.timestamp, T0 + o + i);
            assert_int_equal(r.value.n, RECORD_BYTES);
        }
    }
    record_iter_done(&it);
}

static void check_after(struct fixture *f, const struct promise *p)
{
    const struct store_io *io = f->io;
    int64_t text;

    f->io = NULL;
    f->epoch = 99;
    must_open(f);
    struct plog_ends e = ends_of(f);
    assert_true(e.end_offset >= p->flushed);

    assert_true(e.end_offset <= MAX(p->appended, p->flushed) + 2); /* the batch in flight may have made it */
    assert_true(e.start_offset >= MIN(p->start, e.end_offset) && e.start_offset <= p->start_tried);
    assert_int_equal(e.flushed_offset, e.end_offset);
    if (strstr(f->rec.note, "LOST") != NULL)
        fail_msg("%s", f->rec.note);
    check_records(f);
    assert_int_equal(check_log(f), e.end_offset);
    assert_int_equal(plog_text_of_offset(f->l, e.end_offset, &text), 0);
    assert_int_equal(text, e.end_offset * (RECORD_BYTES + 1));
    if (e.end_offset >= e.start_offset + 2) {
        struct batch_spec again = { .n = 2, .value_bytes = RECORD_BYTES, .producer_id = 9 };
        again.base_sequence = (int32_t)e.end_offset - 2;
        struct plog_appended a = append_spec(f, &again);
        assert_true(a.duplicate);
        assert_int_equal(a.base_offset, e.end_offset - 2);
    }
    struct promise more = *p;
    assert_int_equal(put(f, &more), 0);
    drop(f);
    f->io = io;
}

static void wipe(struct fixture *f)
{
    assert_int_equal(fs_remove_tree(AT_FDCWD, f->path), 0);
    assert_int_equal(mkdir(f->path, 0755), 0);
}

enum stop { STOP_KILL, STOP_CUT, STOP_TORN };

static void cut_off(struct faulty *io, enum stop how, uint32_t seed)
{
    if (how == STOP_CUT)
        faulty_power_cut(io, CUT_SYNCED_ONLY, seed);
    else if (how == STOP_TORN)
        faulty_power_cut(io, CUT_TORN, seed);
}

static void sweep(struct fixture *f, enum stop how, int64_t from, int64_t stride)
{
    struct promise p;
    bool hit = true;

    f->cfg.segment_bytes = 2500;
    f->cfg.index_interval_bytes = 600;
    for (int64_t at = from; hit; at += stride) {
        struct faulty *io = faulty_new(f->path);
        f->io = faulty_io(io);
        faulty_arm(io, FAULT_STOP, at, 0, 0);
        run(f, &p);
        hit = faulty_hit(io);
        cut_off(io, how, (uint32_t)at);
        check_after(f, &p);
        f->io = NULL;
        faulty_free(io);
        wipe(f);
    }
}

/* The log is opened after a first stop, lives on, and is stopped again: what the first start settled must hold. */
static void sweep_twice(struct fixture *f, enum stop how, uint32_t seed)
{
    struct promise p;

    f->cfg.segment_bytes = 2500;
    f->cfg.index_interval_bytes = 600;
    for (int round = 0; round < 150; round++) {
        p = (struct promise){ .cut_to = INT64_MAX };
        for (int life = 0; life < 3; life++) {
            struct faulty *io = faulty_new(f->path);
            f->io = faulty_io(io);
            seed = seed * 1664525 + 1013904223;
            faulty_arm(io, FAULT_STOP, (seed >> 8) % 400, 0, 0);
            live(f, &p, 4 * life + (int)(seed >> 4) % 4);
            cut_off(io, how, seed);
            f->io = NULL;
            faulty_free(io);
        }
        check_after(f, &p);
        wipe(f);
    }
}

static void stopped_twice_and_again_nothing_flushed_is_lost(void **state)
{
    sweep_twice(*state, STOP_KILL, 1);
    sweep_twice(*state, STOP_CUT, 2);
    sweep_twice(*state, STOP_TORN, 3);
}

static void killed_at_any_call_nothing_flushed_is_lost(void **state)
{
    sweep(*state, STOP_KILL, 0, 1);
}

static void with_only_synced_bytes_left_nothing_flushed_is_lost(void **state)
{
    sweep(*state, STOP_CUT, 0, 1);
}

static void with_a_torn_rest_nothing_flushed_is_lost(void **state)
{
    sweep(*state, STOP_TORN, 0, 1);
}

/* S2, case C05: a full disk refuses appends, keeps what is there, and takes new ones when there is room
 * again. */
static void a_full_disk_leaves_no_half_batch(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 2500;
    for (int64_t at = 0; at < 40; at++) {
        struct faulty *io = faulty_new(f->path);
        struct promise p = { .cut_to = INT64_MAX };
        f->epoch = 0;
        f->io = faulty_io(io);
        assert_int_equal(open_noting(f), 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(put(f, &p), 0);
        assert_int_equal(flush_noting(f, &p), 0);
        faulty_arm(io, FAULT_ERROR, at, ENOSPC, 6);
        for (int i = 0; i < 14; i++) {
            int64_t end = ends_of(f).end_offset;
            if (put(f, &p) < 0)
                assert_int_equal(ends_of(f).end_offset, end);
            const struct segment *active = plog_active(f->l);
            assert_int_equal(segfile_size(active->log), active->sum.size);
            check_log(f);
        }
        assert_false(datadir_failed(f->dd));
        faulty_arm(io, FAULT_NONE, 0, 0, 0);
        assert_int_equal(put(f, &p), 0);
        assert_int_equal(flush_noting(f, &p), 0);
        drop(f);
        check_after(f, &p);
        f->io = NULL;
        faulty_free(io);
        wipe(f);
    }
}

/* S8: an error of the disk is the end of the directory; nothing is confirmed after it, nothing before it is
 * lost. */
static void a_disk_error_anywhere_loses_nothing_confirmed(void **state)
{
    struct fixture *f = *state;
    struct promise p;
    bool hit = true;

    f->cfg.segment_bytes = 2500;
    f->cfg.index_interval_bytes = 600;
    for (int64_t at = 0; hit; at++) {
        struct faulty *io = faulty_new(f->path);
        f->io = faulty_io(io);
        faulty_arm(io, FAULT_ERROR, at, EIO, 0);
        run(f, &p);
        hit = faulty_hit(io);
        faulty_power_cut(io, CUT_SYNCED_ONLY, 0);
        check_after(f, &p);
        f->io = NULL;
        faulty_free(io);
        wipe(f);
    }
}

/* In memory where that is to be had: nothing here depends on a disk, and there are thousands of openings. */
static int setup(void **state)
{
    int rc = fixture_setup(state);
    struct fixture *f = *state;
    char path[] = "/dev/shm/store-test-XXXXXX";

    if (rc == 0 && mkdtemp(path) != NULL) {
        rmdir(f->path);
        snprintf(f->path, sizeof f->path, "%s", path);
    }
    return rc;
}

#undef T
#define T(f) cmocka_unit_test_setup_teardown(f, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(killed_at_any_call_nothing_flushed_is_lost),
        T(with_only_synced_bytes_left_nothing_flushed_is_lost),
        T(with_a_torn_rest_nothing_flushed_is_lost),
        T(stopped_twice_and_again_nothing_flushed_is_lost),
        T(a_full_disk_leaves_no_half_batch),
        T(a_disk_error_anywhere_loses_nothing_confirmed),
    };
    return RUN(tests);
}
