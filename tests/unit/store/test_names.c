/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S5, for directories and over kills: the name of a log directory, and of a partition's, may have been made by a start that was
 * killed before it had synced it. What is flushed in them afterwards is there after a power cut.
 */
#include "storetest.h"

#include "tests/sim/simdisk.h"

static void a_directory_that_was_made_before_a_kill_is_synced(void **state)
{
    struct fixture *f = *state;
    const struct simdisk_config cfg = { .seed = 1 };
    struct simdisk *d = simdisk_new(&cfg);

    f->io = simdisk_io(d);
    must_open_dir(f);
    datadir_close(f->dd, false);
    assert_int_equal(f->io->mkdirat(f->io, AT_FDCWD, "/data/orders-0", 0755), 0);
    simdisk_kill(d);

    must_open(f);
    assert_int_equal(append_n(f, 3, 100).err, KERR_NONE);
    assert_int_equal(flush(f), 0);
    shut(f, false);
    simdisk_power_cut(d, SIMDISK_CUT_NONE);

    must_open(f);
    assert_int_equal(ends_of(f).end_offset, 3);
    shut(f, false);
    simdisk_free(d);
}

static void so_is_a_log_directory_wherever_the_kill_was(void **state)
{
    struct fixture *f = *state;

    for (int64_t at = 0;; at++) {
        const struct simdisk_config cfg = { .seed = (uint64_t)at };
        struct simdisk *d = simdisk_new(&cfg);
        struct datadir_identity id = { .broker_id = 1 };
        char err[256];

        snprintf(f->path, sizeof f->path, "/var/lib/data");
        f->io = simdisk_io(d);
        simdisk_stop_in(d, at);
        bool was_stopped = datadir_open(f->path, world_of(f), &id, &f->dd, err, sizeof err) < 0;
        if (!was_stopped)
            datadir_close(f->dd, false);
        simdisk_kill(d);

        must_open_dir(f);
        datadir_close(f->dd, false);
        simdisk_power_cut(d, SIMDISK_CUT_NONE);
        assert_true(simdisk_size(d, "/var/lib/data/meta.properties", false) > 0);
        simdisk_free(d);
        if (!was_stopped)
            return;
    }
}

enum { TOGETHER = 3 };

/* 0: they were made, and are on the disk. */
static int make_together(struct fixture *f, struct simdisk *d, int64_t stop_at)
{
    struct plog *logs[TOGETHER];
    struct plog_recovery rec;
    int n = 0, rc = 0;

    must_open_dir(f);
    simdisk_stop_in(d, stop_at);
    while (n < TOGETHER && rc == 0) {
        rc = plog_open_unsynced(f->dd, "orders", n, &f->topic_id, &f->cfg, f->now_ms, &logs[n], &rec);
        n += rc == 0;
    }
    if (rc == 0)
        rc = plog_sync_new(logs, TOGETHER);
    for (int i = 0; i < n; i++) {
        assert_int_equal(plog_is_unsynced(logs[i]), rc < 0);
        plog_close(logs[i], false, 0);
    }
    datadir_close(f->dd, false);
    return rc;
}

static struct plog *open_one(struct fixture *f, int32_t partition)
{
    struct plog_recovery rec;
    struct plog *l;

    assert_int_equal(plog_open(f->dd, "orders", partition, &f->topic_id, &f->cfg, f->now_ms, &l, &rec), 0);
    return l;
}

static void flush_in_each(struct fixture *f, int n_records)
{
    must_open_dir(f);
    for (int i = 0; i < TOGETHER; i++) {
        f->l = open_one(f, i);
        assert_int_equal(ends_of(f).end_offset, n_records == 0 ? 3 : 0);
        if (n_records > 0)
            assert_int_equal(append_n(f, n_records, 100).err, KERR_NONE);
        assert_int_equal(flush(f), 0);
        plog_close(f->l, false, 0);
    }
    f->l = NULL;
    datadir_close(f->dd, false);
}

/* False: it was not stopped any more. */
static bool make_together_with_a_stop(struct fixture *f, uint64_t seed, int64_t at)
{
    const struct simdisk_config cfg = { .seed = seed };
    struct simdisk *d = simdisk_new(&cfg);

    f->io = simdisk_io(d);
    int rc = make_together(f, d, at);
    if (rc == 0)
        simdisk_power_cut(d, SIMDISK_CUT_NONE);
    else
        simdisk_kill(d);
    for (int i = 0; i < TOGETHER && rc == 0; i++) {
        char path[64];
        snprintf(path, sizeof path, "/data/orders-%d/partition.metadata", i);
        assert_true(simdisk_size(d, path, false) > 0);
        snprintf(path, sizeof path, "/data/orders-%d/00000000000000000000.log", i);
        assert_int_equal(simdisk_size(d, path, false), 0);
    }
    flush_in_each(f, 3);
    simdisk_power_cut(d, SIMDISK_CUT_NONE);
    flush_in_each(f, 0);
    f->dd = NULL;
    simdisk_free(d);
    return rc < 0;
}

/* Those that are there are on the disk, and those that a kill left half made are made whole: what is flushed in them lasts. */
static void logs_made_together_last_wherever_the_kill_was(void **state)
{
    struct fixture *f = *state;

    for (uint64_t seed = 0; seed < 8; seed++)
        for (int64_t at = 0; make_together_with_a_stop(f, seed, at); at++)
            ;
}

/* How many logs have their checkpoints; *ret_flushed: how many their records. */
static int checkpoint_together(struct fixture *f, struct simdisk *d, int64_t stop_at, int *ret_flushed)
{
    struct plog *logs[TOGETHER];
    int rc = 0;

    *ret_flushed = 0;
    must_open_dir(f);
    for (int i = 0; i < TOGETHER; i++) {
        logs[i] = f->l = open_one(f, i);
        assert_int_equal(append_n(f, 3, 100).err, KERR_NONE);
    }
    f->l = NULL;
    simdisk_stop_in(d, stop_at);
    for (int i = 0; i < TOGETHER && rc == 0; i++) {
        rc = plog_checkpoint_prepare(logs[i], 3);
        *ret_flushed += rc == 0;
    }
    if (rc == 0)
        rc = plog_checkpoint_together(logs, TOGETHER);
    for (int i = 0; i < TOGETHER; i++) {
        assert_true(rc < 0 || !plog_checkpoint_is_late(logs[i]));
        if (rc == 0)
            rc = plog_close(logs[i], true, 3); /* has nothing left to write */
        else
            plog_close(logs[i], false, 0);
    }
    datadir_close(f->dd, false);
    f->dd = NULL;
    return rc == 0 ? TOGETHER : 0;
}

static bool close_together_with_a_stop(struct fixture *f, uint64_t seed, int64_t at)
{
    const struct simdisk_config cfg = { .seed = seed, .journal = seed % 2 == 0 };
    struct simdisk *d = simdisk_new(&cfg);
    struct plog_recovery rec;
    int flushed;

    f->io = simdisk_io(d);
    int whole = checkpoint_together(f, d, at, &flushed);
    simdisk_power_cut(d, (enum simdisk_cut)(seed % 3));
    must_open_dir(f);
    for (int i = 0; i < TOGETHER; i++) {
        assert_int_equal(plog_open(f->dd, "orders", i, &f->topic_id, &f->cfg, f->now_ms, &f->l, &rec), 0);
        if (i < flushed)
            assert_int_equal(ends_of(f).end_offset, 3);
        assert_string_equal(rec.note, ""); /* nothing is half written */
        assert_true(whole == 0 || rec.scanned_bytes == 0);
        plog_close(f->l, false, 0);
    }
    f->l = NULL;
    datadir_close(f->dd, false);
    f->dd = NULL;
    simdisk_free(d);
    return whole == 0;
}

static void checkpoints_written_together_are_whole_or_not_there(void **state)
{
    struct fixture *f = *state;

    for (uint64_t seed = 0; seed < 9; seed++)
        for (int64_t at = 0; close_together_with_a_stop(f, seed, at); at++)
            ;
}

/* The data directory is on a simulated disk: what the fixture made on the real one is not needed. */
static int setup(void **state)
{
    int rc = fixture_setup(state);
    struct fixture *f = *state;
    assert_int_equal(rmdir(f->path), 0);
    snprintf(f->path, sizeof f->path, "/data");
    return rc;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_directory_that_was_made_before_a_kill_is_synced, setup, teardown),
        cmocka_unit_test_setup_teardown(so_is_a_log_directory_wherever_the_kill_was, setup, teardown),
        cmocka_unit_test_setup_teardown(logs_made_together_last_wherever_the_kill_was, setup, teardown),
        cmocka_unit_test_setup_teardown(checkpoints_written_together_are_whole_or_not_there, setup, teardown),
    };
    return RUN(tests);
}
