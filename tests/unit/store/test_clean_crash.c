/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleaning is stopped at every call that changes the disk, by a kill, a power cut or an error, and the log
 * opened again (S13): the newest flushed record of each key is there at its offset, no older one has come
 * back behind it, a deleted key stays deleted, text positions at the end are what they were, and the next
 * pass brings the log to where it would have got.
 */
#include "cleantest.h"

#include "simtest.h"
#include "lib/store/clean_int.h"

#define KEYS      5
#define PUTS_MAX  128
#define RETENTION 1000

struct life {
    int64_t appended;           /* records put: offset o has key o % KEYS, but every 7th is a tombstone */
    int64_t text[PUTS_MAX + 1]; /* text position of offset o */
    int64_t flushed;
    int64_t first_dirty;
};

static bool is_tombstone(int64_t offset)
{
    return offset % 7 == 6;
}

static int put_next(struct fixture *f, struct life *g)
{
    char text[128];
    int64_t o = g->appended;
    struct keyed k = { .text = text, .timestamp = T0 + o, .producer_id = 3, .sequence = (int32_t)o };
    struct bytebuf b = { 0 };
    int64_t n;

    assert_true(o < PUTS_MAX);
    if (is_tombstone(o))
        snprintf(text, sizeof text, "k%d", (int)(o % KEYS));
    else
        snprintf(text, sizeof text, "k%d=%lld-%.*s", (int)(o % KEYS), (long long)o, 40,
                 "........................................");
    if (o % 3 == 0)
        k.codec = CODEC_LZ4;
    keyed_batch(&k, &b, &n);
    struct plog_appended a = put_bytes(f, &b, n);
    if (a.err != KERR_NONE)
        return -1;
    assert_int_equal(a.base_offset, o);
    g->text[o + 1] = g->text[o] + n;
    g->appended = o + 1;
    return 0;
}

static int flush_noting(struct fixture *f, struct life *g)
{
    if (flush(f) < 0)
        return -1;
    g->flushed = MAX(g->flushed, ends_of(f).flushed_offset);
    return 0;
}

static int put_some(struct fixture *f, struct life *g, int n)
{
    for (int i = 0; i < n; i++) {
        if (put_next(f, g) < 0)
            return -1;
    }
    f->now_ms += 10;
    if (plog_roll_if_older(f->l, 0, f->now_ms) < 0)
        return -1;
    return flush_noting(f, g);
}

static int clean_noting(struct fixture *f, struct life *g)
{
    struct clean_options o = {
        .first_dirty = g->first_dirty,
        .limit = ends_of(f).flushed_offset,
        .now_ms = f->now_ms,
        .delete_retention_ms = RETENTION,
        .map_bytes = 1 << 12,
    };
    struct clean_result r;

    if (plog_clean(f->l, &o, &r) < 0)
        return -1;
    g->first_dirty = r.first_dirty;
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

/* Until the cleaning starts nothing is to be swept: test_crash.c does that. */
static void before(struct fixture *f, struct life *g)
{
    *g = (struct life){ 0 };
    f->now_ms = T0;
    f->cfg.segment_bytes = 700;
    f->cfg.index_interval_bytes = 150;
    assert_int_equal(open_noting(f), 0);
    assert_int_equal(put_some(f, g, 12), 0);
    assert_int_equal(plog_checkpoint(f->l, 12, true), 0);
    assert_int_equal(put_some(f, g, 8), 0);
}

static void life(struct fixture *f, struct life *g)
{
    if (clean_noting(f, g) < 0)
        return;
    f->now_ms += 10 * RETENTION;
    if (put_some(f, g, 9) < 0 || clean_noting(f, g) < 0)
        return;
    f->now_ms += 10 * RETENTION;
    if (plog_checkpoint(f->l, g->flushed, true) < 0 || clean_noting(f, g) < 0)
        return;
    if (put_some(f, g, 3) < 0)
        return;
    if (plog_close(f->l, true, g->appended) == 0)
        datadir_close(f->dd, true);
    else
        datadir_close(f->dd, false);
    f->l = NULL;
    f->dd = NULL;
}

/* ---- what is there ---- */

struct seen {
    int64_t last[KEYS]; /* offset of each key's last record, -1 */
    int64_t next;
};

static void see(void *arg, const struct batch_header *h, struct slice batch)
{
    struct seen *s = arg;
    struct record_iter it;
    struct record r;
    char want[32];

    assert_true(h->base_offset >= s->next);
    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, batch, 1 << 20), 0);
    while (record_iter_next(&it, &r) == 1) {
        int key = r.key.p[1] - '0';
        assert_int_equal(r.offset % KEYS, key);
        assert_int_equal(r.timestamp, T0 + r.offset);
        assert_int_equal(kstr_is_null(r.value), is_tombstone(r.offset));
        snprintf(want, sizeof want, "%lld-", (long long)r.offset);
        assert_true(is_tombstone(r.offset) || strncmp(r.value.p, want, strlen(want)) == 0);
        s->last[key] = r.offset;
    }
    record_iter_done(&it);
    s->next = batch_last_offset(h) + 1;
}

static void check_keys(struct fixture *f)
{
    struct seen s = { .last = { -1, -1, -1, -1, -1 } };
    int64_t end = ends_of(f).end_offset;

    each_batch(f, 0, see, &s);
    assert_int_equal(s.next, end);
    for (int64_t o = MAX(end - KEYS, 0); o < end; o++) {
        if (s.last[o % KEYS] != o)
            assert_true(is_tombstone(o) && s.last[o % KEYS] == -1);
    }
}

static void check_after(struct fixture *f, struct life *g)
{
    int64_t text;

    must_open(f);
    struct plog_ends e = ends_of(f);
    assert_true(e.end_offset >= g->flushed && e.end_offset <= g->appended + 1);
    assert_int_equal(e.start_offset, 0);
    assert_null(strstr(f->rec.note, "LOST"));
    assert_int_equal(count_files(f, ".cleaned"), 0);
    assert_int_equal(file_size(f, CLEAN_MANIFEST), -1);
    check_keys(f);
    check_text(f);
    assert_int_equal(plog_text_of_offset(f->l, MIN(e.end_offset, g->appended), &text), 0);
    assert_int_equal(text, g->text[MIN(e.end_offset, g->appended)]);
    if (e.end_offset > 0) {
        struct keyed again = { .text = "k0", .producer_id = 3, .sequence = (int32_t)e.end_offset - 1 };
        struct plog_appended a = put_keyed(f, &again);
        assert_true(a.duplicate);
        assert_int_equal(a.base_offset, e.end_offset - 1);
    }
    struct life more = *g;
    assert_int_equal(plog_text_of_offset(f->l, e.end_offset, &more.text[e.end_offset]), 0);
    more.appended = more.flushed = e.end_offset; /* a start says that all of it is on the disk */
    more.first_dirty = 0;
    f->now_ms += 100 * RETENTION;
    assert_int_equal(put_some(f, &more, 1), 0);
    assert_int_equal(clean_noting(f, &more), 0);
    check_keys(f);
    check_text(f);
    drop(f);
    *g = more;
}

/* What goes wrong at call `at` of the life: SWEEP_STOP + enum stop, or an error, no room, no descriptors. */
enum sweep { SWEEP_ERROR, SWEEP_FULL, SWEEP_OPENS, SWEEP_STOP };

static void disturb(struct simdisk *d, int how, int64_t at)
{
    struct simdisk_fault f = { .ops = DISK_CHANGES, .at = at, .n = 1, .eno = EIO };

    if (how >= SWEEP_STOP) {
        simdisk_stop_in(d, at);
        return;
    }
    if (how == SWEEP_FULL)
        f = (struct simdisk_fault){
            .ops = DISK_GROWS,
            .at = at,
            .n = 4,
            .eno = ENOSPC,
            .part = true,
        };
    if (how == SWEEP_OPENS)
        f = (struct simdisk_fault){ .ops = DISK_OPENS, .at = at, .n = 3, .eno = EMFILE };
    simdisk_plan(d, &f, 1);
}

static bool was_disturbed(struct simdisk *d, int how)
{
    return how >= SWEEP_STOP ? simdisk_stopped(d) : simdisk_plan_was_hit(d);
}

/* After the first look, which cleans again, the disk is cut off once more. */
static int64_t sweep(struct fixture *f, int how, int64_t stride)
{
    struct life g;
    bool hit = true;
    int64_t at;

    for (at = 0; hit; at += stride * test_step()) {
        struct simdisk *d = disk_new(f, (uint64_t)(at * 100 + how));
        before(f, &g);
        disturb(d, how, at);
        life(f, &g);
        hit = was_disturbed(d, how);
        simdisk_plan(d, NULL, 0);
        if (how == SWEEP_OPENS && f->dd != NULL)
            assert_false(datadir_failed(f->dd));
        drop(f);
        if (how >= SWEEP_STOP)
            end_life(d, how - SWEEP_STOP);
        else if (how == SWEEP_ERROR)
            simdisk_power_cut(d, SIMDISK_CUT_NONE);
        check_after(f, &g);
        simdisk_power_cut_any(d);
        check_after(f, &g);
        disk_free(f, d);
    }
    return at;
}

static void killed_at_any_call_of_a_pass_nothing_is_lost(void **state)
{
    assert_true(sweep(*state, SWEEP_STOP + STOP_KILL, 1) > 150);
}

static void with_only_synced_bytes_left_nothing_is_lost(void **state)
{
    sweep(*state, SWEEP_STOP + STOP_CUT + SIMDISK_CUT_NONE, 1);
}

static void with_a_torn_rest_nothing_is_lost(void **state)
{
    for (int cut = SIMDISK_CUT_IN_ORDER; cut < SIMDISK_CUTS; cut++)
        sweep(*state, SWEEP_STOP + STOP_CUT + cut, 1);
}

static void an_error_of_the_disk_loses_nothing(void **state)
{
    sweep(*state, SWEEP_ERROR, 1);
}

static void a_full_disk_only_puts_cleaning_off(void **state)
{
    sweep(*state, SWEEP_FULL, 1);
}

static void a_shortage_of_descriptors_only_puts_cleaning_off(void **state)
{
    assert_true(sweep(*state, SWEEP_OPENS, 1) > 20);
}

/* Often while it starts, when it finishes an exchange that was under way. */
static void many_lives(struct fixture *f, uint64_t seed)
{
    struct rnd r = rnd_of(seed, RND_CUT, 0);
    struct simdisk *d = disk_new(f, seed);
    struct life g;

    before(f, &g);
    for (int n = 2 + (int)rnd_below(&r, 3); n > 0; n--) {
        simdisk_stop_in(d, rnd_one_in(&r, 2) ? rnd_range(&r, 0, 25) : rnd_range(&r, 0, 300));
        if (f->l != NULL || open_noting(f) == 0)
            life(f, &g);
        drop(f);
        simdisk_stop_in(d, -1);
        end_life(d, (int)rnd_below(&r, STOP_CUT + SIMDISK_CUTS));
        if (rnd_one_in(&r, 2))
            check_after(f, &g);
        g.appended = MAX(g.appended, g.flushed);
    }
    check_after(f, &g);
    disk_free(f, d);
}

static void stopped_again_and_again_nothing_is_lost(void **state)
{
    each_seed(*state, 400, many_lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(killed_at_any_call_of_a_pass_nothing_is_lost),
        T(with_only_synced_bytes_left_nothing_is_lost),
        T(with_a_torn_rest_nothing_is_lost),
        T(stopped_again_and_again_nothing_is_lost),
        T(an_error_of_the_disk_loses_nothing),
        T(a_full_disk_only_puts_cleaning_off),
        T(a_shortage_of_descriptors_only_puts_cleaning_off),
    };
    return RUN(tests);
}
