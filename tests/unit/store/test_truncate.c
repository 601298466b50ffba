/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting the end of a log (S11) when its index lies, when the log is damaged, and when the disk refuses. */
#include "simtest.h"

static void fill(struct fixture *f, int n)
{
    f->cfg.segment_bytes = 20000;
    f->cfg.index_interval_bytes = 600;
    must_open(f);
    for (int i = 0; i < n; i++)
        append_n(f, 1, 500);
    assert_int_equal(flush(f), 0);
}

static void damage_indexes(struct fixture *f, const char *suffix, size_t entry, size_t header)
{
    char dir[PATH_MAX], path[PATH_MAX + 300];

    file_path(f, "", dir);
    DIR *d = opendir(dir);
    for (const struct dirent *de; (de = readdir(d)) != NULL;) {
        size_t n = strlen(de->d_name), tail = strlen(suffix);
        uint8_t e[32];
        if (n < tail || strcmp(de->d_name + n - tail, suffix) != 0)
            continue;
        snprintf(path, sizeof path, "%s%s", dir, de->d_name);
        int fd = open(path, O_RDWR);
        for (off_t at = (off_t)header; pread(fd, e, entry, at) == (ssize_t)entry; at += (off_t)entry) {
            e[7] = (uint8_t)(e[7] + 5);
            assert_int_equal(pwrite(fd, e, entry, at), entry);
        }
        close(fd);
    }
    closedir(d);
}

static void a_lying_index_is_mended_first(void **state)
{
    struct fixture *f = *state;

    for (int which = 0; which < 3; which++) {
        fill(f, 120);
        shut(f, true);
        if (which == 0)
            damage_indexes(f, ".index", INDEX_ENTRY_BYTES, 0);
        else if (which == 1)
            damage_indexes(f, ".text", TEXT_ENTRY_BYTES, TEXT_HEADER_BYTES);
        else
            damage_indexes(f, ".timeindex", TIME_ENTRY_BYTES, 0);
        must_open(f);
        assert_int_equal(plog_truncate(f->l, 60), 0);
        assert_int_equal(ends_of(f).end_offset, 60);
        int64_t text;
        assert_int_equal(plog_text_of_offset(f->l, 60, &text), 0);
        assert_int_equal(text, 60 * 501);
        assert_int_equal(append_n(f, 1, 10).base_offset, 60);
        assert_int_equal(check_log(f), 61);
        reopen(f, false);
        assert_int_equal(check_log(f), 61);
        shut(f, true);
        assert_int_equal(fs_remove_tree(AT_FDCWD, f->path), 0);
        assert_int_equal(mkdir(f->path, 0755), 0);
    }
    must_open(f);
}

/* The log itself is damaged where it is to be cut: it is cut before the damage. */
static void a_damaged_log_is_cut_before_the_damage(void **state)
{
    struct fixture *f = *state;

    fill(f, 30);
    int64_t one = ends_of(f).size_bytes / 30;
    shut(f, true);
    for (int i = 10; i < 13; i++)
        file_poke(f, SEG0 ".log", i * one, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 17);
    must_open(f);
    assert_int_equal(plog_truncate(f->l, 12), 0);
    assert_int_equal(ends_of(f).end_offset, 10);
    assert_int_equal(append_n(f, 1, 10).base_offset, 10);
    assert_int_equal(check_log(f), 11);
    reopen(f, false);
    assert_int_equal(check_log(f), 11);
}

/* An error at any call: either nothing is cut and the log goes on as it was, or it takes nothing until the cut was
 * tried again; then it is cut, whatever stopped it before. */
static void sweep(struct fixture *f, int eno, bool opens)
{
    bool hit = true;
    int refused = 0, whole = 0;

    for (int at = 0; hit; at++) {
        struct simdisk *d = disk_new(f, (uint64_t)at);
        f->epoch = 0;
        fill(f, 60);
        f->epoch = 1;
        plog_epoch_begin(f->l, 1);
        for (int i = 0; i < 30; i++)
            append_n(f, 1, 500);
        assert_int_equal(flush(f), 0);
        disk_fails(d, opens ? DISK_OPENS : DISK_GROWS, eno, at, 1000);
        int rc = plog_truncate(f->l, 20);
        hit = simdisk_plan_was_hit(d);
        simdisk_plan(d, NULL, 0);
        assert_false(datadir_failed(f->dd));
        assert_int_equal(ends_of(f).end_offset, rc == 0 ? 20 : 90);
        int64_t end = ends_of(f).end_offset;
        struct plog_appended a = append_n(f, 1, 500);
        if (a.err == KERR_NONE) {
            whole += rc != 0;
            assert_int_equal(a.base_offset, end);
            assert_int_equal(flush(f), 0);
            drop(f);
            must_open(f);
            assert_string_equal(f->rec.note, "");
            assert_int_equal(check_log(f), end + 1);
            assert_int_equal(plog_epoch_at(f->l, end - 1), rc == 0 ? 0 : 1);
        } else {
            refused++;
        }
        assert_int_equal(plog_truncate(f->l, 15), 0);
        assert_int_equal(ends_of(f).end_offset, 15);
        assert_int_equal(append_n(f, 1, 500).base_offset, 15);
        assert_int_equal(flush(f), 0);
        drop(f);
        simdisk_power_cut_any(d);
        must_open(f);
        assert_string_equal(f->rec.note, "");
        assert_int_equal(check_log(f), 16);
        drop(f);
        disk_free(f, d);
    }
    assert_true(whole > 0);
    assert_true(eno == ENOSPC || refused > 0);
    must_open(f);
}

/* Killed at any call of a cut, the log comes up cut, or whole, or in between; what is then shown and written survives a power cut, and what
 * was cut off does not come back behind it. */
static void what_a_start_shows_of_a_killed_cut_stays(void **state)
{
    struct fixture *f = *state;
    bool hit = true;
    int cut = 0;

    for (int at = 0; hit; at++) {
        struct simdisk *d = disk_new(f, (uint64_t)at);
        f->epoch = 0;
        fill(f, 120);
        int64_t border = f->l->segs[1]->base;
        simdisk_stop_in(d, at);
        plog_truncate(f->l, border - 1);
        hit = simdisk_stopped(d);
        simdisk_stop_in(d, -1);
        drop(f);
        simdisk_kill(d);
        must_open(f);
        int64_t end = ends_of(f).end_offset;
        assert_in_range(end, border - 1, 120);
        cut += hit && end < 120;
        f->epoch = 1;
        assert_int_equal(append_n(f, 1, 500).base_offset, end);
        assert_int_equal(flush(f), 0);
        append_n(f, 1, 500); /* into a new file, perhaps, of a name that had been cut off */
        drop(f);
        simdisk_power_cut(d, SIMDISK_CUT_NONE);
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, end + 1);
        assert_int_equal(check_log(f), end + 1);
        drop(f);
        disk_free(f, d);
    }
    assert_true(cut > 2);
    must_open(f);
}

/* The next batch after such a start goes into a file of its own. By another start, or by a flush behind a clean stop, it counts as
 * flushed, and survives a power cut: what was cut off does not come back before it. */
static void sweep_into_next_file(struct fixture *f, bool clean)
{
    bool hit = true;
    int cut = 0;

    for (int at = 0; hit; at++) {
        struct simdisk *d = disk_new(f, (uint64_t)at);
        simdisk_set_chances(d, &(struct simdisk_chances){ 0 }); /* nothing gets to the disk by itself */
        f->epoch = 0;
        fill(f, 120);
        simdisk_stop_in(d, at);
        plog_truncate(f->l, f->l->segs[1]->base - 1);
        hit = simdisk_stopped(d);
        simdisk_stop_in(d, -1);
        drop(f);
        simdisk_kill(d);
        f->cfg.segment_bytes = 600;
        must_open(f);
        if (clean)
            reopen(f, true);
        int64_t end = ends_of(f).end_offset;
        cut += hit && end < 120;
        f->epoch = 1;
        struct plog_appended a = append_n(f, 1, 500);
        assert_int_equal(a.base_offset, end);
        assert_true(a.rolled);
        if (clean)
            assert_int_equal(flush(f), 0);
        else
            reopen(f, false);
        assert_int_equal(ends_of(f).flushed_offset, end + 1);
        drop(f);
        simdisk_power_cut(d, SIMDISK_CUT_NONE);
        must_open(f);
        assert_string_equal(f->rec.note, "");
        assert_int_equal(ends_of(f).end_offset, end + 1);
        assert_int_equal(check_log(f), end + 1);
        assert_int_equal(plog_epoch_at(f->l, end), 1);
        drop(f);
        disk_free(f, d);
    }
    assert_true(cut > 2);
    must_open(f);
}

static void what_a_second_start_shows_of_a_killed_cut_stays(void **state)
{
    sweep_into_next_file(*state, false);
}

static void what_a_clean_stop_makes_of_a_killed_cut_stays(void **state)
{
    sweep_into_next_file(*state, true);
}

/* 20 batches of epoch 0, and 20 of epoch 1. */
static void fill_epochs(struct fixture *f, bool checkpointed)
{
    f->epoch = 0;
    fill(f, 20);
    f->epoch = 1;
    plog_epoch_begin(f->l, 1);
    for (int i = 0; i < 20; i++)
        append_n(f, 1, 500);
    assert_int_equal(flush(f), 0);
    if (checkpointed)
        assert_int_equal(plog_checkpoint(f->l, 40, true), 0);
}

/* S6, R12: a cut writes a checkpoint of its own, and lowers epochs. Wherever it is killed, each batch that is there has its
 * epoch: also where the epochs were in no file before, and where the checkpoint covered batches above the cut. */
static void sweep_epochs(struct fixture *f, int64_t to, bool checkpointed)
{
    bool hit = true;

    for (int at = 0; hit; at++) {
        struct simdisk *d = disk_new(f, (uint64_t)at);
        fill_epochs(f, checkpointed);
        simdisk_stop_in(d, at);
        plog_truncate(f->l, to);
        hit = simdisk_stopped(d);
        simdisk_stop_in(d, -1);
        drop(f);
        simdisk_power_cut(d, SIMDISK_CUT_NONE);
        must_open(f);
        for (int64_t o = 0; o < ends_of(f).end_offset; o++)
            assert_int_equal(plog_epoch_at(f->l, o), o < 20 ? 0 : 1);
        drop(f);
        disk_free(f, d);
    }
}

static void a_cut_that_is_killed_forgets_no_epoch(void **state)
{
    sweep_epochs(*state, 30, false);
    sweep_epochs(*state, 30, true);
    sweep_epochs(*state, 10, false);
    sweep_epochs(*state, 10, true);
    must_open(*state);
}

/* S6: a cut that fails among its claims leaves epochs in memory that are in the file no more. */
static void a_cut_that_fails_forgets_no_epoch(void **state)
{
    struct fixture *f = *state;
    bool hit = true;

    for (int at = 0; hit; at++) {
        struct simdisk *d = disk_new(f, (uint64_t)at);
        fill_epochs(f, true);
        disk_fails(d, DISK_OPENS, EMFILE, at, 1);
        int rc = plog_truncate(f->l, 10);
        hit = simdisk_plan_was_hit(d);
        simdisk_plan(d, NULL, 0);
        plog_checkpoint(f->l, 10, true);
        assert_int_equal(ends_of(f).end_offset, rc == 0 ? 10 : 40);
        drop(f);
        simdisk_power_cut(d, SIMDISK_CUT_NONE);
        must_open(f);
        for (int64_t o = 0; o < ends_of(f).end_offset; o++)
            assert_int_equal(plog_epoch_at(f->l, o), o < 20 ? 0 : 1);
        drop(f);
        disk_free(f, d);
    }
    must_open(f);
}

/* S4: the files are cut and memory is not: what was flushed before is no claim any more. */
static void a_flush_that_half_a_cut_overtakes_claims_nothing(void **state)
{
    struct fixture *f = *state;
    bool hit = true;
    int halves = 0;

    for (int at = 0; hit; at++) {
        struct simdisk *d = disk_new(f, (uint64_t)at);
        f->epoch = 0;
        fill(f, 60);
        append_n(f, 1, 500);
        struct plog_flush *t = plog_flush_begin(f->l);
        int flushed = plog_flush_run(t);
        disk_fails(d, DISK_OPENS, EMFILE, at, 1000);
        int rc = plog_truncate(f->l, 20);
        hit = simdisk_plan_was_hit(d);
        simdisk_plan(d, NULL, 0);
        plog_flush_end(f->l, t, flushed);
        if (f->l->half_cut.seg != NULL) {
            halves++;
            assert_int_equal(plog_checkpoint(f->l, 20, true), 0);
            assert_int_equal(plog_delete_before(f->l, 10), -EAGAIN);
            assert_int_equal(plog_retain(f->l, 20, f->now_ms), 0);
            assert_int_equal(plog_close(take(&f->l), true, 20), -EAGAIN);
        }
        drop(f);
        simdisk_kill(d);
        must_open(f);
        assert_string_equal(f->rec.note, "");
        assert_true(ends_of(f).end_offset == (rc == 0 ? 20 : 61) || halves > 0);
        drop(f);
        disk_free(f, d);
    }
    assert_true(halves > 0);
    must_open(f);
}

/* The batch that holds the log's start cannot go: nothing is cut. */
static void the_start_is_not_cut_off(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    append_n(f, 4, 100);
    append_n(f, 4, 100);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_delete_before(f->l, 6), 0);
    assert_int_equal(plog_truncate(f->l, 5), -ERANGE);
    assert_int_equal(plog_truncate(f->l, 7), -ERANGE);
    assert_int_equal(ends_of(f).end_offset, 8);
    assert_int_equal(append_n(f, 1, 100).base_offset, 8);
    assert_int_equal(plog_truncate(f->l, 8), 0);
    assert_int_equal(ends_of(f).end_offset, 8);
}

static void a_full_disk_cuts_nothing_by_half(void **state)
{
    sweep(*state, ENOSPC, false);
}

static void no_descriptor_cuts_nothing_by_half(void **state)
{
    sweep(*state, EMFILE, true);
}

/* The bytes that it synced are not those which stand there by now. */
static void a_sync_that_a_cut_overtook_proves_nothing(void **state)
{
    struct fixture *f = *state;

    fill(f, 5);
    append_n(f, 1, 500);
    struct plog_flush *t = plog_flush_begin(f->l);
    assert_non_null(t);
    assert_int_equal(plog_flush_run(t), 0);
    assert_int_equal(plog_truncate(f->l, 3), 0);
    append_n(f, 4, 500); /* 3 to 6, and only 0 to 2 are on the disk for certain */
    assert_int_equal(plog_flush_end(f->l, t, 0), 3);
    assert_int_equal(ends_of(f).flushed_offset, 3);
    assert_int_equal(flush(f), 0);
    assert_int_equal(ends_of(f).flushed_offset, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_lying_index_is_mended_first),
        T(a_damaged_log_is_cut_before_the_damage),
        T(what_a_start_shows_of_a_killed_cut_stays),
        T(what_a_second_start_shows_of_a_killed_cut_stays),
        T(what_a_clean_stop_makes_of_a_killed_cut_stays),
        T(a_cut_that_is_killed_forgets_no_epoch),
        T(a_cut_that_fails_forgets_no_epoch),
        T(a_flush_that_half_a_cut_overtakes_claims_nothing),
        T(the_start_is_not_cut_off),
        T(a_full_disk_cuts_nothing_by_half),
        T(no_descriptor_cuts_nothing_by_half),
        T(a_sync_that_a_cut_overtook_proves_nothing),
    };
    return RUN(tests);
}
