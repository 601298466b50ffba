/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleaning is stopped at every call that changes the disk, by a kill, a power cut or an error, and the log
 * opened again (S13): the newest flushed record of each key is there at its offset, no older one has come
 * back behind it, a deleted key stays deleted, text positions at the end are what they were, and the next
 * pass brings the log to where it would have got.
 */
#include "cleantest.h"

#include "faultyio.h"
#include "lib/base/clock.h"
#include "lib/store/clean_int.h"

#define KEYS      5
#define PUTS_MAX  64
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

static void drop(struct fixture *f)
{
    if (f->l != NULL)
        plog_close(f->l, false, 0);
    datadir_close(f->dd, false);
    f->l = NULL;
    f->dd = NULL;
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
    const struct store_io *io = f->io;
    int64_t text;

    f->io = NULL;
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
    more.appended = e.end_offset;
    more.first_dirty = 0;
    f->now_ms = clock_wall_ms() + 1000;
    assert_int_equal(put_some(f, &more, 1), 0);
    assert_int_equal(clean_noting(f, &more), 0);
    check_keys(f);
    check_text(f);
    drop(f);
    f->io = io;
}

static void wipe(struct fixture *f)
{
    assert_int_equal(fs_remove_tree(AT_FDCWD, f->path), 0);
    assert_int_equal(mkdir(f->path, 0755), 0);
}

enum stop { STOP_KILL, STOP_CUT, STOP_TORN, STOP_ERROR, STOP_FULL, STOP_OPENS };

static int64_t sweep(struct fixture *f, enum stop how, int64_t stride)
{
    struct life g;
    bool hit = true;
    int64_t at;

    for (at = 0; hit; at += stride) {
        struct faulty *io = faulty_new(f->path);
        f->io = faulty_io(io);
        before(f, &g);
        if (how == STOP_ERROR)
            faulty_arm(io, FAULT_ERROR, at, EIO, 0);
        else if (how == STOP_FULL)
            faulty_arm(io, FAULT_ERROR, at, ENOSPC, 3);
        else if (how == STOP_OPENS)
            faulty_arm(io, FAULT_OPEN, at, EMFILE, 2);
        else
            faulty_arm(io, FAULT_STOP, at, 0, 0);
        life(f, &g);
        hit = faulty_hit(io);
        if (how == STOP_OPENS && f->dd != NULL)
            assert_false(datadir_failed(f->dd));
        drop(f);
        if (how == STOP_CUT || how == STOP_ERROR)
            faulty_power_cut(io, CUT_SYNCED_ONLY, 0);
        else if (how == STOP_TORN)
            faulty_power_cut(io, CUT_TORN, (uint32_t)at);
        check_after(f, &g);
        f->io = NULL;
        faulty_free(io);
        wipe(f);
    }
    return at;
}

static void killed_at_any_call_of_a_pass_nothing_is_lost(void **state)
{
    assert_true(sweep(*state, STOP_KILL, 1) > 150);
}

static void with_only_synced_bytes_left_nothing_is_lost(void **state)
{
    sweep(*state, STOP_CUT, 1);
}

static void with_a_torn_rest_nothing_is_lost(void **state)
{
    sweep(*state, STOP_TORN, 2);
}

static void an_error_of_the_disk_loses_nothing(void **state)
{
    sweep(*state, STOP_ERROR, 2);
}

static void a_full_disk_only_puts_cleaning_off(void **state)
{
    sweep(*state, STOP_FULL, 2);
}

static void a_shortage_of_descriptors_only_puts_cleaning_off(void **state)
{
    assert_true(sweep(*state, STOP_OPENS, 1) > 20);
}

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
        T(killed_at_any_call_of_a_pass_nothing_is_lost),
        T(with_only_synced_bytes_left_nothing_is_lost),
        T(with_a_torn_rest_nothing_is_lost),
        T(an_error_of_the_disk_loses_nothing),
        T(a_full_disk_only_puts_cleaning_off),
        T(a_shortage_of_descriptors_only_puts_cleaning_off),
    };
    return RUN(tests);
}
