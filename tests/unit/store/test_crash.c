/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scripted life of a log is stopped at every call that changes the disk, by a kill or by a power cut, and
 * opened again: what was flushed is there, nothing is half there, offsets go on, deleted ones stay deleted,
 * what was cut off does not come back, and a producer that sends again is recognised. What a start says is on the disk
 * must be there after the next cut, too.
 */
#include "simtest.h"

#define RECORD_BYTES 300

enum { OFFSETS_MAX = 4096 };

/* What the log has confirmed. Each batch says in its records how many were put before it, ever: its edition. */
struct promise {
    int64_t flushed;     /* everything below is there */
    int64_t appended;    /* nothing at or above was ever offered */
    int64_t start;       /* everything below was deleted */
    int64_t start_tried; /* or may have been */
    int64_t editions;
    int64_t cut_end;     /* a truncation that has not come to its end had begun there: a power cut may bring back what it cut */
    int64_t life_from;                    /* the first edition of this life, or since the last truncation */
    int64_t seen[OFFSETS_MAX / 2];        /* editions that the last start found; 0 none */
    int64_t put[OFFSETS_MAX / 2];         /* the latest put there */
};

static void make_edition(int64_t offset, int64_t edition, struct bytebuf *ret)
{
    struct batch_producer p = { .id = 9, .base_sequence = (int32_t)offset };
    struct batch_builder b;
    char v[RECORD_BYTES];

    memset(v, 'v', sizeof v);
    snprintf(v, sizeof v, "%lld ", (long long)edition);
    batch_builder_init(&b);
    for (int i = 0; i < 2; i++)
        batch_builder_add(&b, T0 + offset + i, KSTR_NULL, kstr_bytes(v, sizeof v), NULL, 0);
    assert_int_equal(batch_builder_finish(&b, CODEC_NONE, 0, &p, 0, ret), 0);
    batch_builder_done(&b);
}

/* Offsets and sequences of a batch are the same. */
static struct plog_appended append_edition(struct fixture *f, int64_t offset, int64_t edition)
{
    struct batch_info info = { .text_bytes = 2 * (RECORD_BYTES + 1) };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct plog_appended a;

    make_edition(offset, edition, &b);
    batch_header_read(b.p, &info.h);
    plog_append(f->l, b.p, b.n, &info, f->epoch, f->now_ms, -1, &a);
    return a;
}

static int put(struct fixture *f, struct promise *p)
{
    int64_t at = ends_of(f).end_offset, before = p->put[at / 2];

    assert_true(at + 2 < OFFSETS_MAX);
    p->put[at / 2] = ++p->editions;
    struct plog_appended a = append_edition(f, at, p->editions);
    if (a.err != KERR_NONE) {
        if (!simdisk_stopped(f->io->ctx) && !datadir_failed(f->dd))
            p->put[at / 2] = before; /* S2: nothing of it stays */
        return -1;
    }
    assert_int_equal(a.base_offset, at);
    p->appended = MAX(p->appended, a.last_offset + 1);
    return 0;
}

static int flush_noting(struct fixture *f, struct promise *p)
{
    int64_t before = ends_of(f).flushed_offset;

    if (flush(f) < 0)
        return -1;
    if (ends_of(f).flushed_offset > before)
        p->cut_end = 0;
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

static int delete_some(struct fixture *f, struct promise *p)
{
    int64_t to = MAX(ends_of(f).end_offset / 2 + 1, ends_of(f).start_offset);

    p->start_tried = MAX(p->start_tried, to);
    if (plog_delete_before(f->l, to) < 0)
        return -1;
    p->start = to;
    return 0;
}

static int retain_some(struct fixture *f, struct promise *p)
{
    p->start_tried = MAX(p->start_tried, p->flushed);
    if (plog_retain(f->l, p->flushed, f->now_ms) < 0)
        return -1;
    p->start = ends_of(f).start_offset;
    return 0;
}

static int cut_some(struct fixture *f, struct promise *p)
{
    int64_t to = MAX(ends_of(f).end_offset - 12, (ends_of(f).start_offset + 1) / 2 * 2);

    p->flushed = MIN(p->flushed, to);
    p->cut_end = ends_of(f).end_offset;
    if (plog_truncate(f->l, to) < 0)
        return -1;
    p->cut_end = 0;
    p->appended = to;
    for (int64_t o = to; o < OFFSETS_MAX; o += 2)
        p->seen[o / 2] = p->put[o / 2] = 0;
    p->life_from = p->editions + 1;
    return put(f, p) < 0 ? -1 : flush_noting(f, p);
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
        for (int twice = 0; i % 5 == 4 && twice < 2; twice++) /* the second time with a snapshot that waits for the flush point */
            if (plog_checkpoint(f->l, ends_of(f).flushed_offset, true) < 0)
                return -1;
    }
    if (day % 4 == 1 && delete_some(f, p) < 0)
        return -1;
    if (day % 4 == 2 && cut_some(f, p) < 0)
        return -1;
    if (day % 4 == 3 && f->cfg.retention_bytes >= 0 && retain_some(f, p) < 0)
        return -1;
    return close_noting(f, p, day % 4 != 0);
}

static void live(struct fixture *f, struct promise *p, int first_day)
{
    p->life_from = p->editions + 1;
    for (int day = first_day; day < first_day + 4; day++) {
        if (one_day(f, p, day) < 0)
            break;
    }
    drop(f);
}

/* The edition in both records of the batch at o. */
static int64_t check_batch(struct fixture *f, struct record_iter *it, int64_t o)
{
    struct plog_ends e = ends_of(f);
    struct plog_span s;
    uint8_t bytes[2048];
    struct record r;
    int64_t edition = 0;

    assert_int_equal(plog_read(f->l, MAX(o, e.start_offset), e.end_offset, 1, true, &s), 0);
    assert_true(s.n > 0 && s.n <= (int64_t)sizeof bytes);
    assert_int_equal(plog_span_read(&s, bytes), 0);
    assert_int_equal(record_iter_start(it, slice_of(bytes, (size_t)s.n), 1 << 20), 0);
    plog_span_release(&s);
    assert_int_equal(plog_epoch_at(f->l, MAX(o, e.start_offset)), it->h.leader_epoch);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(record_iter_next(it, &r), 1);
        assert_int_equal(r.offset, o + i);
        assert_int_equal(r.timestamp, T0 + o + i);
        assert_int_equal(r.value.n, RECORD_BYTES);
        edition = strtoll((const char *)r.value.p, NULL, 10);
    }
    return edition;
}

/* Offset, timestamp and value of every record are what was put there, and last of what was confirmed. */
static void check_records(struct fixture *f, struct promise *p)
{
    struct plog_ends e = ends_of(f);
    struct record_iter it;

    record_iter_init(&it);
    for (int64_t o = e.start_offset / 2 * 2; o < e.end_offset; o += 2) {
        int64_t edition = check_batch(f, &it, o), put = p->put[o / 2], seen = p->seen[o / 2];
        if (o < p->flushed)
            assert_int_equal(edition, put != 0 ? put : seen);
        else
            assert_true(edition == seen || (edition >= p->life_from && edition <= put) || edition == put);
        p->seen[o / 2] = p->put[o / 2] = edition;
    }
    for (int64_t o = MAX(e.end_offset, p->cut_end); o < OFFSETS_MAX; o += 2)
        p->seen[o / 2] = p->put[o / 2] = 0;
    record_iter_done(&it);
}

static void check_repeats_are_known(struct fixture *f, const struct plog_ends *e)
{
    if (e->end_offset < e->start_offset + 2)
        return;
    struct plog_appended a = append_edition(f, e->end_offset - 2, 1);
    assert_true(a.duplicate);
    assert_int_equal(a.base_offset, e->end_offset - 2);
}

/* Opens it, undisturbed, and leaves it as by a kill. Everything that is there is promised from now on. */
static void check_after(struct fixture *f, struct promise *p)
{
    int64_t text;

    f->epoch = 99;
    must_open(f);
    struct plog_ends e = ends_of(f);
    assert_true(e.end_offset >= p->flushed);
    assert_true(e.end_offset <= MAX(MAX(p->appended, p->flushed), p->cut_end) + 2); /* the batch in flight may have made it */
    assert_true(e.start_offset >= MIN(p->start, e.end_offset) && e.start_offset <= p->start_tried);
    assert_int_equal(e.flushed_offset, e.end_offset);
    if (strstr(f->rec.note, "LOST") != NULL)
        fail_msg("%s", f->rec.note);
    check_records(f, p);
    assert_int_equal(check_log(f), e.end_offset);
    assert_int_equal(plog_text_of_offset(f->l, e.end_offset, &text), 0);
    assert_int_equal(text, e.end_offset * (RECORD_BYTES + 1));
    check_repeats_are_known(f, &e);
    p->flushed = p->appended = e.end_offset;
    p->start = e.start_offset;
    drop(f);
}

static void check_goes_on(struct fixture *f, struct promise *p)
{
    f->epoch = 1000;
    must_open(f);
    assert_int_equal(put(f, p), 0);
    assert_int_equal(flush_noting(f, p), 0);
    drop(f);
}

static void small_segments(struct fixture *f)
{
    f->cfg.segment_bytes = 2500;
    f->cfg.index_interval_bytes = 600;
}

/* One life, stopped at each call; then what the start made of it is stopped, too. */
static void sweep(struct fixture *f, int how)
{
    bool hit = true;

    small_segments(f);
    for (int64_t at = 0; hit; at += test_step()) {
        struct simdisk *d = disk_new(f, (uint64_t)at * 100 + (uint64_t)how);
        CLEANUP(freep) struct promise *p = xcalloc(1, sizeof *p);
        simdisk_stop_in(d, at);
        live(f, p, 0);
        hit = simdisk_stopped(d);
        end_life(d, how);
        check_after(f, p);
        end_life(d, how == STOP_KILL ? STOP_CUT + SIMDISK_CUT_NONE : how);
        check_after(f, p);
        check_goes_on(f, p);
        disk_free(f, d);
    }
}

static void killed_at_any_call_nothing_flushed_is_lost(void **state)
{
    sweep(*state, STOP_KILL);
}

static void with_only_synced_bytes_left_nothing_flushed_is_lost(void **state)
{
    sweep(*state, STOP_CUT + SIMDISK_CUT_NONE);
}

static void with_what_was_done_in_order_nothing_flushed_is_lost(void **state)
{
    sweep(*state, STOP_CUT + SIMDISK_CUT_IN_ORDER);
}

static void with_some_files_pages_or_sectors_lost_nothing_flushed_is_lost(void **state)
{
    sweep(*state, STOP_CUT + SIMDISK_CUT_FILES);
    sweep(*state, STOP_CUT + SIMDISK_CUT_PAGES);
    sweep(*state, STOP_CUT + SIMDISK_CUT_SECTORS);
}

/* What goes wrong in a life, beside its end: syncs and write-backs that fail, little room, few descriptors. */
static void disturb(struct simdisk *d, struct rnd *r)
{
    struct simdisk_chances c = { .write_back = rnd_one_in(r, 2) ? 50000 : 0, .part = rnd_one_in(r, 4) ? 50000 : 0 };

    if (rnd_one_in(r, 4)) {
        c.fail[SIMDISK_SYNC] = c.fail[SIMDISK_WRITE] = 3000;
        c.lost = 100000;
    }
    simdisk_set_chances(d, &c);
    if (rnd_one_in(r, 4))
        simdisk_set_capacity(d, simdisk_used(d) + rnd_range(r, 0, 100000));
    if (rnd_one_in(r, 6))
        simdisk_set_fd_limit(d, (int)rnd_range(r, 2, 30));
}

static void calm_down(struct simdisk *d)
{
    simdisk_stop_in(d, -1);
    simdisk_set_chances(d, &(struct simdisk_chances){ .write_back = 20000 });
    simdisk_set_capacity(d, 0);
    simdisk_set_fd_limit(d, 0);
}

/* Several lives, each stopped somewhere, often while it starts; not each is looked at. */
static void many_lives(struct fixture *f, uint64_t seed)
{
    struct rnd r = rnd_of(seed, RND_CUT, 0);
    struct simdisk *d = disk_new(f, seed);
    CLEANUP(freep) struct promise *p = xcalloc(1, sizeof *p);
    int lives = 2 + (int)rnd_below(&r, 4);

    small_segments(f);
    f->cfg.retention_bytes = rnd_one_in(&r, 3) ? 9000 : -1;
    for (int life = 0; life < lives; life++) {
        simdisk_stop_in(d, rnd_one_in(&r, 3) ? rnd_range(&r, 0, 20) : rnd_range(&r, 0, 500));
        disturb(d, &r);
        live(f, p, 4 * life + (int)rnd_below(&r, 4));
        calm_down(d);
        end_life(d, (int)rnd_below(&r, STOP_CUT + SIMDISK_CUTS));
        if (rnd_one_in(&r, 4))
            simdisk_drop_cache(d); /* of what was lost */
        if (rnd_one_in(&r, 2))
            check_after(f, p);
    }
    check_after(f, p);
    check_goes_on(f, p);
    disk_free(f, d);
}

static void stopped_again_and_again_nothing_flushed_is_lost(void **state)
{
    each_seed(*state, 400, many_lives);
}

/* S2, case C05: a full disk refuses appends, keeps what is there, and takes new ones when there is room
 * again. */
static void a_full_disk_leaves_no_half_batch(void **state)
{
    struct fixture *f = *state;

    small_segments(f);
    for (int64_t room = 0; room < 40000; room += 500) {
        struct simdisk *d = disk_new(f, (uint64_t)room);
        CLEANUP(freep) struct promise *p = xcalloc(1, sizeof *p);
        int64_t refused = 0;
        f->epoch = 0;
        p->life_from = 1;
        assert_int_equal(open_noting(f), 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(put(f, p), 0);
        assert_int_equal(flush_noting(f, p), 0);
        simdisk_set_capacity(d, simdisk_used(d) + room);
        for (int i = 0; i < 14; i++) {
            int64_t end = ends_of(f).end_offset;
            if (put(f, p) < 0) {
                assert_int_equal(ends_of(f).end_offset, end);
                refused++;
            }
            const struct segment *active = plog_active(f->l);
            assert_int_equal(segfile_size(active->log), active->sum.size);
            check_log(f);
        }
        assert_true(refused > 0 || room > 30000);
        assert_false(datadir_failed(f->dd));
        simdisk_set_capacity(d, 0);
        assert_int_equal(put(f, p), 0);
        assert_int_equal(flush_noting(f, p), 0);
        drop(f);
        check_after(f, p);
        disk_free(f, d);
    }
}

/* An error at each call that changes something. killed: the process ends and the page cache stays, with what the failed sync
 * was about called clean in it. */
static void sweep_errors(struct fixture *f, bool killed)
{
    bool hit = true;

    small_segments(f);
    for (int64_t at = 0; hit; at += test_step()) {
        const struct simdisk_fault fault = { .ops = DISK_CHANGES, .at = at, .n = 1, .eno = EIO, .part = at % 2 };
        struct simdisk *d = disk_new(f, (uint64_t)at);
        CLEANUP(freep) struct promise *p = xcalloc(1, sizeof *p);
        simdisk_plan(d, &fault, 1);
        live(f, p, 0);
        hit = simdisk_plan_was_hit(d);
        simdisk_plan(d, NULL, 0);
        if (killed) {
            simdisk_kill(d);
            check_after(f, p);
            simdisk_power_cut(d, SIMDISK_CUT_ALL);
        } else {
            simdisk_power_cut_any(d);
        }
        check_after(f, p);
        check_goes_on(f, p);
        disk_free(f, d);
    }
}

/* S8: an error of the disk is the end of the directory; nothing is confirmed after it, nothing before it is
 * lost. */
static void a_disk_error_anywhere_loses_nothing_confirmed(void **state)
{
    sweep_errors(*state, false);
}

/* S9: a start writes again what may be in memory only. */
static void what_a_start_shows_after_a_failed_sync_is_on_the_disk(void **state)
{
    sweep_errors(*state, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(killed_at_any_call_nothing_flushed_is_lost),
        T(with_only_synced_bytes_left_nothing_flushed_is_lost),
        T(with_what_was_done_in_order_nothing_flushed_is_lost),
        T(with_some_files_pages_or_sectors_lost_nothing_flushed_is_lost),
        T(stopped_again_and_again_nothing_flushed_is_lost),
        T(a_full_disk_leaves_no_half_batch),
        T(a_disk_error_anywhere_loses_nothing_confirmed),
        T(what_a_start_shows_after_a_failed_sync_is_on_the_disk),
    };
    return RUN(tests);
}
